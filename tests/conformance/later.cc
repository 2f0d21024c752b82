// Callbacks that the loop owns and calls once: after() and defer(). Also runs with a time limit:
// run_for(); and the loop of the calling thread: current().
#include <thread>

#include "base/fault.h"
#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

std::error_code invalid() { return {EINVAL, std::system_category()}; }

// ---- after()

using AfterTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(AfterTest);

TEST_P(AfterTest, TaskIsCalledOnceAndKeepsLoopAliveUntilThen) {
  int calls = 0;
  const Nanos began = loop_->now();
  EXPECT_FALSE(loop_->after(5ms, [&] { ++calls; }));
  EXPECT_EQ(loop_->active_count(), 1);
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_GE(loop_->now() - began, 5ms);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(loop_->active_count(), 0);
}

TEST_P(AfterTest, TasksAreCalledByTimeThenInOrder) {
  EXPECT_FALSE(loop_->after(2ms, [&] { log_ += 'c'; }));
  EXPECT_FALSE(loop_->after(1ms, [&] { log_ += 'a'; }));
  EXPECT_FALSE(loop_->after(1ms, [&] { log_ += 'b'; }));
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(log_, "abc");
}

TEST_P(AfterTest, NegativeDelayCountsAsZero) {
  EXPECT_FALSE(loop_->after(-5s, [&] { log_ += 'n'; }));
  turn();
  EXPECT_EQ(log_, "n");
}

TEST_P(AfterTest, InfiniteDelayIsError) {
  auto shared = std::make_shared<int>(0);
  EXPECT_EQ(loop_->after(kForever, [shared] { FAIL(); }), invalid());
  EXPECT_EQ(loop_->after(Nanos::max(), [shared] { FAIL(); }), invalid());
  EXPECT_EQ(shared.use_count(), 1);
  EXPECT_FALSE(loop_->has_work());
}

TEST_P(AfterTest, TaskMayRescheduleItselfAndOwnObjects) {
  struct Again {
    Loop& loop;
    std::unique_ptr<int> left;
    void operator()() {
      if (--*left > 0) EXPECT_FALSE(loop.after(0ns, std::move(*this)));
    }
  };
  auto left = std::make_unique<int>(5);
  EXPECT_FALSE(loop_->after(0ns, Again{*loop_, std::move(left)}));
  turn(4);
  EXPECT_TRUE(loop_->has_work());
  EXPECT_TRUE(runs_out(*loop_, Run::no_wait));
}

TEST_P(AfterTest, TaskMayRunLoop) {
  EXPECT_FALSE(loop_->after(0ns, [&] {
    EXPECT_FALSE(loop_->after(0ns, [&] { log_ += 'i'; }));
    EXPECT_TRUE(runs_out(*loop_));
    log_ += 'o';
  }));
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(log_, "io");
}

TEST_P(AfterTest, DestroyedLoopDestroysTasksUncalled) {
  auto shared = std::make_shared<int>(0);
  EXPECT_FALSE(loop_->after(1h, [shared] { FAIL(); }));
  EXPECT_FALSE(loop_->after(0ns, [shared] { FAIL(); }));
  EXPECT_TRUE(loop_->defer([shared] { FAIL(); }));
  EXPECT_FALSE(loop_->on_signal(SIGUSR1, [shared] { FAIL(); }));
  EXPECT_EQ(shared.use_count(), 5);
  loop_.reset();
  EXPECT_EQ(shared.use_count(), 1);
}

// ---- defer()

using DeferTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(DeferTest);

TEST_P(DeferTest, TaskIsCalledInSameTurnAfterQueuedEvents) {
  Probe<Timer> first{*loop_};
  Probe<Timer> second{*loop_};
  first.note(log_, '1'), second.note(log_, '2');
  first.then = [&] {
    EXPECT_TRUE(loop_->defer([&] { log_ += 'd'; }));
    EXPECT_TRUE(loop_->defer([&] { log_ += 'e'; }));
    log_ += '.';
  };
  EXPECT_TRUE(first->feed());
  EXPECT_TRUE(second->feed());
  turn();
  EXPECT_EQ(log_, "1.2de");
}

TEST_P(DeferTest, TaskDeferredOutsideRunWaitsForNextRun) {
  EXPECT_TRUE(loop_->defer([&] { log_ += 'd'; }));
  EXPECT_EQ(log_, "");
  EXPECT_EQ(loop_->active_count(), 0);
  EXPECT_TRUE(loop_->has_work());
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(log_, "d");
}

TEST_P(DeferTest, TasksBeyondBudgetAreCalledInNextTurn) {
  const std::unique_ptr<Loop> loop = std::move(*Loop::create({.backend = backend(), .budget = 3}));
  int calls = 0;
  EXPECT_TRUE(loop->defer([&] {
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(loop->defer([&] { ++calls; }));
  }));
  testing::turn(*loop);
  EXPECT_EQ(calls, 3);
  testing::turn(*loop);
  EXPECT_EQ(calls, 5);
}

TEST_P(DeferTest, DeferChainStarvesNoWatcher) {
  struct Chain {
    Loop& loop;
    int& links;
    void operator()() const {
      ++links;
      if (links < 100'000) EXPECT_TRUE(loop.defer(*this));
    }
  };
  int links = 0;
  Probe<Timer> timer{*loop_};
  timer.then = [&] { loop_->stop(); };
  EXPECT_TRUE(loop_->defer(Chain{*loop_, links}));
  EXPECT_TRUE(timer->start(0ns));
  EXPECT_FALSE(loop_->run());
  EXPECT_EQ(timer.calls, 1);
  EXPECT_LT(links, 1000);
}

TEST_P(DeferTest, NestedRunCallsDeferredTasks) {
  EXPECT_TRUE(loop_->defer([&] {
    EXPECT_TRUE(loop_->defer([&] { log_ += 'i'; }));
    turn();
    log_ += 'o';
  }));
  turn();
  EXPECT_EQ(log_, "io");
}

// ---- run_for()

using RunForTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(RunForTest);

TEST_P(RunForTest, EndsWhenTimeHasPassed) {
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(timer->start(1ms, 1ms));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(loop_->run_for(20ms));
  EXPECT_GE(std::chrono::steady_clock::now() - began, 20ms);
  EXPECT_GE(timer.calls, 1);
  EXPECT_EQ(loop_->active_count(), 1);
  EXPECT_EQ(loop_->metrics().active_timers, 1u) << "nothing of it is left";
}

TEST_P(RunForTest, EndsEarlierWhenNothingIsLeft) {
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(timer->start(1ms));
  EXPECT_FALSE(loop_->run_for(1h));
  EXPECT_EQ(timer.calls, 1);
  EXPECT_FALSE(loop_->has_work());
  EXPECT_FALSE(loop_->run_for(1h));
}

TEST_P(RunForTest, EndsEarlierWhenItIsStopped) {
  Probe<Timer> timer{*loop_};
  timer.then = [&] { loop_->stop(); };
  EXPECT_TRUE(timer->start(1ms, 1ms));
  EXPECT_FALSE(loop_->run_for(1h));
  EXPECT_EQ(timer.calls, 1);
  turn();
}

TEST_P(RunForTest, ZeroTimeRunsOneTurn) {
  for (const Nanos none : {Nanos{0}, Nanos{-1}, Nanos::min()}) {
    Probe<Idle> idle{*loop_};
    EXPECT_TRUE(idle->start());
    EXPECT_FALSE(loop_->run_for(none));
    EXPECT_EQ(idle.calls, 1);
  }
}

TEST_P(RunForTest, UnlimitedRunEndsWhenNothingIsLeft) {
  for (const Nanos forever : {kForever, Nanos::max()}) {
    EXPECT_FALSE(loop_->after(1ms, [&] { log_ += 'a'; }));
    EXPECT_FALSE(loop_->run_for(forever));
  }
  EXPECT_EQ(log_, "aa");
}

TEST_P(RunForTest, LimitEndsNestedRuns) {
  loop_->ref();
  EXPECT_TRUE(loop_->defer([&] {
    EXPECT_FALSE(loop_->run());
    log_ += 'i';
  }));
  EXPECT_FALSE(loop_->run_for(5ms));
  EXPECT_EQ(log_, "i");
  EXPECT_EQ(loop_->depth(), 0);
  turn();
}

TEST_P(RunForTest, NestedRunForEndsOnlyItself) {
  loop_->ref();
  EXPECT_TRUE(loop_->defer([&] {
    EXPECT_FALSE(loop_->run_for(1ms));
    log_ += 'i';
    loop_->unref();
    EXPECT_FALSE(loop_->after(1ms, [&] { log_ += 'o'; }));
  }));
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(log_, "io");
}

TEST_P(RunForTest, LimitCountsFromCall) {
  std::this_thread::sleep_for(10ms);
  const auto began = std::chrono::steady_clock::now();
  loop_->ref();
  EXPECT_FALSE(loop_->run_for(5ms));
  EXPECT_GE(std::chrono::steady_clock::now() - began, 5ms);
}

TEST_P(RunForTest, RunsNothingWithoutMemory) {
  EXPECT_TRUE(loop_->defer([&] { log_ += 'd'; }));
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, 1, ENOMEM);
  {
    const FaultScope scope(plan);
    EXPECT_EQ(loop_->run_for(1h), std::error_code(ENOMEM, std::system_category()));
  }
  EXPECT_EQ(log_, "");
  EXPECT_FALSE(loop_->run_for(1h));
  EXPECT_EQ(log_, "d");
}

// ---- current()

using CurrentTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(CurrentTest);

TEST_P(CurrentTest, CurrentLoopIsThatOfRunningCallback) {
  EXPECT_EQ(Loop::current(), nullptr);
  EXPECT_TRUE(loop_->defer([&] {
    EXPECT_EQ(Loop::current(), loop_.get());
    std::thread([] { EXPECT_EQ(Loop::current(), nullptr); }).join();
  }));
  turn();
  EXPECT_EQ(Loop::current(), nullptr);
}

TEST_P(CurrentTest, CurrentLoopIsInnermost) {
  const std::unique_ptr<Loop> other = make_loop(backend());
  EXPECT_TRUE(other->defer([&] {
    EXPECT_EQ(Loop::current(), other.get());
    turn();
    EXPECT_EQ(Loop::current(), other.get());
  }));
  EXPECT_TRUE(loop_->defer([&] {
    testing::turn(*other);
    EXPECT_EQ(Loop::current(), loop_.get());
  }));
  turn();
}

}  // namespace
}  // namespace spate::testing
