// Timer, on a clock that the test controls; at the end, on the real clock, each backend.
#include <algorithm>
#include <random>

#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

class TimerTest : public ::testing::Test {
 protected:
  // Lets time pass and runs a turn.
  void pass(Nanos span) {
    scripted_.clock.advance(span);
    turn(loop_);
  }
  Nanos now() const { return loop_.now(); }

  ScriptedLoop scripted_;
  Loop& loop_ = *scripted_.loop;
  std::string log_;
};

TEST_F(TimerTest, IsCalledOnceAfterItsDelay) {
  Probe<Timer> timer{loop_};
  EXPECT_TRUE(timer->start(10ms));
  pass(9'999'999ns);
  EXPECT_EQ(timer.calls, 0);
  pass(1ns);
  EXPECT_EQ(timer.calls, 1);
  EXPECT_EQ(timer.events, Events::timer);
  pass(1h);
  EXPECT_EQ(timer.calls, 1);
}

TEST_F(TimerTest, WaitsExactlyUntilDeadline) {
  Probe<Timer> timer{loop_};
  const Nanos start = now();
  EXPECT_TRUE(timer->start(12'345'678ns));
  EXPECT_TRUE(runs_out(loop_));
  EXPECT_EQ(timer.calls, 1);
  EXPECT_EQ(now() - start, 12'345'678ns);
}

TEST_F(TimerTest, NonRepeatingTimerIsInactiveInItsCallback) {
  Probe<Timer> timer{loop_};
  timer.then = [&] {
    EXPECT_FALSE(timer->is_active());
    EXPECT_FALSE(timer->is_pending());
    EXPECT_EQ(loop_.active_count(), 0);
    EXPECT_EQ(timer->remaining(), 0ns);
  };
  EXPECT_TRUE(timer->start(1ms));
  EXPECT_TRUE(runs_out(loop_));
  EXPECT_EQ(timer.calls, 1);
}

TEST_F(TimerTest, RepeatingTimerIsActiveInItsCallback) {
  Probe<Timer> timer{loop_};
  timer.then = [&] {
    EXPECT_TRUE(timer->is_active());
    EXPECT_EQ(timer->remaining(), 5ms);
    timer->stop();
  };
  EXPECT_TRUE(timer->start(1ms, 5ms));
  EXPECT_TRUE(runs_out(loop_));
  EXPECT_EQ(timer.calls, 1);
}

TEST_F(TimerTest, RepeatingTimerKeepsItsPhase) {
  Probe<Timer> timer{loop_};
  const Nanos start = now();
  EXPECT_TRUE(timer->start(10ms, 10ms));
  for (int i = 1; i <= 20; ++i) {
    pass(10ms + Nanos{i * 1000});  // Each turn is a little later.
    EXPECT_EQ(timer.calls, i);
  }
  EXPECT_EQ((timer->deadline() - start) % 10ms, 0ns);
}

TEST_F(TimerTest, StallSkipsMissedExpiries) {
  Probe<Timer> timer{loop_};
  const Nanos start = now();
  EXPECT_TRUE(timer->start(10ms, 10ms));
  pass(1h + 3ms);
  EXPECT_EQ(timer.calls, 1);
  turn(loop_, 3);
  EXPECT_EQ(timer.calls, 1) << "a burst";
  EXPECT_EQ(timer->deadline() - start, 1h + 10ms);
  pass(7ms);
  EXPECT_EQ(timer.calls, 2);
}

TEST_F(TimerTest, TimerIsNotCalledTwiceExactlyAtNextDeadline) {
  Probe<Timer> timer{loop_};
  EXPECT_TRUE(timer->start(10ms, 10ms));
  pass(20ms);
  EXPECT_EQ(timer.calls, 1);
  pass(9ms);
  EXPECT_EQ(timer.calls, 1);
  pass(1ms);
  EXPECT_EQ(timer.calls, 2);
}

TEST_F(TimerTest, RepeatMayBeChangedWhileActive) {
  Probe<Timer> timer{loop_};
  EXPECT_TRUE(timer->start(10ms, 10ms));
  timer->set_repeat(3ms);
  EXPECT_EQ(timer->repeat(), 3ms);
  pass(10ms);
  EXPECT_EQ(timer.calls, 1);
  pass(3ms);
  EXPECT_EQ(timer.calls, 2);
  timer->set_repeat(0ms);
  pass(3ms);
  EXPECT_EQ(timer.calls, 3);
  EXPECT_FALSE(timer->is_active());
  timer->set_repeat(-5ms);
  EXPECT_EQ(timer->repeat(), 0ms);
}

TEST_F(TimerTest, ZeroAndNegativeDelaysExpireInNextTurn) {
  Probe<Timer> zero{loop_};
  Probe<Timer> negative{loop_};
  Probe<Timer> least{loop_};
  EXPECT_TRUE(zero->start(0ns));
  EXPECT_TRUE(negative->start(-1h));
  EXPECT_TRUE(least->start(Nanos::min()));
  EXPECT_EQ(zero.calls, 0);
  turn(loop_);
  EXPECT_EQ(zero.calls, 1);
  EXPECT_EQ(negative.calls, 1);
  EXPECT_EQ(least.calls, 1);
}

TEST_F(TimerTest, SelfRestartingZeroTimerIsCalledOnceTurn) {
  Probe<Timer> timer{loop_};
  timer.then = [&] { EXPECT_TRUE(timer->start(0ns)); };
  EXPECT_TRUE(timer->start(0ns));
  turn(loop_, 5);
  EXPECT_EQ(timer.calls, 5);
}

TEST_F(TimerTest, HugeDelaysNeitherOverflowNorFire) {
  const Nanos delays[] = {std::chrono::milliseconds{INT32_MAX},
                          std::chrono::seconds{INT32_MAX},
                          std::chrono::seconds{std::int64_t{1} << 32},
                          std::chrono::hours{24 * 365 * 100},
                          kForever - 1ns,
                          kForever,
                          kForever + 1ns,
                          Nanos::max()};
  for (const Nanos delay : delays) {
    Probe<Timer> timer{loop_};
    EXPECT_TRUE(timer->start(delay));
    EXPECT_GT(timer->remaining(), 0ns) << delay.count();
    pass(24h * 20);
    EXPECT_EQ(timer.calls, 0) << delay.count();
    EXPECT_TRUE(timer->is_active());
    EXPECT_TRUE(timer->restart(delay));
    timer->stop();
  }
}

TEST_F(TimerTest, HugeRepeatNeitherOverflowsNorFires) {
  for (const Nanos repeat : {kForever, Nanos::max()}) {
    Probe<Timer> timer{loop_};
    EXPECT_TRUE(timer->start(1ms, repeat));
    pass(1ms);
    EXPECT_EQ(timer.calls, 1);
    EXPECT_TRUE(timer->is_active());
    pass(24h * 1000);
    EXPECT_EQ(timer.calls, 1);
    EXPECT_TRUE(timer->again());
    EXPECT_GT(timer->remaining(), 24h);
  }
}

TEST_F(TimerTest, SimultaneouslyDueTimersAreCalledByDeadline) {
  const int order[] = {7, 3, 9, 1, 8, 2, 6, 4, 5, 0};
  std::vector<std::unique_ptr<Probe<Timer>>> timers;
  for (const int i : order) {
    timers.push_back(std::make_unique<Probe<Timer>>(loop_));
    timers.back()->note(log_, static_cast<char>('0' + i));
    EXPECT_TRUE(timers.back()->watcher.start(i * 7ms + 1ns));
  }
  pass(1s);
  EXPECT_EQ(log_, "0123456789");
}

TEST_F(TimerTest, EqualDeadlinesAreCalledInOrderOfStarting) {
  std::vector<std::unique_ptr<Probe<Timer>>> timers;
  std::string expected;
  for (int i = 0; i < 200; ++i) {
    const char name = static_cast<char>('!' + i % 90);
    timers.push_back(std::make_unique<Probe<Timer>>(loop_));
    timers.back()->note(log_, name);
    expected += name;
    EXPECT_TRUE(timers.back()->watcher.start(250ms));
  }
  pass(1s);
  EXPECT_EQ(log_, expected);
}

TEST_F(TimerTest, RestartKeepsOrderOfEqualDeadlinesButStartDoesNot) {
  Probe<Timer> a{loop_};
  Probe<Timer> b{loop_};
  Probe<Timer> c{loop_};
  Probe<Timer> d{loop_};
  a.note(log_, 'a'), b.note(log_, 'b'), c.note(log_, 'c'), d.note(log_, 'd');
  for (const Nanos delay : {Nanos{10ns}, Nanos{1ms}, Nanos{100ms}, Nanos{1h}}) {
    log_.clear();
    for (Probe<Timer>* timer : {&a, &b, &c, &d}) EXPECT_TRUE((*timer)->start(delay));
    EXPECT_TRUE(a->restart(delay));
    EXPECT_TRUE(b->restart(delay / 2));
    EXPECT_TRUE(b->restart(delay));
    c->stop();
    EXPECT_TRUE(c->start(delay));
    pass(delay);
    EXPECT_EQ(log_, "abdc") << delay.count();
  }
}

TEST_F(TimerTest, RestartAppliesLaterDeadline) {
  Probe<Timer> timer{loop_};
  EXPECT_TRUE(timer->start(10ms));
  for (int i = 0; i < 50; ++i) {
    pass(9ms);
    EXPECT_TRUE(timer->restart(10ms));
    EXPECT_EQ(timer->remaining(), 10ms);
  }
  EXPECT_EQ(timer.calls, 0);
  pass(10ms);
  EXPECT_EQ(timer.calls, 1);
}

TEST_F(TimerTest, RestartAppliesEarlierDeadline) {
  Probe<Timer> timer{loop_};
  EXPECT_TRUE(timer->start(1h));
  EXPECT_TRUE(timer->restart(2ms));
  pass(1'999'999ns);
  EXPECT_EQ(timer.calls, 0);
  pass(1ns);
  EXPECT_EQ(timer.calls, 1);
  pass(2h);
  EXPECT_EQ(timer.calls, 1);
}

TEST_F(TimerTest, RestartKeepsRepeatAndStartReplacesIt) {
  Probe<Timer> timer{loop_};
  EXPECT_TRUE(timer->start(1ms, 5ms));
  EXPECT_TRUE(timer->restart(2ms));
  EXPECT_EQ(timer->repeat(), 5ms);
  EXPECT_TRUE(timer->start(2ms));
  EXPECT_EQ(timer->repeat(), 0ns);
  EXPECT_EQ(loop_.active_count(), 1);
}

TEST_F(TimerTest, RestartStartsInactiveTimer) {
  Probe<Timer> timer{loop_};
  EXPECT_TRUE(timer->restart(2ms));
  EXPECT_TRUE(timer->is_active());
  EXPECT_EQ(loop_.active_count(), 1);
  pass(2ms);
  EXPECT_EQ(timer.calls, 1);
}

TEST_F(TimerTest, RestartDiscardsQueuedExpiry) {
  Probe<Timer> first{loop_};
  Probe<Timer> second{loop_};
  first.then = [&] {
    EXPECT_TRUE(second->is_pending());
    EXPECT_TRUE(second->restart(5ms));
    EXPECT_FALSE(second->is_pending());
  };
  EXPECT_TRUE(first->start(1ms));
  EXPECT_TRUE(second->start(2ms));
  pass(10ms);
  EXPECT_EQ(second.calls, 0);
  pass(5ms);
  EXPECT_EQ(second.calls, 1);
}

TEST_F(TimerTest, StartDiscardsQueuedExpiry) {
  Probe<Timer> first{loop_};
  Probe<Timer> once{loop_};
  Probe<Timer> repeating{loop_};
  first.then = [&] {
    EXPECT_TRUE(once->start(5ms));
    EXPECT_TRUE(repeating->start(5ms, 5ms));
  };
  EXPECT_TRUE(first->start(1ms));
  EXPECT_TRUE(once->start(2ms));
  EXPECT_TRUE(repeating->start(2ms, 1ms));
  pass(10ms);
  EXPECT_EQ(once.calls + repeating.calls, 0);
  pass(5ms);
  EXPECT_EQ(once.calls, 1);
  EXPECT_EQ(repeating.calls, 1);
}

TEST_F(TimerTest, StopDiscardsQueuedExpiry) {
  Probe<Timer> first{loop_};
  Probe<Timer> second{loop_};
  first.then = [&] { second->stop(); };
  EXPECT_TRUE(first->start(1ms));
  EXPECT_TRUE(second->start(2ms));
  pass(10ms);
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(second.calls, 0);
}

TEST_F(TimerTest, AgainRestartsRepeatingTimerAndStopsOneShot) {
  Probe<Timer> timer{loop_};
  timer->set_repeat(10ms);
  EXPECT_TRUE(timer->again());
  EXPECT_TRUE(timer->is_active());
  pass(9ms);
  EXPECT_TRUE(timer->again());
  pass(9ms);
  EXPECT_EQ(timer.calls, 0);
  pass(1ms);
  EXPECT_EQ(timer.calls, 1);
  timer->set_repeat(0ns);
  EXPECT_TRUE(timer->again());
  EXPECT_FALSE(timer->is_active());
  EXPECT_TRUE(timer->again());
  EXPECT_FALSE(timer->is_active());
}

TEST_F(TimerTest, AgainInCallbackMovesPhase) {
  Probe<Timer> timer{loop_};
  timer.then = [&] { EXPECT_TRUE(timer->again()); };
  EXPECT_TRUE(timer->start(10ms, 10ms));
  pass(14ms);
  EXPECT_EQ(timer->remaining(), 10ms);
}

TEST_F(TimerTest, RemainingCountsDownToZero) {
  Probe<Timer> timer{loop_};
  EXPECT_EQ(timer->remaining(), 0ns);
  EXPECT_TRUE(timer->start(10ms));
  EXPECT_EQ(timer->remaining(), 10ms);
  pass(4ms);
  EXPECT_EQ(timer->remaining(), 6ms);
  scripted_.clock.advance(20ms);
  loop_.update_now();
  EXPECT_EQ(timer->remaining(), 0ns);
  timer->stop();
  EXPECT_EQ(timer->remaining(), 0ns);
}

TEST_F(TimerTest, DelayCountsFromTurnWhenStartedInCallback) {
  Probe<Timer> first{loop_};
  Probe<Timer> second{loop_};
  first.then = [&] {
    scripted_.clock.advance(30ms);  // The callback takes long.
    EXPECT_TRUE(second->start(50ms));
    EXPECT_EQ(second->remaining(), 50ms);
  };
  EXPECT_TRUE(first->start(10ms));
  const Nanos start = now();
  EXPECT_TRUE(runs_out(loop_));
  EXPECT_EQ(second.calls, 1);
  EXPECT_EQ(now() - start, 60ms);
}

TEST_F(TimerTest, ZeroTimerStartedInCallbackIsCalledInNextTurn) {
  Probe<Timer> first{loop_};
  Probe<Timer> second{loop_};
  first.then = [&] { EXPECT_TRUE(second->start(0ns)); };
  EXPECT_TRUE(first->start(0ns));
  turn(loop_);
  EXPECT_EQ(second.calls, 0);
  turn(loop_);
  EXPECT_EQ(second.calls, 1);
}

// Against a model: every timer expires at its deadline, none early, in the documented order.
TEST_F(TimerTest, RandomOperationsAgreeWithSortedList) {
  constexpr int kTimers = 64;
  std::mt19937 random(20240917);
  struct Expected {
    Nanos deadline{-1};
    std::uint64_t order = 0;
  };
  std::vector<std::unique_ptr<Probe<Timer>>> timers;
  std::vector<Expected> model(kTimers);
  std::vector<int> called;
  std::uint64_t order = 0;
  for (int i = 0; i < kTimers; ++i) {
    timers.push_back(std::make_unique<Probe<Timer>>(loop_));
    timers.back()->then = [&called, i] { called.push_back(i); };
  }
  const auto random_span = [&] {
    const int bits = static_cast<int>(random() % 38);
    return Nanos{static_cast<std::int64_t>((std::uint64_t{random()} << 8) & ((1ull << bits) - 1))};
  };
  for (int step = 0; step < 20'000; ++step) {
    const int i = static_cast<int>(random() % kTimers);
    const auto number = static_cast<std::size_t>(i);
    if (random() % 5 == 0) {
      timers[number]->watcher.stop();
      model[number].deadline = -1ns;
    } else {
      const Nanos delay = random_span();
      ASSERT_TRUE(timers[number]->watcher.restart(delay));
      if (model[number].deadline < 0ns) model[number].order = ++order;
      model[number].deadline = now() + delay;
    }
    if (random() % 3 != 0) continue;
    called.clear();
    pass(random_span() / 4);
    std::vector<int> due;
    for (int k = 0; k < kTimers; ++k) {
      const Expected& expected = model[static_cast<std::size_t>(k)];
      if (expected.deadline >= 0ns && expected.deadline <= now()) due.push_back(k);
    }
    std::sort(due.begin(), due.end(), [&](int a, int b) {
      const Expected& x = model[static_cast<std::size_t>(a)];
      const Expected& y = model[static_cast<std::size_t>(b)];
      return std::pair(x.deadline, x.order) < std::pair(y.deadline, y.order);
    });
    ASSERT_EQ(called, due) << "in step " << step;
    for (const int k : due) model[static_cast<std::size_t>(k)].deadline = -1ns;
  }
}

// ---- on the real clock

using RealTimerTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(RealTimerTest);

TEST_P(RealTimerTest, IsNeverEarly) {
  for (const Nanos delay : {Nanos{1us}, Nanos{100us}, Nanos{1ms}, Nanos{1'999'999ns}, Nanos{5ms}}) {
    Probe<Timer> timer{*loop_};
    loop_->update_now();
    const auto before = std::chrono::steady_clock::now();
    ASSERT_TRUE(timer->start(delay));
    const Nanos deadline = timer->deadline();
    EXPECT_TRUE(runs_out(*loop_));
    EXPECT_GE(std::chrono::steady_clock::now() - before, delay - 100us) << delay.count();
    EXPECT_GE(loop_->now(), deadline);
    EXPECT_EQ(timer.calls, 1);
  }
}

TEST_F(TimerTest, PostponedAndStoppedTimersEndNoWait) {
  Probe<Timer> stopped{loop_};
  Probe<Timer> postponed{loop_};
  Probe<Timer> last{loop_};
  EXPECT_TRUE(stopped->start(100us));
  EXPECT_TRUE(postponed->start(200us));
  EXPECT_TRUE(last->start(1s));
  EXPECT_TRUE(postponed->restart(2s));
  stopped->stop();
  EXPECT_EQ(loop_.active_count(), 2);
  const std::uint64_t turns = loop_.iteration();
  EXPECT_FALSE(loop_.run(Run::once));
  EXPECT_EQ(loop_.iteration(), turns + 1);
  EXPECT_EQ(last.calls, 1) << "the turn ended early";
  EXPECT_FALSE(loop_.run());
  EXPECT_EQ(postponed.calls, 1);
  EXPECT_EQ(stopped.calls, 0);
}

// Its place in the queue is independent of its place among equal deadlines.
TEST_F(TimerTest, StoppedTimerRestartsAfterEqualDeadlines) {
  std::vector<int> order;
  Timer first{loop_, [&order] { order.push_back(1); }};
  Timer second{loop_, [&order] { order.push_back(2); }};
  Timer third{loop_, [&order] { order.push_back(3); }};
  for (const Nanos delay : {Nanos{0}, Nanos{100us}, Nanos{3s}}) {
    order.clear();
    for (Timer* timer : {&first, &second, &third}) EXPECT_TRUE(timer->start(delay));
    first.stop();
    EXPECT_TRUE(first.start(delay));
    EXPECT_TRUE(second.restart(delay + 50us));
    EXPECT_TRUE(second.restart(delay));
    EXPECT_FALSE(loop_.run());
    EXPECT_EQ(order, (std::vector{2, 3, 1})) << delay.count();
  }
}

TEST_F(TimerTest, WaitLastsUntilNextDeadlineAtAnyDistance) {
  for (const Nanos delay : {Nanos{2ms}, Nanos{70ms}, Nanos{5s}, Nanos{24h}, Nanos{24h * 365}}) {
    std::vector<std::unique_ptr<Probe<Timer>>> later;
    for (int i = 0; i < 100; ++i) {
      later.push_back(std::make_unique<Probe<Timer>>(loop_));
      EXPECT_TRUE(later.back()->watcher.start(2 * delay + i * 1ms));
    }
    Probe<Timer> first{loop_};
    EXPECT_TRUE(first->start(delay));
    const std::uint64_t turns = loop_.iteration();
    EXPECT_FALSE(loop_.run(Run::once));
    EXPECT_EQ(first.calls, 1) << "the turn ended early, for " << delay.count() << " ns";
    EXPECT_EQ(loop_.iteration(), turns + 1);
  }
}

TEST_P(RealTimerTest, LoopSleepsUntilDeadline) {
  Probe<Timer> timer{*loop_};
  loop_->measure_waits(true);
  wait_until_it_sleeps(*loop_, [&](Nanos delay) {
    ASSERT_TRUE(timer->start(delay));
    const std::uint64_t before = loop_->iteration();
    EXPECT_TRUE(runs_out(*loop_));
    EXPECT_LE(loop_->iteration() - before, 6u);
  });
}

TEST_P(RealTimerTest, DistantTimerDoesNotDelayReadyDescriptor) {
  Pipe pipe;
  Probe<Timer> timer{*loop_};
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  io.then = [&] {
    io->stop();
    timer->stop();
  };
  ASSERT_TRUE(timer->start(1h));
  ASSERT_TRUE(io->start());
  pipe.fill();
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(io.calls, 1);
}

}  // namespace
}  // namespace spate::testing
