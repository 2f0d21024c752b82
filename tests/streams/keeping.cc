// Streams that keep run() from returning: those that read, or have unsent bytes.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>

#include "streams/harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

// Two ends that have not been started.
class Keeping : protected OwnClock, public KindTest {
 protected:
  Keeping() {
    auto [left, right] = make_pair(loop_, GetParam()).value();
    left_ = std::move(left);
    right_ = std::move(right);
  }
  bool keeps_loop() {
    EXPECT_FALSE(loop_.run(Run::no_wait));
    return loop_.has_work();
  }

  std::unique_ptr<Loop> owned_ = Loop::create({.clock = &clock_}).value();
  Loop& loop_ = *owned_;
  Recorder log_;
  Stream left_;
  Stream right_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, Keeping, ::testing::Values(Kind::local, Kind::tcp), name_of);

TEST_P(Keeping, ReadingStreamKeepsLoop) {
  EXPECT_FALSE(keeps_loop());
  left_.start(log_);
  EXPECT_TRUE(keeps_loop());
  left_.pause();
  EXPECT_FALSE(keeps_loop());
  left_.resume();
  EXPECT_TRUE(keeps_loop());
}

TEST_P(Keeping, StreamPausedBeforeStartDoesNotKeepLoop) {
  left_.pause();
  left_.start(log_);
  EXPECT_FALSE(keeps_loop());
  left_.resume();
  EXPECT_TRUE(keeps_loop());
}

TEST_P(Keeping, PausedStreamWithQueuedDataKeepsLoop) {
  left_.start(log_);
  left_.pause();
  EXPECT_TRUE(left_.write(pattern(8'000'000)));
  EXPECT_GT(left_.queued(), 0u);
  EXPECT_TRUE(keeps_loop());
  left_.abort();
  EXPECT_FALSE(keeps_loop());
}

TEST_P(Keeping, DeadlinesDoNotKeepLoopForPausedStream) {
  left_.start(log_);
  left_.pause();
  left_.set_idle_timeout(10ms);
  EXPECT_TRUE(left_.set_deadline(10ms));
  EXPECT_FALSE(loop_.run() || loop_.has_work());
  EXPECT_EQ(log_.log, "");
  clock_.advance(20ms);
  run_turns(loop_, 20);
  EXPECT_EQ(log_.log, "closed ");
}

TEST_P(Keeping, ClosedStreamKeepsLoopUntilPeerEnds) {
  EXPECT_TRUE(left_.write("last"));
  left_ = Stream();
  EXPECT_TRUE(keeps_loop());
  right_ = Stream();
  while (keeps_loop()) {
  }
}

TEST_P(Keeping, RateLimitedReaderKeepsLoop) {
  left_.start(log_);
  EXPECT_TRUE(left_.set_rate_limits({.read = {.bytes_per_second = 1, .burst = 1}, .write = {}}));
  EXPECT_TRUE(right_.write("more than one"));
  run_turns(loop_, 5);
  EXPECT_EQ(log_.received, "m");
  EXPECT_TRUE(keeps_loop());
  left_.pause();
  EXPECT_FALSE(keeps_loop());
}

TEST_P(Keeping, RateLimitedSenderKeepsLoop) {
  left_.start(log_);
  left_.pause();
  EXPECT_TRUE(left_.set_rate_limits({.read = {}, .write = {.bytes_per_second = 1, .burst = 1}}));
  EXPECT_TRUE(left_.write("more than one"));
  run_turns(loop_, 5);
  EXPECT_EQ(left_.queued(), 12u);
  EXPECT_TRUE(keeps_loop());
  EXPECT_TRUE(left_.set_rate_limits({}));
  run_turns(loop_, 2);
  EXPECT_EQ(left_.queued(), 0u);
  EXPECT_FALSE(keeps_loop());
}

}  // namespace
}  // namespace spate::testing
