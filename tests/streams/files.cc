// Files and descriptors through a Stream.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <latch>
#include <optional>

#include "base/fault.h"
#include "spate/offload.h"
#include "spate/timer.h"
#include "streams/harness.h"
#include "support/pool_work.h"
#include "support/slow_disk.h"
#include "support/system_error.h"

namespace spate::testing {
namespace {

std::string noise(std::size_t size) {
  std::string bytes(size, ' ');
  std::uint32_t state = 1;
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += is_open(fd) ? 1 : 0;
  return count;
}

using Files = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, Files, all_kinds(), name_of);

TEST_P(Files, AreSentInOrderWithWrites) {
  const std::string content = noise(3'000'000);
  const int first = file_with(content);
  const int second = file_with("short");
  EXPECT_TRUE(left_.write("before "));
  EXPECT_FALSE(left_.send_file(first, 0, content.size()));
  EXPECT_TRUE(left_.write(" between "));
  EXPECT_FALSE(left_.send_file(second, 1, 3));
  EXPECT_TRUE(left_.write(" after"));
  const std::string expected = "before " + content + " between hor after";
  EXPECT_LE(left_.queued(), expected.size());
  run_until(loop_, [&] { return right_log_.received.size() == expected.size(); });
  EXPECT_TRUE(right_log_.received == expected);
  EXPECT_FALSE(is_open(first) || is_open(second));
  EXPECT_EQ(left_.queued(), 0u);
}

TEST_P(Files, AreSentInOrderRepeatedly) {
  const std::string much = noise(1'000'000);
  std::string expected;
  for (int i = 0; i < 12; ++i) {
    const std::string name = "file " + std::to_string(i);
    EXPECT_TRUE(left_.write(much));
    EXPECT_FALSE(left_.send_file(file_with(name), 0, name.size()));
    EXPECT_TRUE(left_.write("!"));
    expected += much + name + "!";
    if (i % 3 == 0) run_turns(loop_, i);  // A part of it was sent when the next one is queued,
    if (i % 4 == 0) run_until(loop_, [&] { return left_.queued() == 0; });  // and here all of it.
  }
  run_until(loop_, [&] { return right_log_.received.size() == expected.size(); });
  EXPECT_TRUE(right_log_.received == expected);
}

TEST_P(Files, AreSentFromInsideCallback) {
  right_log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(right_.write("[") && right_.write(bytes));
    EXPECT_FALSE(right_.send_file(file_with("file"), 0, 4));
    EXPECT_TRUE(right_.write(bytes) && right_.write("]"));
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("x"));
  run_until(loop_, [&] { return left_log_.received == "[xfilex]"; });
}

TEST_P(Files, CallOnDrainedWhenSent) {
  const std::string content = noise(5'000'000);
  ASSERT_TRUE(left_.set_limits({.low = 0, .high = 1000, .max = 2000}));
  EXPECT_FALSE(left_.send_file(file_with(content), 0, content.size()));
  EXPECT_TRUE(left_.is_full());
  run_until(loop_, [&] { return left_log_.log == "drained "; });
  EXPECT_FALSE(left_.is_full());
  run_until(loop_, [&] { return right_log_.received.size() == content.size(); });
}

TEST_P(Files, TruncatedFileEndsConnection) {
  const int file = file_with("only this");
  EXPECT_FALSE(left_.send_file(file, 0, 100));
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, system_error(ENODATA));
  EXPECT_FALSE(is_open(file));
}

TEST_P(Files, FileUnsupportedBySendfileIsRead) {
  const int file = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  EXPECT_FALSE(left_.send_file(file, 0, 20));
  run_until(loop_, [&] { return right_log_.received.size() == 20; });
  EXPECT_EQ(right_log_.received.substr(0, 5), "Name:");
}

TEST_P(Files, LargeTruncatedFileEndsConnection) {
  const int file = file_with(noise(100'000));
  EXPECT_TRUE(left_.write("before "));
  EXPECT_FALSE(left_.send_file(file, 0, 200'000));
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, system_error(ENODATA));
  EXPECT_FALSE(is_open(file));
}

TEST_P(Files, FileRefusedBySendfileIsRead) {
  FaultPlan plan;
  plan.fail_nth(SystemCall::send_file, 1, EINVAL).fail_nth(SystemCall::send_file, 2, ENOSYS);
  FaultScope scope(plan);
  const std::string content = noise(100'000);
  EXPECT_TRUE(left_.write("before "));
  EXPECT_FALSE(left_.send_file(file_with(content), 0, content.size()));
  run_until(loop_, [&] { return right_log_.received.size() == content.size() + 7; });
  EXPECT_TRUE(right_log_.received == "before " + content);
  EXPECT_EQ(plan.failures(SystemCall::send_file), has_bare_socket() ? 2u : 0u);
}

TEST_P(Files, LargeFileIsSentByKernelWithoutReads) {
  FaultPlan plan;
  FaultScope scope(plan);
  const std::string content = noise(40'000);
  left_log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(left_.write("before "));  // Corked until the end of the callback, as the file is.
    EXPECT_FALSE(left_.send_file(file_with(content), 0, content.size()));
    return bytes.size();
  };
  EXPECT_TRUE(right_.write("?"));
  run_until(loop_, [&] { return right_log_.received.size() == content.size() + 7; });
  EXPECT_TRUE(right_log_.received == "before " + content);
  EXPECT_EQ(plan.calls(SystemCall::read) == 0, has_bare_socket());
}

TEST_P(Files, ArriveWholeDespiteShortAndInterruptedWrites) {
  FaultPlan plan;
  plan.shorten_share(SystemCall::send_file, 0.5, 777, 1)
      .fail_share(SystemCall::send_file, 0.2, EINTR, 2);
  plan.shorten_share(SystemCall::read, 0.5, 777, 3).fail_share(SystemCall::send, 0.1, EAGAIN, 4);
  plan.fail_share(SystemCall::read_at_once, 0.3, EAGAIN, 5);
  FaultScope scope(plan);
  const std::string content = noise(300'000);
  EXPECT_TRUE(left_.write("?"));
  EXPECT_FALSE(left_.send_file(file_with(content), 0, content.size()));
  EXPECT_TRUE(left_.write("!"));
  run_until(loop_, [&] { return right_log_.received.size() == content.size() + 2; });
  EXPECT_TRUE(right_log_.received == "?" + content + "!");
}

// ---- files that are not in memory

constexpr std::size_t kFileSizes[] = {5, 1'000'000};

TEST_P(Files, SlowDiskDoesNotDelayTimers) {
  for (const std::size_t size : kFileSizes) {
    const std::string content = noise(size);
    right_log_.received.clear();
    SlowDisk disk(SystemCall::read, 1);
    EXPECT_TRUE(left_.write("before "));
    EXPECT_FALSE(left_.send_file(file_with(content), 0, size));
    EXPECT_TRUE(left_.write(" after"));
    run_until(loop_, [&] { return right_log_.received == "before "; });
    EXPECT_TRUE(works_in_pool(loop_));
    run_turns(loop_, 3);
    const std::uint64_t events = loop_.metrics().events;
    run_turns(loop_, 3);
    EXPECT_EQ(loop_.metrics().events, events);
    Timer timer(loop_, [&disk] { disk.respond(); });
    ASSERT_TRUE(timer.start(Nanos{0}));
    run_until(loop_, [&] { return right_log_.received.size() == size + 13; });
    EXPECT_TRUE(right_log_.received == "before " + content + " after");
    EXPECT_EQ(disk.calls_on_loop, 0);
  }
}

TEST_P(Files, ReadErrorOfThreadEndsConnection) {
  for (const std::size_t size : kFileSizes) {
    FaultPlan plan;
    plan.fail_nth(SystemCall::read_at_once, 1, EAGAIN).fail_nth(SystemCall::read, 1, EIO);
    FaultScope scope(plan);
    auto [left, right] = must(make_pair(loop_, GetParam()));
    Recorder log;
    left.start(log);
    EXPECT_FALSE(left.send_file(file_with(noise(size)), 0, size));
    run_until(loop_, [&] { return log.closed_calls == 1; });
    EXPECT_EQ(log.error, system_error(EIO));
  }
}

TEST_P(Files, PoolThatRefusesToReadEndsConnection) {
  std::latch ends(1);
  ThreadPool pool({.max_threads = 1, .max_queued = 0});
  const auto busy = must(offload(loop_, [&] { ends.wait(); }, [] {}, pool));
  FaultPlan plan;
  plan.fail_nth(SystemCall::read_at_once, 1, EAGAIN);
  FaultScope scope(plan);
  EXPECT_FALSE(left_.send_file(file_with("file"), 0, 4, pool));
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, Error::queue_full);
  ends.count_down();
}

TEST_P(Files, AreClosedByThreadIfConnectionEndsMeanwhile) {
  const int file = file_with(noise(100'000));
  std::optional<ThreadPool> pool(std::in_place);
  SlowDisk disk(SystemCall::read, 1);
  EXPECT_FALSE(left_.send_file(file, 0, 100'000, *pool));
  run_until(loop_, [&] { return works_in_pool(loop_); });
  run_turns(loop_, 3);
  left_.abort();
  EXPECT_FALSE(works_in_pool(loop_));
  disk.respond();
  pool.reset();  // Waits for the thread.
  EXPECT_FALSE(is_open(file));
}

TEST_P(Files, RemainOwnedByCallerIfRejected) {
  const int file = file_with("content");
  EXPECT_EQ(left_.send_file(-1, 0, 1), system_error(EBADF));
  EXPECT_EQ(left_.send_file(file, UINT64_MAX, 1), system_error(EINVAL));
  EXPECT_EQ(left_.send_file(file, 1, INT64_MAX), system_error(EINVAL));
  left_.end();
  EXPECT_EQ(left_.send_file(file, 0, 1), system_error(EPIPE));
  EXPECT_TRUE(is_open(file));
  ::close(file);
}

TEST_P(Files, ZeroBytesCloseFileAtOnce) {
  const int file = file_with("");
  EXPECT_FALSE(left_.send_file(file, 0, 0));
  EXPECT_FALSE(is_open(file));
}

TEST_P(Files, AreClosedWithConnectionThatEndsBeforeTheyAreSent) {
  const std::string content = noise(20'000'000);
  const int file = file_with(content);
  EXPECT_FALSE(left_.send_file(file, 0, content.size()));
  EXPECT_TRUE(is_open(file));
  left_.abort();
  EXPECT_FALSE(is_open(file));
  EXPECT_EQ(left_.queued(), 0u);
}

// ---- descriptors

class Descriptors : public ::testing::Test {
 protected:
  // Keeps its input, and records the order.
  struct Taker final : StreamHandler {
    std::size_t on_data(Bytes bytes) override {
      received.append(text_of(bytes));
      return bytes.size();
    }
    void on_descriptors(std::span<const int> descriptors, bool some_lost) override {
      places.push_back(received.size());
      fds.insert(fds.end(), descriptors.begin(), descriptors.end());
      lost = lost || some_lost;
      if (when_taken) when_taken();
    }
    void on_closed(std::error_code why) override {
      closed = true;
      error = why;
    }
    ~Taker() {
      for (const int fd : fds) ::close(fd);
    }
    std::string received;
    std::vector<std::size_t> places;
    std::vector<int> fds;
    std::function<void()> when_taken;
    bool lost = false;
    bool closed = false;
    std::error_code error;
  };

  Descriptors() {
    Result<std::pair<Stream, Stream>> pair = Stream::socket_pair(loop_);
    left_ = std::move(pair->first);
    right_ = std::move(pair->second);
    left_.start(left_log_);
    right_.start(taker_);
    right_.set_receive_descriptors(true);
  }

  std::unique_ptr<Loop> owned_ = *Loop::create();
  Loop& loop_ = *owned_;
  Stream left_;
  Stream right_;
  Recorder left_log_;
  Taker taker_;
};

std::string content_of(int fd) {
  std::array<char, 100> room;
  const long count = ::pread(fd, room.data(), room.size(), 0);
  return count < 0 ? "?" : std::string(room.data(), static_cast<std::size_t>(count));
}

TEST_F(Descriptors, ArriveWithByteTheyWereSentWith) {
  const std::array<int, 2> files = {file_with("one"), file_with("two")};
  EXPECT_TRUE(left_.write("abc"));
  EXPECT_FALSE(left_.send_descriptors(bytes_of("defg"), files));
  EXPECT_TRUE(left_.write("hij"));
  for (const int fd : files) ::close(fd);
  run_until(loop_, [&] { return taker_.received == "abcdefghij"; });
  ASSERT_EQ(taker_.places.size(), 1u);
  EXPECT_LE(taker_.places[0], 3u);
  ASSERT_EQ(taker_.fds.size(), 2u);
  EXPECT_EQ(content_of(taker_.fds[0]) + content_of(taker_.fds[1]), "onetwo");
  EXPECT_NE(::fcntl(taker_.fds[0], F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(Descriptors, AreQueuedInOrderWithBytesAndFiles) {
  const std::string much = noise(2'000'000);
  const int file = file_with("passed");
  EXPECT_TRUE(left_.write(much));
  EXPECT_FALSE(left_.send_descriptors(bytes_of("1"), {&file, 1}));
  EXPECT_FALSE(left_.send_file(file_with("sent"), 0, 4));
  EXPECT_FALSE(left_.send_descriptors(bytes_of("2"), {&file, 1}));
  EXPECT_FALSE(left_.send_descriptors(bytes_of("345"), {&file, 1}));
  EXPECT_TRUE(left_.write("!"));
  ::close(file);
  run_until(loop_, [&] { return taker_.received.size() == much.size() + 10; });
  EXPECT_TRUE(taker_.received == much + "1sent2345!");
  // With their own byte, or with a piece that ends with it.
  ASSERT_EQ(taker_.places.size(), 3u);
  EXPECT_LE(taker_.places[0], much.size());
  EXPECT_GT(taker_.places[1], much.size());
  EXPECT_LE(taker_.places[1], much.size() + 5);
  EXPECT_EQ(taker_.places[2], much.size() + 6);
  for (const int fd : taker_.fds) EXPECT_EQ(content_of(fd), "passed");
}

TEST_F(Descriptors, MaximumNumberFitsIntoOneMessage) {
  const int file = file_with("many");
  std::vector<int> many(253, file);
  EXPECT_FALSE(left_.send_descriptors(bytes_of("x"), many));
  run_until(loop_, [&] { return taker_.received == "x"; });
  EXPECT_EQ(taker_.fds.size(), 253u);
  many.push_back(file);
  EXPECT_EQ(left_.send_descriptors(bytes_of("x"), many), system_error(EINVAL));
  ::close(file);
}

TEST_F(Descriptors, AreClosedWithoutReceiver) {
  Recorder indifferent;
  right_.start(indifferent);
  const int file = file_with("");
  const int before = open_descriptors();
  EXPECT_FALSE(left_.send_descriptors(bytes_of("x"), {&file, 1}));
  run_until(loop_, [&] { return indifferent.received == "x"; });
  right_.set_receive_descriptors(false);
  EXPECT_FALSE(left_.send_descriptors(bytes_of("y"), {&file, 1}));
  run_until(loop_, [&] { return indifferent.received == "xy"; });
  EXPECT_EQ(open_descriptors(), before);
  ::close(file);
}

TEST_F(Descriptors, AreClosedWhenTheirStreamIsBeingClosed) {
  const int file = file_with("");
  left_.set_half_open(true);
  EXPECT_TRUE(right_.write("bye"));
  right_.close();
  run_until(loop_, [&] { return left_log_.log == "end "; });
  const int before = open_descriptors();
  EXPECT_FALSE(left_.send_descriptors(bytes_of("x"), {&file, 1}));
  run_turns(loop_, 5);
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_TRUE(taker_.fds.empty());
  ::close(file);
}

TEST_F(Descriptors, DescriptorsBeyondProcessLimitAreReportedLost) {
  const int file = file_with("");
  EXPECT_FALSE(left_.send_descriptors(bytes_of("x"), {&file, 1}));
  const int first_free = ::dup(file);
  ::close(first_free);
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {static_cast<rlim_t>(first_free), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  run_until(loop_, [&] { return taker_.received == "x"; });
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(taker_.lost);
  EXPECT_TRUE(taker_.fds.empty());
  ::close(file);
}

TEST_F(Descriptors, AreClosedWithConnectionThatEndsBeforeTheyAreSent) {
  const int file = file_with("");
  const int before = open_descriptors();
  EXPECT_TRUE(left_.write(noise(2'000'000)));
  EXPECT_FALSE(left_.send_descriptors(bytes_of("x"), {&file, 1}));
  EXPECT_EQ(open_descriptors(), before + 1);
  left_.abort();
  EXPECT_EQ(open_descriptors(), before - 1);  // The stream's descriptor was closed, too.
  ::close(file);
}

TEST_F(Descriptors, StreamMayBeDestroyedOnArrival) {
  const int file = file_with("");
  taker_.when_taken = [this] { right_ = Stream(); };
  EXPECT_FALSE(left_.send_descriptors(bytes_of("x"), {&file, 1}));
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(taker_.received, "");
  EXPECT_EQ(taker_.fds.size(), 1u);
  ::close(file);
}

TEST_F(Descriptors, PauseOnArrivalDefersTheirBytes) {
  const int file = file_with("");
  taker_.when_taken = [this] { right_.pause(); };
  EXPECT_FALSE(left_.send_descriptors(bytes_of("with it"), {&file, 1}));
  run_until(loop_, [&] { return !taker_.fds.empty(); });
  run_turns(loop_, 5);
  EXPECT_EQ(taker_.received, "");
  right_.resume();
  run_until(loop_, [&] { return taker_.received == "with it"; });
  ::close(file);
}

TEST_F(Descriptors, CloseOnArrivalDiscardsTheirBytes) {
  const int file = file_with("");
  ASSERT_TRUE(right_.set_limits({.max_unread = 4}));
  taker_.when_taken = [this] { right_.close(); };
  EXPECT_FALSE(left_.send_descriptors(bytes_of("more than four"), {&file, 1}));
  EXPECT_TRUE(left_.write("and more"));
  run_until(loop_, [&] { return taker_.closed; });
  EXPECT_FALSE(taker_.error) << taker_.error.message();
  ::close(file);
}

TEST_F(Descriptors, LoopMayRunOnArrival) {
  const int file = file_with("");
  taker_.when_taken = [this] {
    EXPECT_TRUE(left_.write(", and more"));
    run_turns(loop_, 5);
    EXPECT_EQ(taker_.received, "");
  };
  EXPECT_FALSE(left_.send_descriptors(bytes_of("with it"), {&file, 1}));
  run_until(loop_, [&] { return taker_.received == "with it, and more"; });
  ::close(file);
}

TEST_F(Descriptors, AreRefusedWithReason) {
  const int file = file_with("");
  EXPECT_EQ(left_.send_descriptors(bytes_of(""), {&file, 1}), system_error(EINVAL));
  EXPECT_EQ(left_.send_descriptors(bytes_of("x"), {}), system_error(EINVAL));
  const int nothing = -1;
  EXPECT_EQ(left_.send_descriptors(bytes_of("x"), {&nothing, 1}), system_error(EBADF));
  Result<std::pair<Stream, Stream>> memory = Stream::memory_pair(loop_);
  EXPECT_EQ(memory->first.send_descriptors(bytes_of("x"), {&file, 1}), system_error(EOPNOTSUPP));
  {
    FaultPlan plan;
    plan.fail_nth(SystemCall::duplicate, 1, EMFILE);
    FaultScope scope(plan);
    EXPECT_EQ(left_.send_descriptors(bytes_of("x"), {&file, 1}), system_error(EMFILE));
  }
  left_.end();
  EXPECT_EQ(left_.send_descriptors(bytes_of("x"), {&file, 1}), system_error(EPIPE));
  EXPECT_EQ(taker_.received, "");
  ::close(file);
}

}  // namespace
}  // namespace spate::testing
