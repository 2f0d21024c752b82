// Sending fails, and the earlier data of the peer can still be read.
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>

#include "base/fault.h"
#include "streams/harness.h"

namespace spate::testing {
namespace {

class EndingsOfSending : public StreamTest {
 protected:
  // From here on.
  void fail_to_send() {
    plan_.fail_nth(SystemCall::send, 1, EPIPE, UINT64_MAX / 2);
    scope_ = std::make_unique<FaultScope>(plan_);
  }
  void run_until_right_is_closed() {
    run_until(loop_, [&] { return right_log_.closed_calls == 1; });
  }

  FaultPlan plan_;
  std::unique_ptr<FaultScope> scope_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, EndingsOfSending, ::testing::Values(Kind::local, Kind::tcp),
                         name_of);

TEST_P(EndingsOfSending, EarlierInputIsReadFirst) {
  const std::string sent = pattern(30'000);
  EXPECT_TRUE(left_.write(sent));
  fail_to_send();
  EXPECT_TRUE(right_.write("x"));
  EXPECT_FALSE(right_.is_writable());
  run_until_right_is_closed();
  EXPECT_TRUE(right_log_.received == sent);
  EXPECT_EQ(right_log_.error, std::errc::broken_pipe);
}

TEST_P(EndingsOfSending, FailureIsReportedAfterCallbackInWhichItOccurred) {
  right_log_.use = [this](Bytes bytes) {
    EXPECT_TRUE(right_.write("x"));
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("hello"));
  fail_to_send();
  run_until_right_is_closed();
  EXPECT_EQ(right_log_.received, "hello");
  EXPECT_EQ(right_log_.log, "closed ");
}

TEST_P(EndingsOfSending, PeerEofAfterFailureDoesNotHideIt) {
  EXPECT_TRUE(left_.write("last words"));
  left_.end();
  fail_to_send();
  EXPECT_TRUE(right_.write("x"));
  run_until_right_is_closed();
  EXPECT_EQ(right_log_.received, "last words");
  EXPECT_EQ(right_log_.log, "closed ");
  EXPECT_EQ(right_log_.error, std::errc::broken_pipe);
}

TEST_P(EndingsOfSending, FirstErrorIsReported) {
  fail_to_send();
  EXPECT_TRUE(right_.write("x"));
  scope_.reset();
  FaultPlan plan;
  plan.fail_nth(SystemCall::receive, 1, ECONNRESET);
  const FaultScope scope(plan);
  run_until_right_is_closed();
  EXPECT_EQ(right_log_.error, std::errc::broken_pipe);
}

// Bytes that were left are offered together with the failure, and more have arrived.
TEST_P(EndingsOfSending, EarlierInputIsNotReadOnceHandlerClosesOrPauses) {
  using Stop = void (*)(Stream&);
  const Stop close = [](Stream& stream) { stream.close(); };
  const Stop pause = [](Stream& stream) { stream.pause(); };
  for (const Stop stop : {close, pause}) {
    auto pair = std::move(*make_pair(loop_, GetParam()));
    Recorder log;
    log.use = [&](Bytes) -> std::size_t {
      if (log.data_calls == 2) stop(pair.second);
      return 0;
    };
    pair.second.start(log);
    EXPECT_TRUE(pair.first.write("left"));
    run_until(loop_, [&] { return log.data_calls == 1; });
    EXPECT_TRUE(pair.first.write("new"));
    pair.second.start(log);
    FaultPlan plan;
    plan.fail_nth(SystemCall::send, 1, EPIPE);
    const FaultScope scope(plan);
    EXPECT_TRUE(pair.second.write("x"));
    run_until(loop_, [&] { return log.closed_calls == 1; });
    EXPECT_EQ(log.data_calls, 2);
    EXPECT_EQ(log.error, std::errc::broken_pipe);
  }
}

TEST_P(EndingsOfSending, FailureInsideOnEndIsReported) {
  left_.end();
  fail_to_send();
  right_log_.when_ended = [this] { EXPECT_TRUE(right_.write("x")); };
  run_until_right_is_closed();
  EXPECT_EQ(right_log_.log, "end closed ");
  EXPECT_EQ(right_log_.error, std::errc::broken_pipe);
}

TEST_P(EndingsOfSending, InputDelayedByFullQueueIsReadFirst) {
  left_.pause();
  ASSERT_TRUE(right_.set_limits({.low = 0, .high = 10, .pause_reading = true}));
  EXPECT_TRUE(right_.write(pattern(kMoreThanAKernelTakes)));
  ASSERT_TRUE(right_.is_full());
  EXPECT_TRUE(left_.write("last words"));
  run_turns(loop_, 5);
  EXPECT_EQ(right_log_.received, "");
  fail_to_send();
  left_.resume();
  run_until_right_is_closed();
  EXPECT_EQ(right_log_.received, "last words");
  EXPECT_EQ(right_log_.error, std::errc::broken_pipe);
}

TEST_P(EndingsOfSending, InputDelayedByCallbackAndFullQueueIsReadFirst) {
  left_.pause();
  ASSERT_TRUE(right_.set_limits({.low = 0, .high = 10, .pause_reading = true}));
  right_log_.use = [this](Bytes bytes) {
    if (right_log_.data_calls > 1) return bytes.size();
    EXPECT_TRUE(right_.write(pattern(kMoreThanAKernelTakes)));
    EXPECT_TRUE(right_.is_full() && left_.write("last words"));
    run_turns(loop_, 1);
    fail_to_send();
    left_.resume();
    run_until(loop_, [&] { return !right_.is_writable(); });
    return bytes.size();
  };
  EXPECT_TRUE(left_.write("first, "));
  run_until_right_is_closed();
  EXPECT_EQ(right_log_.received, "first, last words");
  EXPECT_EQ(right_log_.error, std::errc::broken_pipe);
}

TEST_P(EndingsOfSending, InputIsNotReadAfterQueueFull) {
  ASSERT_TRUE(right_.set_limits({.low = 0, .high = 10, .max = 10}));
  EXPECT_TRUE(left_.write("unseen"));
  EXPECT_FALSE(right_.write("more than ten bytes"));
  run_until_right_is_closed();
  EXPECT_EQ(right_log_.received, "");
  EXPECT_EQ(right_log_.error, Error::queue_full);
}

}  // namespace
}  // namespace spate::testing
