// Loop time: read once a turn, and constant while the loop is suspended.
#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

class TimeTest : public ::testing::Test {
 protected:
  ScriptedLoop scripted_;
  Loop& loop_ = *scripted_.loop;
};

TEST_F(TimeTest, NowIsTimeOfTurn) {
  const Nanos start = loop_.now();
  EXPECT_EQ(start, scripted_.clock.monotonic());
  scripted_.clock.advance(5s);
  EXPECT_EQ(loop_.now(), start);
  turn(loop_);
  EXPECT_EQ(loop_.now(), start + 5s);
}

TEST_F(TimeTest, DurationOfAnyLengthIsValidDeadline) {
  constexpr Nanos now = 20h;
  static_assert(deadline_after(now, 1s) == now + 1s);
  static_assert(deadline_after(now, 0s) == now);
  static_assert(deadline_after(now, -1ns) == now);
  static_assert(deadline_after(now, Nanos::min()) == now);
  static_assert(deadline_after(now, kForever) == now + kForever);
  static_assert(deadline_after(now, Nanos::max()) == now + kForever);
  static_assert(deadline_after(kForever, Nanos::max()) < Nanos::max());
}

TEST_F(TimeTest, InfiniteTimerFiresAfterLongestTime) {
  Probe<Timer> timer{loop_};
  EXPECT_TRUE(timer->start(Nanos::max()));
  scripted_.clock.advance(kForever - 1ns);
  turn(loop_);
  EXPECT_EQ(timer.calls, 0);
  scripted_.clock.advance(1ns);
  turn(loop_);
  EXPECT_EQ(timer.calls, 1);
}

TEST_F(TimeTest, CallerClockWorksWithAnyBackend) {
  for (const std::string_view backend : backends_here()) {
    ScriptedClock clock;
    const Result<std::unique_ptr<Loop>> created =
        Loop::create({.backend = backend, .clock = &clock});
    ASSERT_TRUE(created);
    Probe<Timer> timer{**created};
    EXPECT_TRUE(timer->start(1h));
    clock.advance(1h - 1ns);
    turn(**created);
    EXPECT_EQ(timer.calls, 0);
    clock.advance(1ns);
    turn(**created);
    EXPECT_EQ(timer.calls, 1);
  }
}

TEST_F(TimeTest, NowIsConstantDuringCallbacks) {
  Probe<Timer> timer{loop_};
  Probe<Timer> next{loop_};
  Nanos seen{0};
  timer.then = [&] {
    seen = loop_.now();
    scripted_.clock.advance(1s);
  };
  next.then = [&] { EXPECT_EQ(loop_.now(), seen); };
  EXPECT_TRUE(timer->start(1ms));
  EXPECT_TRUE(next->start(1ms));
  EXPECT_TRUE(runs_out(loop_));
  EXPECT_EQ(next.calls, 1);
}

TEST_F(TimeTest, UpdateNowReadsClockAgain) {
  const Nanos start = loop_.now();
  scripted_.clock.advance(3s);
  loop_.update_now();
  EXPECT_EQ(loop_.now(), start + 3s);
}

TEST_F(TimeTest, WallNowIsWallClock) {
  EXPECT_EQ(loop_.wall_now(), scripted_.clock.wall());
  scripted_.clock.jump_wall(-1h);
  EXPECT_EQ(loop_.wall_now(), scripted_.clock.wall());
}

TEST_F(TimeTest, TimersContinueAfterSuspendAndResume) {
  Probe<Timer> once{loop_};
  Probe<Timer> repeating{loop_};
  EXPECT_TRUE(once->start(10s));
  EXPECT_TRUE(repeating->start(1s, 1s));
  scripted_.clock.advance(500ms);
  turn(loop_);
  const Nanos before = loop_.now();
  loop_.suspend();
  scripted_.clock.advance(8h);
  loop_.resume();
  EXPECT_EQ(loop_.now(), before);
  turn(loop_);
  EXPECT_EQ(once.calls + repeating.calls, 0);
  EXPECT_EQ(once->remaining(), 9500ms);
  scripted_.clock.advance(500ms);
  turn(loop_);
  EXPECT_EQ(repeating.calls, 1);
}

TEST_F(TimeTest, LoopTimeIsFrozenWhileSuspended) {
  const Nanos before = loop_.now();
  loop_.suspend();
  scripted_.clock.advance(1h);
  loop_.update_now();
  EXPECT_EQ(loop_.now(), before);
  Probe<Timer> timer{loop_};
  EXPECT_TRUE(timer->start(10s));
  turn(loop_);
  EXPECT_EQ(timer.calls, 0);
  EXPECT_EQ(loop_.now(), before);
  loop_.resume();
  EXPECT_EQ(loop_.now(), before);
  EXPECT_EQ(timer->remaining(), 10s);
}

TEST_F(TimeTest, SuspendedLoopWaitsForNoTimer) {
  Probe<Timer> timer{loop_};
  EXPECT_TRUE(timer->start(1ns));
  loop_.suspend();
  EXPECT_EQ(loop_.prepare_to_wait(), kForever);
  loop_.resume();
  EXPECT_EQ(loop_.prepare_to_wait(), 1ns);
}

TEST_F(TimeTest, DueTimersAreStillCalledWhileSuspended) {
  Probe<Timer> timer{loop_};
  EXPECT_TRUE(timer->start(0ns));
  loop_.suspend();
  EXPECT_EQ(loop_.prepare_to_wait(), 0ns);
  turn(loop_);
  EXPECT_EQ(timer.calls, 1);
}

TEST_F(TimeTest, SuspendedLoopStillFollowsWallClock) {
  Probe<Periodic> periodic{loop_};
  EXPECT_TRUE(periodic->start_at(scripted_.clock.wall() + 1s));
  turn(loop_);
  loop_.suspend();
  for (int i = 0; i < 30 && periodic.calls == 0; ++i) EXPECT_FALSE(loop_.run(Run::once));
  EXPECT_EQ(periodic.calls, 1);
  EXPECT_LE(scripted_.clock.wall() - periodic->at(), 100ms);
}

TEST_F(TimeTest, LoopTimeNeverGoesBackwards) {
  Nanos last = loop_.now();
  for (int i = 0; i < 5; ++i) {
    loop_.suspend();
    for (int k = 0; k < 3; ++k) {
      scripted_.clock.advance(1min);
      turn(loop_);
      EXPECT_GE(loop_.now(), last);
      last = loop_.now();
    }
    loop_.resume();
    EXPECT_GE(loop_.now(), last);
    last = loop_.now();
    scripted_.clock.advance(1s);
    turn(loop_);
    EXPECT_GE(loop_.now(), last);
    last = loop_.now();
  }
}

TEST_F(TimeTest, SingleResumeEndsRepeatedSuspends) {
  const Nanos before = loop_.now();
  loop_.suspend();
  scripted_.clock.advance(1h);
  loop_.suspend();
  scripted_.clock.advance(1h);
  loop_.resume();
  EXPECT_EQ(loop_.now(), before);
  scripted_.clock.advance(1s);
  loop_.resume();
  EXPECT_EQ(loop_.now(), before + 1s) << "a resume without a suspend changed the time";
}

TEST_F(TimeTest, SuspendInCallbackLosesNoEventOfTurn) {
  Probe<Timer> sleeper{loop_};
  Probe<Timer> timer{loop_};
  sleeper.then = [&] {
    loop_.suspend();
    scripted_.clock.advance(24h);
    loop_.resume();
  };
  EXPECT_TRUE(sleeper->start(1s));
  EXPECT_TRUE(timer->start(5s));
  const Nanos start = loop_.now();
  EXPECT_TRUE(runs_out(loop_));
  EXPECT_EQ(timer.calls, 1);
  EXPECT_EQ(loop_.now() - start, 5s);
}

}  // namespace
}  // namespace spate::testing
