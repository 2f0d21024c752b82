// Bytes through a Stream, over each kind of connection.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "base/fault.h"
#include "streams/harness.h"

namespace spate::testing {
namespace {

using Transfer = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, Transfer, all_kinds(), name_of);
using ResettingTransfer = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, ResettingTransfer, kinds_where(knows_resets), name_of);
// TCP and TLS may be readable before they are writable.
using LocalTransfer = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, LocalTransfer, ::testing::Values(Kind::memory, Kind::local),
                         name_of);

TEST_P(Transfer, CarriesWrites) {
  EXPECT_TRUE(left_.write("hello"));
  run_until(loop_, [&] { return right_log_.received == "hello"; });
  EXPECT_TRUE(right_.write("you"));
  run_until(loop_, [&] { return left_log_.received == "you"; });
}

TEST_P(Transfer, CarriesMoreThanKernelBuffers) {
  const std::string sent = pattern(20'000'000);
  EXPECT_TRUE(left_.write(sent));
  EXPECT_GT(left_.queued(), 0u);
  run_until(loop_, [&] { return right_log_.received.size() == sent.size(); });
  EXPECT_TRUE(right_log_.received == sent);
  EXPECT_EQ(left_.queued(), 0u);
  EXPECT_EQ(left_log_.log, "drained ");
}

TEST_P(Transfer, EchoesInOrderForAnySize) {
  right_log_.use = [this](Bytes bytes) {
    EXPECT_TRUE(right_.write(bytes));
    return bytes.size();
  };
  std::string sent;
  for (std::size_t i = 0; i < 300; ++i) {
    const std::string part = pattern(i * i % 9000);
    sent += part;
    EXPECT_TRUE(left_.write(part));
  }
  run_until(loop_, [&] { return left_log_.received.size() >= sent.size(); });
  EXPECT_TRUE(left_log_.received == sent);
}

TEST_P(Transfer, DeliversLeftoverAgain) {
  right_log_.use = [](Bytes bytes) { return bytes.size() / 10 * 10; };
  std::string sent;
  for (int i = 0; i < 100; ++i) {
    sent += pattern(37);
    EXPECT_TRUE(left_.write(pattern(37)));
    loop_.run(Run::no_wait);
  }
  run_until(loop_, [&] { return right_log_.received.size() == 3700; });
  EXPECT_TRUE(right_log_.received == sent);
}

TEST_P(Transfer, CorksWritesOfCallback) {
  right_log_.use = [this](Bytes bytes) {
    EXPECT_TRUE(right_.write("[") && right_.write(bytes) && right_.write("]"));
    EXPECT_EQ(right_.queued(), bytes.size() + 2);
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("x"));
  run_until(loop_, [&] { return left_log_.received == "[x]"; });
  EXPECT_EQ(left_log_.data_calls, 1);
}

TEST_P(Transfer, KeepsOrderOfWritesOfCallback) {
  right_log_.use = [this](Bytes bytes) {
    Buffer buffer;
    EXPECT_TRUE(right_.write(bytes.subspan(2)) && right_.write("-"));
    EXPECT_TRUE(right_.write(bytes.first(1)) && buffer.append(std::string_view(" of ")));
    EXPECT_TRUE(right_.write(std::move(buffer)) && right_.write(bytes));
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("abcd"));
  run_until(loop_, [&] { return left_log_.received.size() == 12; });
  EXPECT_EQ(left_log_.received, "cd-a of abcd");
}

TEST_P(Transfer, EchoesPartsOfInputInAnyOrder) {
  const std::pair<std::size_t, std::size_t> parts[] = {{0, 1}, {2, 3}, {0, 5}, {4, 1}, {1, 4}};
  right_log_.use = [&](Bytes bytes) {
    for (const auto& [from, size] : parts) EXPECT_TRUE(right_.write(bytes.subspan(from, size)));
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("abcde"));
  run_until(loop_, [&] { return left_log_.received.size() == 14; });
  EXPECT_EQ(left_log_.received, "acdeabcdeebcde");
}

TEST_P(Transfer, CorksMoreThanBufferHolds) {
  std::string expected;
  right_log_.use = [&](Bytes bytes) {
    for (std::size_t i = 0; i < 40; ++i) {
      expected += pattern(4'096 - i % 3);
      EXPECT_TRUE(right_.write(pattern(4'096 - i % 3)));
    }
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("x"));
  run_until(loop_, [&] { return left_log_.received.size() >= 40 * 4'094; });
  run_turns(loop_, 3);
  EXPECT_TRUE(left_log_.received == expected);
}

TEST_P(Transfer, ReadsNothingWhilePaused) {
  right_.pause();
  EXPECT_TRUE(left_.write("later"));
  for (int i = 0; i < 5; ++i) loop_.run(Run::no_wait);
  EXPECT_EQ(right_log_.received, "");
  right_.resume();
  run_until(loop_, [&] { return right_log_.received == "later"; });
}

TEST_P(LocalTransfer, ReadsNothingAfterPauseInOnDrained) {
  left_.pause();
  ASSERT_TRUE(right_.set_limits({.low = 0, .high = 0}));
  while (right_.queued() == 0) EXPECT_TRUE(right_.write(pattern(10'000)));
  left_log_.use = [this](Bytes bytes) {  // `right` may be read and written again.
    if (left_log_.data_calls == 1) EXPECT_TRUE(left_.write("later"));
    return bytes.size();
  };
  right_log_.when_drained = [this] { right_.pause(); };
  left_.resume();
  run_until(loop_, [&] { return right_.is_paused(); });
  run_turns(loop_, 5);
  EXPECT_EQ(right_log_.received, "");
  right_.resume();
  run_until(loop_, [&] { return right_log_.received == "later"; });
}

TEST_P(Transfer, DeliversLeftoverOnResume) {
  bool ready = false;
  right_log_.use = [&](Bytes bytes) { return ready ? bytes.size() : 0; };
  EXPECT_TRUE(left_.write("wait"));
  run_until(loop_, [&] { return right_log_.data_calls == 1; });
  right_.pause();
  loop_.run(Run::no_wait);
  ready = true;
  right_.resume();
  EXPECT_EQ(right_log_.received, "");
  run_until(loop_, [&] { return right_log_.received == "wait"; });
}

TEST_P(Transfer, HandlerMayNotLeaveMoreThanMaxUnread) {
  ASSERT_TRUE(right_.set_limits({.max_unread = 1000}));
  right_log_.use = [](Bytes) { return std::size_t{0}; };
  Timer talk(loop_, [this] { left_.write(pattern(300)); });
  ASSERT_TRUE(talk.start(Nanos{0}, Nanos{100'000}));
  right_log_.when_closed = [&] { talk.stop(); };
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(right_log_.error, Error::unread_full);
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  if (knows_resets()) {
    EXPECT_TRUE(is_reset(left_log_.error)) << left_log_.error;
  }
}

TEST_P(ResettingTransfer, ExceedingMaxUnreadResetsPeer) {
  ASSERT_TRUE(right_.set_limits({.max_unread = 1000}));
  right_log_.use = [](Bytes) { return std::size_t{0}; };
  EXPECT_TRUE(left_.write(pattern(1300)));
  run_until(loop_, [&] { return right_log_.data_calls == 1; });
  left_.end();
  run_until(loop_, [&] { return left_log_.closed_calls + right_log_.closed_calls == 2; });
  EXPECT_EQ(right_log_.error, Error::unread_full);
  EXPECT_TRUE(is_reset(left_log_.error)) << left_log_.error;
}

TEST_P(Transfer, HandlerMayLeaveUpToMaxUnread) {
  ASSERT_TRUE(right_.set_limits({.max_unread = 1000}));
  right_log_.use = [](Bytes bytes) { return bytes.size() > 1000 ? bytes.size() : 0; };
  EXPECT_TRUE(left_.write(pattern(1000)));
  run_until(loop_, [&] { return right_log_.data_calls == 1; });
  EXPECT_TRUE(left_.write("!"));
  run_until(loop_, [&] { return right_log_.received == pattern(1000) + "!"; });
}

// A handler that pauses cannot limit the size of one read.
TEST_P(Transfer, LeftoverOfOneReadMayExceedMaxUnreadUntilNext) {
  ASSERT_TRUE(right_.set_limits({.max_unread = 1000}));
  right_log_.use = [this](Bytes) {
    right_.pause();
    return std::size_t{0};
  };
  EXPECT_TRUE(left_.write(pattern(1300)));
  run_until(loop_, [&] { return right_log_.data_calls == 1; });
  EXPECT_TRUE(left_.write("!"));
  for (int turn = 0; turn < 10; ++turn) loop_.run(Run::no_wait);
  EXPECT_EQ(right_.unread().size(), 1300u);
  EXPECT_EQ(right_log_.closed_calls, 0);
  right_log_.use = [](Bytes bytes) { return bytes.size(); };
  right_.resume();
  run_until(loop_, [&] { return right_log_.received == pattern(1300) + "!"; });
}

// ---- turns

TEST_P(Transfer, EndlessInputLeavesTurnsToOtherStreams) {
  const std::string piece = pattern(64 * 1024);  // The size of one read.
  right_log_.use = [&](Bytes bytes) {
    if (right_log_.data_calls < 1'000) EXPECT_TRUE(left_.write(piece));
    return bytes.size();
  };
  Result<std::pair<Stream, Stream>> other = make_pair(loop_, GetParam());
  Recorder other_log;
  int calls_before = 0;
  other_log.use = [&](Bytes bytes) {
    calls_before = right_log_.data_calls;
    return bytes.size();
  };
  other->second.start(other_log);
  EXPECT_TRUE(left_.write(piece) && other->first.write("x"));
  run_until(loop_, [&] { return other_log.received == "x"; });
  EXPECT_LE(calls_before, 100);
}

TEST(Fairness, SenderToFastReaderYieldsToOthers) {
  auto loop = std::move(*Loop::create());
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  Stream stream = std::move(*Stream::adopt(*loop, fds[0]));
  ASSERT_TRUE(stream.set_rate_limits(
      {.read = {}, .write = {.bytes_per_second = 1'000'000'000, .burst = 1'000'000'000}}));
  FaultPlan plan;
  const auto read_all = [&] {
    std::byte room[64 * 1024];
    while (::read(fds[1], room, sizeof(room)) > 0) {
    }
  };
  for (std::uint64_t i = 1; i <= 100; ++i) plan.before_nth(SystemCall::send, i, read_all);
  {
    const FaultScope scope(plan);
    EXPECT_TRUE(stream.write(pattern(4'000'000)));
    EXPECT_LE(plan.calls(SystemCall::send), 20u);
  }
  EXPECT_GT(stream.queued(), 0u);
  ::close(fds[1]);
}

TEST(EmptyStream, BehavesLikeClosedStream) {
  Stream nobodys;
  EXPECT_FALSE(nobodys.is_open() || nobodys.is_writable() || nobodys.is_full());
  EXPECT_FALSE(nobodys.write("x") || nobodys.write(Buffer()));
  EXPECT_EQ(nobodys.queued(), 0u);
  EXPECT_EQ(nobodys.send_file(0, 0, 1), std::errc::broken_pipe);
  EXPECT_FALSE(nobodys.set_limits({}) || nobodys.set_deadline(Nanos{1}));
  nobodys.pause();
  nobodys.resume();
  nobodys.end();
  nobodys.close();
  nobodys.abort();
  nobodys.set_idle_timeout(Nanos{1});
  EXPECT_EQ(nobodys.fd(), -1);
  EXPECT_EQ(nobodys.set_no_delay(true), std::errc::bad_file_descriptor);
  EXPECT_EQ(nobodys.release().error(), std::errc::bad_file_descriptor);
  EXPECT_EQ(nobodys.peer_address().family(), Address::Family::none);
}

TEST_P(Transfer, EndsBothSidesGracefully) {
  EXPECT_TRUE(left_.write("last"));
  left_.end();
  EXPECT_FALSE(left_.is_writable());
  EXPECT_FALSE(left_.write("no"));
  run_until(loop_, [&] { return left_log_.closed_calls + right_log_.closed_calls == 2; });
  EXPECT_EQ(right_log_.received, "last");
  EXPECT_EQ(right_log_.log, "end closed ");
  EXPECT_EQ(left_log_.log, "end closed ");
  EXPECT_FALSE(left_log_.error);
  EXPECT_FALSE(right_log_.error);
  EXPECT_FALSE(left_.is_open());
}

TEST_P(Transfer, EndsWithoutKernelRegistrationChanges) {
  EXPECT_TRUE(left_.write("x"));
  run_until(loop_, [&] { return right_log_.received == "x"; });
  const std::uint64_t before = loop_.metrics().kernel_calls.modify;
  left_.end();
  run_until(loop_, [&] { return left_log_.closed_calls + right_log_.closed_calls == 2; });
  run_turns(loop_, 2);
  EXPECT_EQ(loop_.metrics().kernel_calls.modify, before);
}

TEST_P(Transfer, StaysHalfOpenIfConfigured) {
  right_.set_half_open(true);
  left_.end();
  run_until(loop_, [&] { return right_log_.log == "end "; });
  EXPECT_TRUE(right_.write("still here"));
  run_until(loop_, [&] { return left_log_.received == "still here"; });
  right_.end();
  run_until(loop_, [&] { return left_log_.closed_calls + right_log_.closed_calls == 2; });
  EXPECT_FALSE(left_log_.error || right_log_.error);
}

TEST_P(Transfer, SendsQueuedDataAfterStreamIsDestroyed) {
  const std::string sent = pattern(5'000'000);
  EXPECT_TRUE(left_.write(sent));
  EXPECT_TRUE(right_.write("unread"));
  {
    const Stream gone = std::move(left_);
  }
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_TRUE(right_log_.received == sent);
  EXPECT_FALSE(right_log_.error);
  EXPECT_EQ(left_log_.log, "");
}

TEST_P(Transfer, AbortIsReportedToPeer) {
  EXPECT_TRUE(right_.write("unread"));
  left_.abort();
  EXPECT_FALSE(left_.is_open());
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  if (knows_resets()) {
    EXPECT_TRUE(is_reset(right_log_.error)) << right_log_.error;
  }
  EXPECT_EQ(left_log_.log, "");
}

TEST_P(Transfer, MayBeDestroyedInsideItsCallback) {
  right_log_.use = [this](Bytes bytes) {
    EXPECT_TRUE(right_.write("goodbye"));
    {
      const Stream gone = std::move(right_);
    }
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("x"));
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.received, "goodbye");
  EXPECT_FALSE(left_log_.error);
  EXPECT_EQ(right_log_.log, "");
}

TEST_P(Transfer, ClosesWhenIdle) {
  left_.set_idle_timeout(std::chrono::milliseconds(20));
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, Error::idle_timeout);
}

TEST_P(Transfer, StopsReadingWhenPeerDoesNotRead) {
  ASSERT_TRUE(right_.set_limits({.low = 1000, .high = 100'000, .pause_reading = true}));
  right_log_.use = [this](Bytes bytes) {
    EXPECT_TRUE(right_.write(bytes));
    return bytes.size();
  };
  left_.pause();
  const std::string sent = pattern(20'000'000);
  EXPECT_TRUE(left_.write(sent));
  for (int i = 0; i < 2000; ++i) loop_.run(Run::no_wait);
  EXPECT_LT(right_.queued(), 400'000u);
  EXPECT_GT(left_.queued(), 0u);
  left_.resume();
  run_until(loop_, [&] { return left_log_.received.size() == sent.size(); });
  EXPECT_TRUE(left_log_.received == sent);
}

TEST_P(Transfer, ClosesWhenQueueOverflows) {
  ASSERT_TRUE(left_.set_limits({.low = 0, .high = 10, .max = 1'000'000}));
  right_.pause();
  bool fits = true;
  for (int i = 0; i < 100 && fits; ++i) fits = left_.write(pattern(1'000'000));
  EXPECT_FALSE(fits);
  EXPECT_EQ(left_log_.log, "");
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, Error::queue_full);
}

TEST_P(Transfer, DefersInputWhileItsCallbackRunsLoop) {
  right_log_.use = [this](Bytes bytes) {
    if (right_log_.data_calls == 1) {
      EXPECT_TRUE(left_.write("second"));
      for (int i = 0; i < 3; ++i) loop_.run(Run::no_wait);
      EXPECT_EQ(right_log_.data_calls, 1);
      return std::size_t{2};
    }
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("first"));
  run_until(loop_, [&] { return right_log_.received.size() == 11; });
  EXPECT_EQ(right_log_.received, "firstsecond");
}

TEST_P(Transfer, MayBeDestroyedAfterItsCallbackHasRunLoop) {
  right_log_.use = [this](Bytes bytes) {
    left_.abort();
    for (int i = 0; i < 3; ++i) loop_.run(Run::no_wait);
    {
      const Stream gone = std::move(right_);
    }
    for (int i = 0; i < 3; ++i) loop_.run(Run::no_wait);
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("x"));
  run_until(loop_, [&] { return right_log_.data_calls == 1; });
  EXPECT_EQ(right_log_.log, "");
}

TEST_P(Transfer, OutlivesItsLoop) {
  EXPECT_TRUE(left_.write("x"));
  owned_.reset();
  EXPECT_FALSE(left_.is_open());
  EXPECT_FALSE(left_.write("y"));
}

}  // namespace
}  // namespace spate::testing
