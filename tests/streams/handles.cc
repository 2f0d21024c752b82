// The operations of an owner on a Stream at any moment, and their effects on the bytes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "base/fault.h"
#include "spate/error.h"
#include "streams/harness.h"
#include "support/system_error.h"
#include "sys/socket.h"

namespace spate::testing {
namespace {

using Handles = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, Handles, all_kinds(), name_of);
// Only a memory_pair() has room for a known number of bytes.
using MemoryPairHandles = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, MemoryPairHandles, ::testing::Values(Kind::memory), name_of);
using InMemoryHandles = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, InMemoryHandles, kinds_where(is_in_memory), name_of);
using BareSocketHandles = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, BareSocketHandles, kinds_where(has_bare_socket), name_of);
using ResettingHandles = StreamTest;
INSTANTIATE_TEST_SUITE_P(Kinds, ResettingHandles, kinds_where(knows_resets), name_of);

// ---- written bytes are lost with the connection

TEST_P(Handles, DataWrittenBeforeAbortIsNotSent) {
  Result<std::pair<Stream, Stream>> other = make_pair(loop_, GetParam());
  Recorder other_log;
  Recorder answers;
  other->second.start(other_log);
  other->first.start(answers);
  other_log.use = [&](Bytes bytes) {
    EXPECT_TRUE(other->second.write("reply to the other"));
    return bytes.size();
  };
  right_log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(right_.write("reply to one who has gone"));
    right_.abort();
    EXPECT_EQ(right_.queued(), 0u);
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("request"));
  EXPECT_TRUE(other->first.write("request"));
  run_until(loop_, [&] { return answers.received.size() >= 18; });
  run_turns(loop_, 5);
  EXPECT_EQ(answers.received, "reply to the other");
  EXPECT_EQ(left_log_.received, "");
}

TEST_P(Handles, InPlaceEchoBeforeAbortIsNotSent) {
  Result<std::pair<Stream, Stream>> other = make_pair(loop_, GetParam());
  Recorder other_log;
  Recorder answers;
  other->second.start(other_log);
  other->first.start(answers);
  other_log.use = [&](Bytes bytes) {
    EXPECT_TRUE(other->second.write(bytes));
    return bytes.size();
  };
  right_log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(right_.write(bytes));
    right_.abort();
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("mine"));
  EXPECT_TRUE(other->first.write("other"));
  run_until(loop_, [&] { return answers.received.size() >= 5; });
  run_turns(loop_, 5);
  EXPECT_EQ(answers.received, "other");
}

// ---- move assignment

TEST_P(Handles, MoveAssignmentClosesOldStream) {
  Result<std::pair<Stream, Stream>> other = make_pair(loop_, GetParam());
  EXPECT_TRUE(left_.write("bye"));
  left_ = std::move(other->first);
  EXPECT_FALSE(other->first.is_open());
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(right_log_.received, "bye");
  EXPECT_EQ(right_log_.log, "end closed ");
  EXPECT_EQ(left_log_.log, "");
  EXPECT_TRUE(left_.is_open());
}

TEST_P(Handles, SelfAssignmentChangesNothing) {
  Stream& same = left_;
  left_ = std::move(same);
  EXPECT_TRUE(left_.write("still here"));
  run_until(loop_, [&] { return right_log_.received == "still here"; });
}

// ---- releasing

TEST_P(BareSocketHandles, SendDataWrittenInCallbackBeforeRelease) {
  int fd = -1;
  right_log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(right_.write("last words"));
    fd = right_.release().value_or(-1);
    return bytes.size() - 1;  // Bytes that were offered belong to the new owner, used or not.
  };
  EXPECT_TRUE(left_.write("go"));
  run_until(loop_, [&] { return fd >= 0; });
  run_until(loop_, [&] { return left_log_.received == "last words"; });
  EXPECT_TRUE(left_.write("more"));
  run_turns(loop_, 3);
  EXPECT_EQ(right_log_.received, "g");
  Stream again = std::move(*Stream::adopt(loop_, fd));
  Recorder log;
  again.start(log);
  run_until(loop_, [&] { return log.received == "more"; });
}

TEST_P(BareSocketHandles, AreNotReleasedAfterSendFailure) {
  ASSERT_TRUE(left_.set_limits({.low = 0, .high = 10, .max = 1'000}));
  EXPECT_FALSE(left_.write(pattern(1'000'000)));
  EXPECT_FALSE(left_.is_writable());
  EXPECT_EQ(left_.release().error(), Error::queue_full);
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.error, Error::queue_full);
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(right_log_.received, "") << "what is refused is not sent in part";
}

// ---- two ends in one callback

TEST_P(Handles, StreamClosedAndDestroyedInOneCallbackEndsAtOnce) {
  right_log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(right_.write(bytes));
    right_.close();
    right_ = Stream();
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("x"));
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.received, "x");
  EXPECT_EQ(left_log_.log, "end closed ");
  EXPECT_FALSE(left_log_.error);
}

TEST_P(ResettingHandles, FailedAndDestroyedStreamResetsPeer) {
  right_log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(right_.set_limits({.low = 0, .high = 10, .max = 100}));
    EXPECT_TRUE(right_.write("the first half of "));
    EXPECT_FALSE(right_.write(std::string(1'000, 'x')));
    right_ = Stream();
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("x"));
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_TRUE(is_reset(left_log_.error)) << left_log_.error;
}

TEST_P(ResettingHandles, FailedAndEndedStreamResetsPeer) {
  ASSERT_TRUE(right_.set_limits({.low = 0, .high = 0, .max = 0}));
  EXPECT_FALSE(right_.write("x"));
  right_.end();
  run_until(loop_, [&] { return left_log_.closed_calls == 1; });
  EXPECT_EQ(left_log_.log, "closed ");
  EXPECT_TRUE(is_reset(left_log_.error)) << left_log_.error;
}

TEST_P(Handles, AbortPreventsCallbacksThoughHandlerStarts) {
  Recorder late;
  left_.abort();
  left_.start(late);
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  run_turns(loop_, 3);
  EXPECT_EQ(left_log_.log + late.log, "");
}

TEST_P(Handles, StreamStartedTooLateReportsEndOnce) {
  Result<std::pair<Stream, Stream>> pair = make_pair(loop_, GetParam());
  EXPECT_TRUE(pair->first.set_deadline(Nanos{1}));
  run_until(loop_, [&] { return !pair->first.is_open(); });
  Recorder late;
  pair->first.start(late);
  EXPECT_EQ(late.log, "") << "not inside the call";
  run_until(loop_, [&] { return late.closed_calls == 1; });
  EXPECT_EQ(late.error, Error::deadline);
  pair->first.start(late);
  run_turns(loop_, 3);
  EXPECT_EQ(late.log, "closed ");
}

// A callback queued for it must not reach a new Stream at the same address.
TEST_P(Handles, StreamStartedTooLateLeavesNoEventForItsSuccessor) {
  Result<std::pair<Stream, Stream>> pair = make_pair(loop_, GetParam());
  EXPECT_TRUE(pair->first.set_deadline(Nanos{1}));
  run_until(loop_, [&] { return !pair->first.is_open(); });
  Recorder late;
  pair->first.start(late);
  pair->first = Stream();
  EXPECT_EQ(loop_.pending_count(), 0u);
  run_turns(loop_, 3);
  EXPECT_EQ(late.log, "");
}

// The end is reported later, and later still while there is no memory to queue it.
TEST_P(Handles, StreamStartedTooLateMayBeDestroyedBeforeReport) {
  left_.set_idle_timeout(Nanos{3'600'000'000'000});  // Makes room in the heap of deadlines.
  for (std::uint64_t n = 1; n < 8; ++n) {
    Result<std::pair<Stream, Stream>> pair = make_pair(loop_, GetParam());
    Recorder late;
    pair->first.abort();
    {
      FaultPlan plan;
      plan.fail_share(SystemCall::allocate, 1, ENOMEM, n);
      const FaultScope scope(plan);
      std::vector<std::unique_ptr<Timer>> fill;  // Fills the pending queue until it has to grow.
      for (int i = 0; i < 600; ++i) {
        fill.push_back(std::make_unique<Timer>(loop_, [] {}));
        if (!fill.back()->feed()) break;
      }
      pair->first.start(late);
    }
    pair->first = Stream();
    run_turns(loop_, 3);
    EXPECT_EQ(late.log, "");
  }
}

TEST_P(Handles, OnlyEndIsReportedAfterClose) {
  left_.pause();
  ASSERT_TRUE(right_.set_limits({.low = 0, .high = 10}));
  EXPECT_TRUE(right_.write(pattern(8'000'000)));
  ASSERT_TRUE(right_.is_full());
  right_.close();
  left_.resume();
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_EQ(right_log_.log, "closed ");
}

TEST_P(Handles, LeftoverIsNotDeliveredAfterClose) {
  Recorder next;
  right_log_.use = [](Bytes) { return std::size_t{0}; };
  EXPECT_TRUE(left_.write("left"));
  run_until(loop_, [&] { return right_log_.data_calls == 1; });
  right_.start(next);
  right_.close();
  run_until(loop_, [&] { return next.closed_calls == 1; });
  EXPECT_EQ(next.data_calls, 0);
  EXPECT_EQ(next.log, "closed ");
}

// ---- limits

TEST_P(Handles, CorkedBytesCountAgainstLimit) {
  std::vector<bool> taken;
  right_log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(right_.set_limits({.low = 0, .high = 10, .max = 100, .when_full = WhenFull::drop}));
    for (int i = 0; i < 3; ++i) taken.push_back(right_.write(std::string(50, 'x')));
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("go"));
  run_until(loop_, [&] { return left_log_.received.size() == 100; });
  EXPECT_EQ(taken, (std::vector{true, true, false}));
}

TEST_P(MemoryPairHandles, AreFullAboveHigh) {
  right_.pause();
  EXPECT_TRUE(left_.write(pattern(64 * 1024)));  // As much as there is room for.
  ASSERT_TRUE(left_.set_limits({.low = 99, .high = 100}));
  EXPECT_TRUE(left_.write(pattern(100)));
  EXPECT_EQ(left_.queued(), 100u);
  EXPECT_FALSE(left_.is_full());
  EXPECT_TRUE(left_.write("!"));
  EXPECT_TRUE(left_.is_full());
}

TEST_P(Handles, LoweredLimitsDropNoAcceptedData) {
  right_log_.use = [&](Bytes bytes) {
    EXPECT_TRUE(right_.set_rate_limits({.read = {}, .write = {.bytes_per_second = 1'000'000}}));
    EXPECT_TRUE(right_.write(std::string(1'000, 'x')));
    EXPECT_TRUE(right_.set_limits({.low = 0, .high = 10, .max = 100}));
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("go"));
  run_until(loop_, [&] { return left_log_.received.size() == 1'000; });
  EXPECT_EQ(right_log_.closed_calls, 0);
}

// ---- bytes that other objects own

// Frees the object that contains the Stream, which may be done at any time.
struct Holder {
  Stream stream;
  bool* is_gone;
  ~Holder() { *is_gone = true; }
  static void release(void* holder) { delete static_cast<Holder*>(holder); }
};

TEST_P(Handles, MayBeDestroyedInBufferRelease) {
  bool is_gone = false;
  auto* holder = new Holder{std::move(left_), &is_gone};
  Recorder log;
  holder->stream.start(log);
  const std::string text = pattern(300'000);
  Buffer buffer;
  ASSERT_TRUE(buffer.append_reference(bytes_of(text), &Holder::release, holder));
  EXPECT_TRUE(holder->stream.write(std::move(buffer)));
  EXPECT_FALSE(is_gone) << "not inside a call to the Stream";
  run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  EXPECT_TRUE(is_gone);
  EXPECT_TRUE(right_log_.received == text);
  EXPECT_EQ(log.log, "");
}

TEST_P(Handles, BuffersAreReleasedWhenStreamEndsFirst) {
  bool is_gone = false;
  auto* holder = new Holder{Stream(), &is_gone};
  right_.pause();
  EXPECT_TRUE(left_.write(pattern(8'000'000)));
  const std::string text = pattern(1'000);
  Buffer buffer;
  ASSERT_TRUE(buffer.append_reference(bytes_of(text), &Holder::release, holder));
  EXPECT_TRUE(left_.write(std::move(buffer)));
  left_.abort();
  EXPECT_FALSE(is_gone);
  run_until(loop_, [&] { return is_gone; });
}

TEST_P(Handles, BuffersAreReleasedWhenLoopEndsFirst) {
  bool is_gone = false;
  auto* holder = new Holder{Stream(), &is_gone};
  const std::string text = pattern(1'000);
  Buffer buffer;
  ASSERT_TRUE(buffer.append_reference(bytes_of(text), &Holder::release, holder));
  EXPECT_TRUE(left_.write(std::move(buffer)));
  owned_.reset();
  left_ = Stream();
  EXPECT_TRUE(is_gone);
}

// The last one of its loop.
TEST_P(Handles, MayBeDestroyedInBufferReleaseWhenLoopEnds) {
  bool is_gone = false;
  auto* holder = new Holder{std::move(left_), &is_gone};
  Recorder log;
  holder->stream.start(log);
  const std::string text = pattern(1'000);
  Buffer buffer;
  ASSERT_TRUE(buffer.append_reference(bytes_of(text), &Holder::release, holder));
  EXPECT_TRUE(holder->stream.write(std::move(buffer)));
  right_ = Stream();
  owned_.reset();
  EXPECT_TRUE(is_gone);
  EXPECT_EQ(log.log, "");
}

// ---- options

TEST_P(InMemoryHandles, OptionErrorsDistinguishNoSocketFromClosed) {
  EXPECT_EQ(left_.set_no_delay(true), system_error(ENOTSOCK));
  EXPECT_EQ(left_.set_keep_alive(Nanos{1}, Nanos{1}, 1), system_error(ENOTSOCK));
  EXPECT_EQ(left_.set_kernel_buffers(1, 1), system_error(ENOTSOCK));
  left_.abort();
  EXPECT_EQ(left_.set_no_delay(true), system_error(EBADF));
  EXPECT_EQ(left_.set_kernel_buffers(1, 1), system_error(EBADF));
}

// ---- unread input

TEST_P(Handles, DestroyedStreamWithUnreadInputResetsPeer) {
  for (const bool is_aborted : {true, false}) {
    Result<std::pair<Stream, Stream>> pair = make_pair(loop_, GetParam());
    Recorder log;
    pair->second.start(log);
    EXPECT_TRUE(pair->second.write("never read"));
    if (is_aborted) pair->first.abort();
    pair->first = Stream();
    run_until(loop_, [&] { return log.closed_calls == 1; });
    const bool is_farewell_in_front = GetParam() == Kind::tls_local && !is_aborted;
    EXPECT_TRUE(is_reset(log.error) || is_farewell_in_front) << log.error;
  }
}

}  // namespace
}  // namespace spate::testing
