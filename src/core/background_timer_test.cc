#include "core/background_timer.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/make_loop.h"

namespace spate {
namespace {

using namespace std::chrono_literals;

class BackgroundTimerTest : public ::testing::Test {
 protected:
  void turn() { EXPECT_FALSE(loop_->run(Run::no_wait)); }

  std::unique_ptr<Loop> loop_ = testing::make_loop();
  int calls_ = 0;
  BackgroundTimer timer_{*loop_, [this] { ++calls_; }};
};

TEST_F(BackgroundTimerTest, DoesNotKeepItsLoopAlive) {
  ASSERT_TRUE(timer_.start(0ns, 1h));
  EXPECT_FALSE(loop_->run());
  EXPECT_TRUE(timer_.is_active());
  timer_.stop();
  EXPECT_FALSE(loop_->run());
}

TEST_F(BackgroundTimerTest, StartHasNoEffectWhileActive) {
  ASSERT_TRUE(timer_.start(1h, 1h));
  ASSERT_TRUE(timer_.start(0ns, 1h));
  turn();
  EXPECT_EQ(calls_, 0);
}

TEST_F(BackgroundTimerTest, PostponeDelaysNextExpiry) {
  ASSERT_TRUE(timer_.start(0ns, 1h));
  timer_.postpone(1h);
  turn();
  EXPECT_EQ(calls_, 0);
}

TEST_F(BackgroundTimerTest, PostponeKeepsLaterExpiry) {
  ASSERT_TRUE(timer_.start(1h, 1h));
  timer_.postpone(0ns);
  turn();
  EXPECT_EQ(calls_, 0);
}

TEST_F(BackgroundTimerTest, PostponeDoesNotStartTimer) {
  timer_.postpone(0ns);
  EXPECT_FALSE(timer_.is_active());
  turn();
  EXPECT_EQ(calls_, 0);
}

}  // namespace
}  // namespace spate
