// Periodic, on clocks that the test controls.
#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

class PeriodicTest : public ::testing::Test {
 protected:
  void pass(Nanos span) {
    scripted_.clock.advance(span);
    turn(loop_);
  }
  void jump(Nanos span) {
    scripted_.clock.jump_wall(span);
    turn(loop_);
  }
  WallTime wall() { return scripted_.clock.wall(); }

  ScriptedLoop scripted_;
  Loop& loop_ = *scripted_.loop;
  std::string log_;
};

TEST_F(PeriodicTest, AbsoluteTimeFiresOnTime) {
  Probe<Periodic> periodic{loop_};
  EXPECT_TRUE(periodic->start_at(wall() + 10s));
  EXPECT_EQ(periodic->at(), wall() + 10s);
  pass(10s - 1ns);
  EXPECT_EQ(periodic.calls, 0);
  periodic.then = [&] { EXPECT_FALSE(periodic->is_active()); };
  pass(1ns);
  EXPECT_EQ(periodic.calls, 1);
  EXPECT_EQ(periodic.events, Events::periodic);
  pass(1h);
  EXPECT_EQ(periodic.calls, 1);
  EXPECT_EQ(loop_.active_count(), 0);
}

TEST_F(PeriodicTest, PastTimeIsDueInNextTurn) {
  Probe<Periodic> periodic{loop_};
  Probe<Periodic> ancient{loop_};
  EXPECT_TRUE(periodic->start_at(wall() - 1h));
  EXPECT_TRUE(ancient->start_at(WallTime::min()));
  EXPECT_EQ(periodic.calls, 0);
  turn(loop_);
  EXPECT_EQ(periodic.calls, 1);
  EXPECT_EQ(ancient.calls, 1);
}

TEST_F(PeriodicTest, IntervalFiresAtItsMultiples) {
  Probe<Periodic> periodic{loop_};
  EXPECT_TRUE(periodic->start_every(60s));
  const WallTime minute = std::chrono::ceil<std::chrono::minutes>(wall() + 1ns);
  EXPECT_EQ(periodic->at(), minute);
  pass(minute - wall() - 1ns);
  EXPECT_EQ(periodic.calls, 0);
  pass(1ns);
  EXPECT_EQ(periodic.calls, 1);
  EXPECT_EQ(periodic->at(), minute + 60s);
  pass(59s);
  EXPECT_EQ(periodic.calls, 1);
  pass(1s);
  EXPECT_EQ(periodic.calls, 2);
}

TEST_F(PeriodicTest, OffsetShiftsMultiples) {
  for (const Nanos offset : {Nanos{7s}, Nanos{-3s}, Nanos{607s}, Nanos{1h + 1ns}}) {
    Probe<Periodic> periodic{loop_};
    EXPECT_TRUE(periodic->start_every(10s, offset));
    EXPECT_GT(periodic->at(), wall());
    EXPECT_LE(periodic->at(), wall() + 10s);
    EXPECT_EQ((periodic->at().time_since_epoch() - offset) % 10s, 0ns);
  }
}

TEST_F(PeriodicTest, NegativeOffsetShiftsMultiplesAtAnyTime) {
  for (int i = 0; i < 10; ++i) {
    Probe<Periodic> periodic{loop_};
    EXPECT_TRUE(periodic->start_every(10s, Nanos{-3s}));
    EXPECT_GT(periodic->at(), wall());
    EXPECT_LE(periodic->at(), wall() + 10s);
    pass(1s);
  }
}

TEST_F(PeriodicTest, StartExactlyAtMultipleWaitsForNextOne) {
  Probe<Periodic> periodic{loop_};
  EXPECT_TRUE(periodic->start_every(1s, wall().time_since_epoch()));
  EXPECT_EQ(periodic->at(), wall() + 1s);
}

TEST_F(PeriodicTest, HugeIntervalsAndTimesDoNotOverflow) {
  Probe<Periodic> interval{loop_};
  Probe<Periodic> once{loop_};
  EXPECT_TRUE(interval->start_every(Nanos::max()));
  EXPECT_TRUE(once->start_at(WallTime::max()));
  pass(24h * 1000);
  EXPECT_EQ(interval.calls, 0);
  EXPECT_EQ(once.calls, 0);
}

TEST_F(PeriodicTest, TimeBeyondRangeIsClamped) {
  Probe<Periodic> periodic{loop_};
  EXPECT_TRUE(periodic->start_every(Nanos::max(), wall().time_since_epoch() - 1s));
  EXPECT_EQ(periodic->at(), WallTime::max());
  pass(24h * 365 * 100);
  EXPECT_EQ(periodic.calls, 0);
  EXPECT_TRUE(periodic->is_active());
}

TEST_F(PeriodicTest, AnyOffsetIsPhase) {
  Probe<Periodic> periodic{loop_};
  for (const Nanos offset : {Nanos::min(), Nanos::min() + 1ns, -1ns, Nanos::max()}) {
    EXPECT_TRUE(periodic->start_every(1s, offset));
    const Nanos away = periodic->at() - wall();
    EXPECT_TRUE(away > 0s && away <= 1s) << offset.count();
    EXPECT_EQ((periodic->at().time_since_epoch() % 1s - offset % 1s) % 1s, 0s) << offset.count();
  }
}

TEST_F(PeriodicTest, FarTimeDoesNotOverflowWithClockBeforeEpoch) {
  jump(-(wall().time_since_epoch() + 100h));
  Probe<Periodic> periodic{loop_};
  EXPECT_TRUE(periodic->start_at(WallTime::max()));
  pass(24h);
  EXPECT_EQ(periodic.calls, 0);
}

TEST_F(PeriodicTest, StallFiresOnce) {
  Probe<Periodic> periodic{loop_};
  EXPECT_TRUE(periodic->start_every(1s));
  pass(1h);
  EXPECT_EQ(periodic.calls, 1);
  turn(loop_, 3);
  EXPECT_EQ(periodic.calls, 1);
  EXPECT_GT(periodic->at(), wall());
}

TEST_F(PeriodicTest, FunctionAloneDeterminesTimes) {
  Probe<Periodic> periodic{loop_};
  Nanos step = 3s;
  EXPECT_TRUE(periodic->reschedule_with(
      [](void* context, WallTime now) { return now + *static_cast<Nanos*>(context); }, &step));
  EXPECT_EQ(periodic->at(), wall() + 3s);
  pass(3s);
  EXPECT_EQ(periodic.calls, 1);
  EXPECT_EQ(periodic->at(), wall() + 3s);
  step = 50s;
  pass(3s);
  EXPECT_EQ(periodic.calls, 2);
  EXPECT_EQ(periodic->at(), wall() + 50s);
}

TEST_F(PeriodicTest, FunctionThatReturnsPastTimeAtStartFiresOnce) {
  Probe<Periodic> periodic{loop_};
  EXPECT_TRUE(periodic->reschedule_with([](void*, WallTime now) { return now - 1h; }));
  turn(loop_, 3);
  EXPECT_EQ(periodic.calls, 1);
  EXPECT_FALSE(periodic->is_active());
}

TEST_F(PeriodicTest, FunctionThatReturnsNoLaterTimeStopsPeriodic) {
  Probe<Periodic> periodic{loop_};
  int left = 2;
  EXPECT_TRUE(periodic->reschedule_with(
      [](void* context, WallTime now) { return now + 1s * (*static_cast<int*>(context))--; },
      &left));
  pass(2s);
  EXPECT_EQ(periodic.calls, 1);
  EXPECT_TRUE(periodic->is_active());
  pass(1s);
  EXPECT_EQ(periodic.calls, 2);
  EXPECT_FALSE(periodic->is_active());
  EXPECT_EQ(loop_.active_count(), 0);
}

TEST_F(PeriodicTest, ForwardJumpFiresPassedTimeOnce) {
  Probe<Periodic> every{loop_};
  Probe<Periodic> once{loop_};
  EXPECT_TRUE(every->start_every(10s));
  EXPECT_TRUE(once->start_at(wall() + 1h));
  turn(loop_);
  jump(2h);
  EXPECT_EQ(every.calls, 1);
  EXPECT_EQ(once.calls, 1);
  turn(loop_, 3);
  EXPECT_EQ(every.calls, 1);
  EXPECT_GT(every->at(), wall());
  EXPECT_LE(every->at(), wall() + 10s);
}

TEST_F(PeriodicTest, ForwardJumpBeforeTimeShortensWait) {
  Probe<Periodic> periodic{loop_};
  EXPECT_TRUE(periodic->start_at(wall() + 1h));
  turn(loop_);
  jump(50min);
  EXPECT_EQ(periodic.calls, 0);
  pass(10min - 1ns);
  EXPECT_EQ(periodic.calls, 0);
  pass(1ns);
  EXPECT_EQ(periodic.calls, 1);
}

TEST_F(PeriodicTest, BackwardJumpRepeatsSameTimes) {
  Probe<Periodic> periodic{loop_};
  EXPECT_TRUE(periodic->start_every(1min));
  pass(1min);
  EXPECT_EQ(periodic.calls, 1);
  const WallTime called_at = periodic->at() - 1min;
  jump(-5min);
  EXPECT_EQ(periodic.calls, 1);
  EXPECT_LT(periodic->at(), called_at);
  for (int i = 2; i <= 6; ++i) {
    pass(1min);
    EXPECT_EQ(periodic.calls, i);
  }
}

TEST_F(PeriodicTest, BackwardJumpDoesNotFireEarly) {
  Probe<Periodic> periodic{loop_};
  EXPECT_TRUE(periodic->start_at(wall() + 10s));
  turn(loop_);
  jump(-1h);
  pass(10s);
  EXPECT_EQ(periodic.calls, 0);
  pass(1h - 1ns);
  EXPECT_EQ(periodic.calls, 0);
  pass(1ns);
  EXPECT_EQ(periodic.calls, 1);
}

TEST_F(PeriodicTest, SmallStepBackDoesNotFireEarly) {
  Probe<Periodic> periodic{loop_};
  EXPECT_TRUE(periodic->start_at(wall() + 10s));
  for (int i = 0; i < 10; ++i) jump(-1ms);
  pass(10s);
  EXPECT_EQ(periodic.calls, 0);
  pass(10ms);
  EXPECT_EQ(periodic.calls, 1);
}

TEST_F(PeriodicTest, ClockJumpCallsFunctionAgain) {
  Probe<Periodic> periodic{loop_};
  struct Plan {
    int asked = 0;
    static WallTime next(void* context, WallTime now) {
      ++static_cast<Plan*>(context)->asked;
      return std::chrono::ceil<std::chrono::hours>(now + 1ns);
    }
  } plan;
  EXPECT_TRUE(periodic->reschedule_with(&Plan::next, &plan));
  turn(loop_);
  EXPECT_EQ(plan.asked, 1);
  jump(-3h);
  EXPECT_EQ(plan.asked, 2);
  EXPECT_GT(periodic->at(), wall());
  EXPECT_LE(periodic->at(), wall() + 1h);
}

TEST_F(PeriodicTest, TimersDoNotFollowJump) {
  Probe<Timer> timer{loop_};
  Probe<Periodic> periodic{loop_};
  EXPECT_TRUE(timer->start(10s));
  EXPECT_TRUE(periodic->start_every(1h));
  jump(24h);
  EXPECT_EQ(timer.calls, 0);
  jump(-48h);
  pass(10s - 1ns);
  EXPECT_EQ(timer.calls, 0);
  pass(1ns);
  EXPECT_EQ(timer.calls, 1);
}

TEST_F(PeriodicTest, LoopSleepsUntilTime) {
  Probe<Periodic> periodic{loop_};
  EXPECT_TRUE(periodic->start_at(wall() + 7s));
  EXPECT_TRUE(runs_out(loop_));
  EXPECT_EQ(periodic.calls, 1);
  Nanos slept{0};
  for (const Nanos wait : scripted_.backend->waits) slept += wait;
  EXPECT_EQ(slept, 7s);
}

TEST_F(PeriodicTest, SimultaneouslyDuePeriodicsAreCalledByTime) {
  Probe<Periodic> a{loop_};
  Probe<Periodic> b{loop_};
  Probe<Periodic> c{loop_};
  a.note(log_, 'a'), b.note(log_, 'b'), c.note(log_, 'c');
  EXPECT_TRUE(a->start_at(wall() + 3s));
  EXPECT_TRUE(b->start_at(wall() + 1s));
  EXPECT_TRUE(c->start_at(wall() + 2s));
  pass(5s);
  EXPECT_EQ(log_, "bca");
}

TEST_F(PeriodicTest, StartWhileActiveRestartsPeriodic) {
  Probe<Periodic> periodic{loop_};
  EXPECT_TRUE(periodic->start_every(1s));
  EXPECT_TRUE(periodic->start_at(wall() + 1h));
  EXPECT_EQ(loop_.active_count(), 1);
  pass(5s);
  EXPECT_EQ(periodic.calls, 0);
  EXPECT_EQ(periodic->at(), wall() - 5s + 1h);
}

TEST_F(PeriodicTest, PeriodicMayBeStoppedAndRestartedInItsCallback) {
  Probe<Periodic> periodic{loop_};
  periodic.then = [&] {
    if (periodic.calls == 1) EXPECT_TRUE(periodic->start_every(2s, wall().time_since_epoch()));
    if (periodic.calls == 2) periodic->stop();
  };
  EXPECT_TRUE(periodic->start_at(wall() + 1s));
  pass(1s);
  pass(2s);
  EXPECT_EQ(periodic.calls, 2);
  EXPECT_EQ(loop_.active_count(), 0);
}

TEST_F(PeriodicTest, SuspendedLoopDoesNotDelayPeriodic) {
  Probe<Periodic> periodic{loop_};
  EXPECT_TRUE(periodic->start_at(wall() + 10s));
  turn(loop_);
  loop_.suspend();
  scripted_.clock.advance(1h);
  loop_.resume();
  turn(loop_);
  EXPECT_EQ(periodic.calls, 1);
}

// ---- on the real clocks

using RealPeriodicTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(RealPeriodicTest);

TEST_P(RealPeriodicTest, IsNeverEarly) {
  Probe<Periodic> periodic{*loop_};
  const WallTime at = loop_->wall_now() + 5ms;
  EXPECT_TRUE(periodic->start_at(at));
  periodic.then = [&] { EXPECT_GE(loop_->wall_now(), at); };
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(periodic.calls, 1);
}

}  // namespace
}  // namespace spate::testing
