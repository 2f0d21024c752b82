// The ends of a connection: one test for each row of the table in docs/special-problems.md.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "base/fault.h"
#include "spate/error.h"
#include "spate/net/connect.h"
#include "spate/net/listener.h"
#include "streams/harness.h"
#include "support/closed_port.h"
#include "support/missing.h"
#include "system/open_fds.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

class Endings : public StreamTest {
 protected:
  void run_until_both_are_closed() {
    run_until(loop_, [&] { return left_log_.closed_calls + right_log_.closed_calls == 2; });
  }
  // `left` has more to send than `right`, which does not read, accepts.
  void queue_at_the_left() {
    right_.pause();
    sent_ = pattern(kMoreThanAKernelTakes);
    EXPECT_TRUE(left_.write(sent_));
    EXPECT_GT(left_.queued(), 0u);
  }
  // Gives the right end to a child process, which holds it until it is killed.
  void move_right_to_a_process() {
    run_turns(loop_, 2);
    const int fd = *right_.release();
    run_turns(loop_, 2);
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    while (child_ == 0) ::pause();
    ::close(fd);
  }
  void kill_right() {
    if (!has_bare_socket()) return right_.abort();
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  // A truncated stream must end with an error. A unix socket cannot show this.
  void expect_to_be_cut_short(int peer) const {
    std::string received(sent_.size(), ' ');
    std::size_t size = 0;
    ssize_t count = 1;
    while (count > 0) {
      count = ::read(peer, received.data() + size, received.size() - size);
      if (count > 0) size += static_cast<std::size_t>(count);
    }
    EXPECT_LT(size, sent_.size());
    if (!is_tls()) EXPECT_EQ(count, GetParam() == Kind::tcp ? -1 : 0);
    if (count < 0) {
      EXPECT_EQ(errno, ECONNRESET);
    }
    ::close(peer);
  }

  std::string sent_;
  pid_t child_ = -1;
};

INSTANTIATE_TEST_SUITE_P(Kinds, Endings, all_kinds(), name_of);
// Only a memory_pair() reports a reset after the end to a peer that does not write.
using MemoryPairEndings = Endings;
INSTANTIATE_TEST_SUITE_P(Kinds, MemoryPairEndings, ::testing::Values(Kind::memory), name_of);
using SocketEndings = Endings;
INSTANTIATE_TEST_SUITE_P(Kinds, SocketEndings, kinds_where(has_socket), name_of);
using BareSocketEndings = Endings;
INSTANTIATE_TEST_SUITE_P(Kinds, BareSocketEndings, kinds_where(has_bare_socket), name_of);

TEST_P(Endings, PeerEndsItsSide) {
  queue_at_the_left();
  EXPECT_TRUE(right_.write("last"));
  right_.end();
  run_until(loop_, [&] { return left_log_.log == "end "; });
  EXPECT_EQ(left_log_.received, "last");
  EXPECT_FALSE(left_.is_writable());
  EXPECT_TRUE(left_.is_open());
  right_.resume();
  run_until_both_are_closed();
  EXPECT_TRUE(right_log_.received == sent_) << "what was queued is sent all the same";
  EXPECT_FALSE(left_log_.error || right_log_.error);
}

TEST_P(Endings, PeerEndsItsSideAndOursStaysOpen) {
  left_.set_half_open(true);
  right_.end();
  run_until(loop_, [&] { return left_log_.log == "end "; });
  EXPECT_TRUE(left_.write("more"));
  run_until(loop_, [&] { return right_log_.received == "more"; });
  EXPECT_TRUE(left_.is_writable());
  left_.end();
  run_until_both_are_closed();
  EXPECT_FALSE(left_log_.error || right_log_.error);
}

TEST_P(Endings, EofIsReportedOnceWhenHalfOpen) {
  left_.set_half_open(true);
  right_.end();
  run_until(loop_, [&] { return left_log_.log == "end "; });
  run_turns(loop_, 2);
  const std::uint64_t events = loop_.metrics().events;
  run_turns(loop_, 10);
  EXPECT_EQ(loop_.metrics().events, events);
}

TEST_P(Endings, LocalSideEnds) {
  right_.set_half_open(true);
  left_.end();
  EXPECT_FALSE(left_.is_writable());
  run_until(loop_, [&] { return right_log_.log == "end "; });
  EXPECT_TRUE(right_.write("answer"));
  run_until(loop_, [&] { return left_log_.received == "answer"; });
  EXPECT_TRUE(left_.is_open());
  right_.end();
  run_until_both_are_closed();
  EXPECT_EQ(left_log_.log, "end closed ");
  EXPECT_FALSE(left_log_.error || right_log_.error);
}

TEST_P(Endings, LocalSideEndsInCallback) {
  left_.set_half_open(true);
  right_log_.use = [this](Bytes bytes) {
    if (right_log_.data_calls > 1) return bytes.size();
    EXPECT_TRUE(right_.write("bye"));
    right_.end();
    EXPECT_FALSE(right_.is_writable());
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("go"));
  run_until(loop_, [&] { return left_log_.log == "end "; });
  EXPECT_EQ(left_log_.received, "bye");
  EXPECT_TRUE(left_.write(" on"));
  left_.end();
  run_until_both_are_closed();
  EXPECT_EQ(right_log_.received, "go on");
  EXPECT_EQ(right_log_.log, "end closed ");
}

TEST_P(Endings, LocalSideEndsWithQueue) {
  queue_at_the_left();
  left_.end();
  EXPECT_FALSE(left_.write("no"));
  right_.resume();
  run_until_both_are_closed();
  EXPECT_TRUE(right_log_.received == sent_);
  EXPECT_FALSE(left_log_.error || right_log_.error);
}

TEST_P(Endings, BothSidesEndAtOnce) {
  EXPECT_TRUE(left_.write("from the left"));
  EXPECT_TRUE(right_.write("from the right"));
  left_.end();
  right_.end();
  run_until_both_are_closed();
  EXPECT_EQ(left_log_.received, "from the right");
  EXPECT_EQ(right_log_.received, "from the left");
  EXPECT_EQ(left_log_.log, "end closed ");
  EXPECT_EQ(right_log_.log, "end closed ");
  EXPECT_FALSE(left_log_.error || right_log_.error);
}

TEST_P(Endings, LocalSideClosesWithUnreadInput) {
  EXPECT_TRUE(right_.write(pattern(60'000)));
  EXPECT_TRUE(left_.write("the last reply"));
  left_.close();
  run_until_both_are_closed();
  EXPECT_EQ(right_log_.received, "the last reply");
  EXPECT_EQ(right_log_.log, "end closed ");
  EXPECT_FALSE(left_log_.error || right_log_.error);
  EXPECT_EQ(left_log_.received, "");
}

// A Stream that waits for the peer's EOF gets it once its own was delivered.
TEST_P(Endings, LocalSideClosesWithoutLinger) {
  right_.set_half_open(true);
  EXPECT_TRUE(left_.write("the last reply"));
  left_.close(Linger::no);
  run_until(loop_, [&] { return right_log_.log == "end "; });
  run_turns(loop_, 5);
  EXPECT_EQ(left_log_.closed_calls, has_bare_socket() ? 1 : 0);
  EXPECT_EQ(right_log_.received, "the last reply");
  right_.end();
  run_until_both_are_closed();
  EXPECT_FALSE(left_log_.error || right_log_.error);
}

TEST_P(Endings, LocalSideClosesWithoutLingerWithQueue) {
  queue_at_the_left();
  left_.close(Linger::no);
  right_.resume();
  run_until_both_are_closed();
  EXPECT_TRUE(right_log_.received == sent_);
  EXPECT_FALSE(left_log_.error || right_log_.error);
}

TEST_P(Endings, LocalSideClosesWithoutLingerWithUnreadInput) {
  right_.set_half_open(true);
  EXPECT_TRUE(right_.write(pattern(60'000)));
  EXPECT_TRUE(left_.write("the last reply"));
  left_.close(Linger::no);
  left_.close(Linger::no);
  run_until(loop_, [&] { return right_log_.log == "end "; });
  EXPECT_TRUE(right_.write(pattern(60'000)));
  run_turns(loop_, 5);
  EXPECT_EQ(left_log_.closed_calls, 0);
  EXPECT_EQ(right_log_.received, "the last reply");
  right_.end();
  run_until_both_are_closed();
  EXPECT_FALSE(left_log_.error || right_log_.error);
}

// Unread input may be the beginning of more data.
TEST_P(Endings, LocalSideClosesWithoutLingerAndLeavesInput) {
  right_.set_half_open(true);
  left_log_.use = [&](Bytes) {
    EXPECT_TRUE(left_.write("the last reply"));
    left_.close(Linger::no);
    return 1;
  };
  EXPECT_TRUE(right_.write("12"));
  run_until(loop_, [&] { return right_log_.log == "end "; });
  EXPECT_TRUE(right_.write("345"));
  run_turns(loop_, 5);
  EXPECT_EQ(left_log_.closed_calls, 0);
  EXPECT_EQ(right_log_.received, "the last reply");
  right_.end();
  run_until_both_are_closed();
  EXPECT_FALSE(left_log_.error || right_log_.error);
}

TEST_P(Endings, LocalSideClosesWithoutLingerAfterLeavingInput) {
  right_.set_half_open(true);
  left_log_.use = [&](Bytes) { return 0; };
  EXPECT_TRUE(right_.write("12"));
  run_until(loop_, [&] { return left_.unread().size() == 2; });
  EXPECT_TRUE(left_.write("the last reply"));
  left_.close(Linger::no);
  run_until(loop_, [&] { return right_log_.log == "end "; });
  run_turns(loop_, 5);
  EXPECT_EQ(left_log_.closed_calls, 0);
  right_.end();
  run_until_both_are_closed();
}

TEST_P(Endings, LocalSideClosesWithQueue) {
  queue_at_the_left();
  left_.close();
  EXPECT_FALSE(left_.is_writable());
  run_turns(loop_, 5);
  EXPECT_EQ(left_log_.closed_calls, 0);
  right_.resume();
  run_until_both_are_closed();
  EXPECT_TRUE(right_log_.received == sent_);
  EXPECT_FALSE(left_log_.error || right_log_.error);
}

TEST_P(Endings, LocalSideIsDestroyedWithQueue) {
  queue_at_the_left();
  {
    const Stream gone = std::move(left_);
  }
  right_.resume();
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_TRUE(right_log_.received == sent_);
  EXPECT_FALSE(right_log_.error);
  EXPECT_EQ(left_log_.log, "");
}

TEST_P(Endings, LocalSideAborts) {
  queue_at_the_left();
  left_.abort();
  EXPECT_FALSE(left_.is_open());
  right_.resume();
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_LT(right_log_.received.size(), sent_.size());
  // A unix socket resets only if input was not read.
  if (knows_resets()) {
    EXPECT_TRUE(is_reset(right_log_.error)) << right_log_.error;
  } else {
    EXPECT_EQ(right_log_.log, "end closed ");
  }
  EXPECT_EQ(left_log_.log, "");
}

TEST_P(Endings, PeerResets) {
  right_.pause();
  EXPECT_TRUE(left_.write("unread"));
  run_turns(loop_, 3);
  right_.abort();
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, std::errc::connection_reset);
  EXPECT_EQ(left_log_.log, "closed ");
  EXPECT_FALSE(left_.write("x"));
}

TEST_P(MemoryPairEndings, PeerResetsAfterItsEnd) {
  right_.set_half_open(true);
  left_.end();
  run_until(loop_, [&] { return right_log_.log == "end "; });
  left_.abort();
  EXPECT_EQ(right_log_.closed_calls, 0);  // Never from inside a call.
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(right_log_.error, std::errc::connection_reset);
}

TEST_P(BareSocketEndings, PeerProcessIsKilledWhileIdle) {
  if (in_a_world) GTEST_SKIP() << "the peer is another process";
  move_right_to_a_process();
  kill_right();
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.log, "end closed ");
  EXPECT_FALSE(left_log_.error);
}

TEST_P(Endings, PeerProcessIsKilledDuringWrite) {
  if (in_a_world && has_bare_socket()) GTEST_SKIP() << "the peer is another process";
  right_.pause();
  if (has_bare_socket()) move_right_to_a_process();
  EXPECT_TRUE(left_.write(pattern(kMoreThanAKernelTakes)));
  EXPECT_GT(left_.queued(), 0u);
  kill_right();
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_TRUE(is_reset(left_log_.error) || left_log_.error == std::errc::broken_pipe)
      << left_log_.error.message();
  EXPECT_EQ(left_.queued(), 0u);
  EXPECT_FALSE(left_.write("x"));
}

TEST_P(Endings, LoopIsDestroyedFirst) {
  if (in_a_world) GTEST_SKIP() << "the peer is a copy of a descriptor";
  queue_at_the_left();
  const int peer = is_in_memory() ? -1 : ::fcntl(right_.fd(), F_DUPFD_CLOEXEC, 0);
  owned_.reset();
  EXPECT_FALSE(left_.is_open());
  EXPECT_FALSE(left_.write("x"));
  left_.end();
  left_.close();
  left_.abort();
  {
    const Stream gone = std::move(left_);
  }
  EXPECT_EQ(left_log_.log, "");
  if (!is_in_memory()) expect_to_be_cut_short(peer);
}

TEST_P(SocketEndings, LoopIsDestroyedDuringLinger) {
  if (in_a_world) GTEST_SKIP() << "the peer is a copy of a descriptor";
  const std::vector<int> before = open_fds();
  queue_at_the_left();
  const int peer = ::fcntl(right_.fd(), F_DUPFD_CLOEXEC, 0);
  {
    const Stream gone = std::move(left_);
  }
  owned_.reset();
  expect_to_be_cut_short(peer);
  EXPECT_LT(open_fds().size(), before.size());
}

// ---- deadlines, on a clock that the test moves

using EndingsInTime = TimedStreamTest;

INSTANTIATE_TEST_SUITE_P(Kinds, EndingsInTime, all_kinds(), name_of);

TEST_P(EndingsInTime, IdleTimeoutExpires) {
  left_.set_idle_timeout(10s);
  turns();
  pass(9s);
  EXPECT_TRUE(right_.write("still here"));
  turn_until([&] { return left_log_.received == "still here"; });
  pass(9s);
  EXPECT_EQ(left_log_.log, "");
  pass(1s + kTicks);
  turn_until([&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, Error::idle_timeout);
  turn_until([&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(right_log_.log, "end closed ");
  EXPECT_FALSE(right_log_.error);
}

TEST_P(EndingsInTime, WriteTimeoutExpires) {
  left_.set_write_timeout(10s);
  right_.pause();
  turns();
  pass(60s);
  EXPECT_EQ(left_log_.log, "") << "nothing waits to be sent";
  const std::string sent = pattern(kMoreThanAKernelTakes);
  EXPECT_TRUE(left_.write(sent));
  turns();
  const FullKernel full;
  pass(9s);
  EXPECT_EQ(left_log_.log, "");
  pass(1s);
  turn_until([&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, Error::write_timeout);
  right_.resume();
  turn_until([&] { return right_log_.closed_calls == 1; });
  EXPECT_LT(right_log_.received.size(), sent.size());
  if (knows_resets()) {
    EXPECT_TRUE(is_reset(right_log_.error)) << right_log_.error << ": cut short looks whole";
  }
}

TEST_P(EndingsInTime, PeerNeverReadsQueueAfterClose) {
  right_.pause();
  const std::string sent = pattern(kMoreThanAKernelTakes);
  EXPECT_TRUE(left_.write(sent));
  left_.close();
  turns();
  const FullKernel full;
  pass(9s);
  EXPECT_EQ(left_log_.closed_calls, 0);
  pass(1s + kTicks);
  turn_until([&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, Error::write_timeout) << "something was lost";
  right_.resume();
  turn_until([&] { return right_log_.closed_calls == 1; });
  EXPECT_LT(right_log_.received.size(), sent.size());
}

TEST_P(EndingsInTime, PeerNeverEndsAfterClose) {
  right_.set_half_open(true);
  EXPECT_TRUE(left_.write("bye"));
  left_.close();
  turn_until([&] { return right_log_.log == "end "; });
  for (int second = 0; second < 9; ++second) {
    EXPECT_TRUE(right_.write("and another thing"));
    pass(1s + kTicks);
  }
  EXPECT_EQ(left_log_.closed_calls, 0);
  EXPECT_TRUE(right_.is_open());
  pass(1s + kTicks);
  turn_until([&] { return left_log_.closed_calls == 1; });
  EXPECT_FALSE(left_log_.error);
  EXPECT_EQ(left_log_.received, "");
}

// ---- pipes have one direction only; nothing here waits for a deadline

class EndingsOfPipes : protected OwnClock, public ::testing::Test {
 protected:
  void SetUp() override {
    if (in_a_world) GTEST_SKIP() << "a World has no pipes";
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    reader_ = std::move(*Stream::adopt(loop_, fds[0]));
    writer_ = std::move(*Stream::adopt(loop_, fds[1]));
    reader_.start(reader_log_);
    writer_.start(writer_log_);
  }

  std::unique_ptr<Loop> owned_ = *Loop::create({.clock = &clock_});
  Loop& loop_ = *owned_;
  Stream reader_;
  Stream writer_;
  Recorder reader_log_;
  Recorder writer_log_;
};

TEST_F(EndingsOfPipes, WriterEnds) {
  const std::string sent = pattern(1'000'000);
  EXPECT_TRUE(writer_.write(sent));
  writer_.end();
  turn_until(loop_, [&] { return reader_log_.closed_calls + writer_log_.closed_calls == 2; });
  EXPECT_TRUE(reader_log_.received == sent);
  EXPECT_EQ(reader_log_.log, "end closed ");
  EXPECT_FALSE(reader_log_.error || writer_log_.error);
}

TEST_F(EndingsOfPipes, WriterIsDestroyed) {
  const std::string sent = pattern(1'000'000);
  EXPECT_TRUE(writer_.write(sent));
  {
    const Stream gone = std::move(writer_);
  }
  turn_until(loop_, [&] { return reader_log_.closed_calls == 1; });
  EXPECT_TRUE(reader_log_.received == sent);
  EXPECT_FALSE(reader_log_.error);
  EXPECT_EQ(writer_log_.log, "");
}

TEST_F(EndingsOfPipes, ReaderDisconnects) {
  EXPECT_TRUE(writer_.write("x"));
  turn_until(loop_, [&] { return reader_log_.received == "x"; });
  {
    const Stream gone = std::move(reader_);
  }
  turn_until(loop_, [&] { return writer_log_.closed_calls == 1; });
  EXPECT_EQ(writer_log_.error, std::errc::broken_pipe);
}

TEST_F(EndingsOfPipes, ReaderDisconnectsDuringWrite) {
  reader_.pause();
  EXPECT_TRUE(writer_.write(pattern(1'000'000)));
  EXPECT_GT(writer_.queued(), 0u);
  {
    const Stream gone = std::move(reader_);
  }
  turn_until(loop_, [&] { return writer_log_.closed_calls == 1; });
  EXPECT_EQ(writer_log_.error, std::errc::broken_pipe);
}

TEST_F(EndingsOfPipes, WriterTimesOutWhenIdle) {
  writer_.set_idle_timeout(10s);
  clock_.advance(11s);
  turn_until(loop_, [&] { return writer_log_.closed_calls == 1; });
  EXPECT_EQ(writer_log_.error, Error::idle_timeout);
}

// ---- connections that cannot be made

struct Attempt {
  explicit Attempt(const Address& address) : loop(*Loop::create()) {
    connecting = connect(*loop, address, [this](Result<Stream> result) {
      ++results;
      if (!result) error = result.error();
    });
  }
  std::error_code result() {
    run_until(*loop, [this] { return results == 1; });
    return error;
  }

  std::unique_ptr<Loop> loop;
  Connecting connecting;
  std::error_code error;
  int results = 0;
};

TEST(ConnectFailures, MissingListenerIsReported) {
  EXPECT_EQ(Attempt(closed_ipv4()).result(), std::errc::connection_refused);
}

TEST(ConnectFailures, MissingListenerAtPathIsReported) {
  if (in_a_world) GTEST_SKIP() << "the path is a file";
  const std::string path = "spate_endings_test.sock";
  const Address address = *Address::path(path);
  std::remove(path.c_str());
  EXPECT_EQ(Attempt(address).result(), std::errc::no_such_file_or_directory);
  const int left_behind = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(left_behind, static_cast<const sockaddr*>(address.data()),
                   static_cast<socklen_t>(address.size())),
            0);
  ::close(left_behind);
  EXPECT_EQ(Attempt(address).result(), std::errc::connection_refused);
  std::remove(path.c_str());
}

// A new network namespace has no route. Unprivileged processes may enter one only if they have a
// single thread, so the test forks.
TEST(ConnectFailures, MissingRouteIsReported) {
  constexpr int kNotPermitted = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
      ::_exit(kNotPermitted);
    const std::error_code error = Attempt(*Address::parse("192.0.2.1:80")).result();
    ::_exit(error == std::errc::network_unreachable ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotPermitted)
    GTEST_SKIP() << no_network_namespace();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace spate::testing
