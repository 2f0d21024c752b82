// The order within a turn, and that no class of events starves another.
#include <algorithm>
#include <csignal>

#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

using OrderTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(OrderTest);

TEST_P(OrderTest, TurnQueuesEventsInDocumentedOrder) {
  Pipe pipe;
  Probe<Prepare> prepare{*loop_};
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  Probe<Timer> timer{*loop_};
  Probe<Signal> signal{*loop_};
  Probe<Async> async{*loop_};
  Probe<Check> check{*loop_};
  prepare.note(log_, 'P'), io.note(log_, 'i'), timer.note(log_, 't'), signal.note(log_, 's');
  async.note(log_, 'a'), check.note(log_, 'C');
  EXPECT_TRUE(check->start());
  EXPECT_TRUE(loop_->post([this] { log_ += 'p'; }));
  EXPECT_TRUE(async->start());
  async->send();
  EXPECT_FALSE(signal->start(SIGUSR1));
  ::raise(SIGUSR1);
  EXPECT_TRUE(timer->start(0ns));
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(prepare->start());
  turn();
  EXPECT_EQ(log_, "PitsapC");
}

TEST_P(OrderTest, PriorityPrecedesQueueOrder) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  Probe<Timer> timer{*loop_};
  Probe<Signal> signal{*loop_};
  Probe<Async> async{*loop_};
  io.note(log_, 'i'), timer.note(log_, 't'), signal.note(log_, 's'), async.note(log_, 'a');
  io->set_priority(-2);
  timer->set_priority(-1);
  signal->set_priority(1);
  async->set_priority(2);
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(timer->start(0ns));
  EXPECT_FALSE(signal->start(SIGUSR1));
  EXPECT_TRUE(async->start());
  ::raise(SIGUSR1);
  async->send();
  turn();
  EXPECT_EQ(log_, "asti");
}

TEST_P(OrderTest, EventsQueuedBeforeDispatchAreCalledInThatTurn) {
  constexpr int kMany = 2000;  // Far beyond the budget for events that callbacks feed.
  std::vector<std::unique_ptr<Probe<Timer>>> timers;
  for (int i = 0; i < kMany; ++i) {
    timers.push_back(std::make_unique<Probe<Timer>>(*loop_));
    EXPECT_TRUE(timers.back()->watcher.start(0ns));
  }
  turn();
  for (const auto& timer : timers) EXPECT_EQ(timer->calls, 1);
}

TEST_P(OrderTest, EventsFedByCallbacksAreLimitedByBudget) {
  for (const std::uint32_t budget : {1u, 5u, 256u}) {
    Result<std::unique_ptr<Loop>> created = Loop::create({.backend = backend(), .budget = budget});
    ASSERT_TRUE(created);
    Loop& loop = **created;
    Probe<Timer> timer{loop};
    timer.then = [&] { EXPECT_TRUE(timer->feed()); };
    EXPECT_TRUE(timer->feed());
    testing::turn(loop);
    EXPECT_EQ(timer.calls, static_cast<int>(budget) + 1);
    EXPECT_EQ(loop.pending_count(), 1u);
    timer->stop();
  }
}

TEST_P(OrderTest, RestOfSpentBudgetKeepsLoopFromBlocking) {
  Result<std::unique_ptr<Loop>> created = Loop::create({.backend = backend(), .budget = 3});
  ASSERT_TRUE(created);
  Loop& loop = **created;
  Probe<Timer> far{loop};
  Probe<Timer> timer{loop};
  EXPECT_TRUE(far->start(1h));
  timer.then = [&] {
    if (timer.calls < 20) EXPECT_TRUE(timer->feed());
    if (timer.calls == 20) loop.stop();
  };
  EXPECT_TRUE(timer->feed());
  loop.measure_waits(true);
  EXPECT_FALSE(loop.run());
  EXPECT_TRUE(loop.has_work());
  EXPECT_EQ(timer.calls, 20);
  EXPECT_EQ(loop.metrics().blocked, 0ns);
}

TEST_P(OrderTest, EventsLeftForNextTurnKeepTheirOrder) {
  Result<std::unique_ptr<Loop>> created = Loop::create({.backend = backend(), .budget = 2});
  ASSERT_TRUE(created);
  Loop& loop = **created;
  std::vector<std::unique_ptr<Probe<Timer>>> fed;
  for (char name = 'a'; name <= 'h'; ++name) {
    fed.push_back(std::make_unique<Probe<Timer>>(loop));
    fed.back()->note(log_, name);
  }
  Probe<Timer> feeder{loop};
  feeder.then = [&] {
    for (const auto& timer : fed) EXPECT_TRUE(timer->watcher.feed());
  };
  EXPECT_TRUE(feeder->feed());
  testing::turn(loop);
  EXPECT_EQ(log_, "ab");
  fed[4]->watcher.clear_pending();
  EXPECT_TRUE(fed[0]->watcher.feed());
  testing::turn(loop);
  EXPECT_EQ(log_, "abcdfgha");
}

// ---- a watcher that feeds itself without end

class FairnessTest : public OnEveryBackend {
 protected:
  // Feeds itself a million times, unless the others have run before.
  void hog(int priority, const std::function<bool()>& others_are_done) {
    Probe<Timer> greedy{*loop_};
    greedy->set_priority(priority);
    greedy.then = [&] {
      if (greedy.calls < 1'000'000 && !others_are_done()) EXPECT_TRUE(greedy->feed());
    };
    EXPECT_TRUE(greedy->feed());
    while (greedy->is_pending()) turn();
    EXPECT_TRUE(others_are_done());
    EXPECT_LT(greedy.calls, 5'000) << "the others had to wait";
  }

  Pipe pipe_;
};
SPATE_ON_EVERY_BACKEND(FairnessTest);

TEST_P(FairnessTest, SelfFeedingWatcherStarvesNoWatcher) {
  for (const int priority : {-2, 0, 2}) {
    Probe<Io> io{*loop_, pipe_.out(), Events::write};
    Probe<Timer> timer{*loop_};
    Probe<Timer> low{*loop_};
    Probe<Async> async{*loop_};
    Probe<Check> check{*loop_};
    bool posted = false;
    low->set_priority(-2);
    io->set_priority(-2);
    EXPECT_TRUE(io->start());
    EXPECT_TRUE(timer->start(0ns, 1ns));
    EXPECT_TRUE(low->feed());
    EXPECT_TRUE(async->start());
    async->send();
    EXPECT_TRUE(check->start());
    EXPECT_TRUE(loop_->post([&] { posted = true; }));
    hog(priority, [&] {
      return io.calls > 2 && timer.calls > 2 && low.calls > 0 && async.calls > 0 &&
             check.calls > 2 && posted;
    });
  }
}

TEST_P(FairnessTest, AllOfMillionSelfFeedsAreCalled) {
  Probe<Timer> greedy{*loop_};
  greedy.then = [&] {
    if (greedy.calls < 1'000'000) EXPECT_TRUE(greedy->feed());
  };
  EXPECT_TRUE(greedy->feed());
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(greedy.calls, 1'000'000);
}

TEST_P(FairnessTest, AlwaysReadyHighPriorityDoesNotStarveLowOne) {
  Probe<Io> high{*loop_, pipe_.out(), Events::write};
  Probe<Timer> low{*loop_};
  high->set_priority(2);
  low->set_priority(-2);
  EXPECT_TRUE(high->start());
  EXPECT_TRUE(low->start(0ns, 1ns));
  turn(50);
  EXPECT_EQ(high.calls, 50);
  EXPECT_GE(low.calls, 45);
}

TEST_P(FairnessTest, SelfPostingTaskStarvesNoWatcher) {
  Probe<Io> io{*loop_, pipe_.out(), Events::write};
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(timer->start(0ns, 1ns));
  struct Endless {
    Loop& loop;
    int calls = 0;
    bool enough = false;
    void post() {
      EXPECT_TRUE(loop.post([this] {
        ++calls;
        if (!enough) post();
      }));
    }
  } endless{*loop_};
  endless.post();
  turn(100);
  endless.enough = true;
  turn();
  EXPECT_GE(endless.calls, 90);
  EXPECT_GE(io.calls, 100);
  EXPECT_GE(timer.calls, 90);
}

TEST_P(FairnessTest, PostFloodStarvesNoWatcher) {
  Probe<Io> io{*loop_, pipe_.out(), Events::write};
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(timer->start(0ns, 1ns));
  constexpr int kFlood = 20'000;
  int calls = 0;
  int longest = 0;
  int since_io = 0;
  io.then = [&] { since_io = 0; };
  for (int i = 0; i < kFlood; ++i) {
    EXPECT_TRUE(loop_->post([&] {
      ++calls;
      longest = std::max(longest, ++since_io);
    }));
  }
  while (calls < kFlood) turn();
  EXPECT_LE(longest, 2048);
  EXPECT_GE(io.calls, 10);
  EXPECT_GE(timer.calls, 9);
}

TEST_P(FairnessTest, SelfRestartingTimerStarvesNoWatcher) {
  Probe<Timer> greedy{*loop_};
  Probe<Io> io{*loop_, pipe_.out(), Events::write};
  greedy.then = [&] { EXPECT_TRUE(greedy->start(0ns)); };
  EXPECT_TRUE(greedy->start(0ns));
  EXPECT_TRUE(io->start());
  turn(20);
  EXPECT_EQ(io.calls, 20);
  EXPECT_EQ(greedy.calls, 20);
}

TEST_P(FairnessTest, SelfSendingAsyncStarvesNoWatcher) {
  Probe<Async> greedy{*loop_};
  Probe<Io> io{*loop_, pipe_.out(), Events::write};
  greedy.then = [&] { greedy->send(); };
  EXPECT_TRUE(greedy->start());
  greedy->send();
  EXPECT_TRUE(io->start());
  turn(20);
  EXPECT_EQ(io.calls, 20);
  EXPECT_EQ(greedy.calls, 20);
}

}  // namespace
}  // namespace spate::testing
