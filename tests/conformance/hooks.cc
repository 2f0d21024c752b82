// Prepare, Check, Idle, Cleanup: their places in a turn.
#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

using HooksTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(HooksTest);

TEST_P(HooksTest, PreparePrecedesWaitAndCheckFollowsIt) {
  Pipe pipe;
  Probe<Prepare> prepare{*loop_};
  Probe<Check> check{*loop_};
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  prepare.note(log_, 'p'), check.note(log_, 'c'), io.note(log_, 'i');
  prepare.then = [&] {
    EXPECT_TRUE(io->start());  // Early enough for this turn's wait.
    pipe.fill();
  };
  EXPECT_TRUE(prepare->start());
  EXPECT_TRUE(check->start());
  turn();
  EXPECT_EQ(log_, "pic");
  EXPECT_EQ(prepare.events, Events::prepare);
  EXPECT_EQ(check.events, Events::check);
}

TEST_P(HooksTest, CheckIsCalledAfterEveryWait) {
  Probe<Check> check{*loop_};
  EXPECT_TRUE(check->start());
  turn(3);
  EXPECT_EQ(check.calls, 3);
}

TEST_P(HooksTest, HighPriorityCheckIsCalledBeforeEvents) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  Probe<Check> high{*loop_};
  Probe<Check> low{*loop_};
  io.note(log_, 'i'), high.note(log_, 'H'), low.note(log_, 'l');
  high->set_priority(2);
  low->set_priority(-2);
  EXPECT_TRUE(low->start());
  EXPECT_TRUE(high->start());
  EXPECT_TRUE(io->start());
  turn();
  EXPECT_EQ(log_, "Hil");
}

TEST_P(HooksTest, HooksOfOneKindAreCalledInOrderOfStarting) {
  Probe<Prepare> a{*loop_};
  Probe<Prepare> b{*loop_};
  Probe<Prepare> c{*loop_};
  Probe<Prepare> d{*loop_};
  a.note(log_, 'a'), b.note(log_, 'b'), c.note(log_, 'c'), d.note(log_, 'd');
  for (Probe<Prepare>* hook : {&d, &b, &a, &c}) EXPECT_TRUE((*hook)->start());
  turn();
  b->stop();
  turn();
  EXPECT_TRUE(b->start());
  turn();
  EXPECT_EQ(log_, "dbacdacdacb");
  log_.clear();
  c->set_priority(1);
  turn();
  EXPECT_EQ(log_, "cdab");
}

TEST_P(HooksTest, HookStartedInHookIsCalledFromNextTurnOn) {
  Probe<Prepare> first{*loop_};
  Probe<Prepare> second{*loop_};
  Probe<Check> third{*loop_};
  Probe<Check> fourth{*loop_};
  first.then = [&] { EXPECT_TRUE(second->start()); };
  third.then = [&] { EXPECT_TRUE(fourth->start()); };
  EXPECT_TRUE(first->start());
  EXPECT_TRUE(third->start());
  turn();
  EXPECT_EQ(second.calls, 0);
  EXPECT_EQ(fourth.calls, 0);
  turn();
  EXPECT_EQ(second.calls, 1);
  EXPECT_EQ(fourth.calls, 1);
}

TEST_P(HooksTest, HookStoppedInHookIsNotCalledInThatTurn) {
  Probe<Check> first{*loop_};
  Probe<Check> second{*loop_};
  Probe<Check> third{*loop_};
  first.then = [&] {
    first->stop();
    second->stop();
  };
  for (Probe<Check>* hook : {&first, &second, &third}) EXPECT_TRUE((*hook)->start());
  turn(2);
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(second.calls, 0);
  EXPECT_EQ(third.calls, 2);
}

TEST_P(HooksTest, StoppingAndStartingManyKeepsOrder) {
  std::vector<std::unique_ptr<Probe<Check>>> hooks;
  for (char name = 'a'; name <= 'z'; ++name) {
    hooks.push_back(std::make_unique<Probe<Check>>(*loop_));
    hooks.back()->note(log_, name);
    EXPECT_TRUE(hooks.back()->watcher.start());
  }
  for (std::size_t i = 0; i < hooks.size(); i += 2) hooks[i]->watcher.stop();
  for (std::size_t i = 0; i < hooks.size(); i += 4) EXPECT_TRUE(hooks[i]->watcher.start());
  turn();
  EXPECT_EQ(log_, "bdfhjlnprtvxzaeimquy");
}

TEST_P(HooksTest, IdleIsCalledWhenNothingElseIsPending) {
  Pipe pipe;
  Probe<Idle> idle{*loop_};
  Probe<Io> io{*loop_, pipe.in(), Events::read};
  EXPECT_TRUE(idle->start());
  EXPECT_TRUE(io->start());
  turn();
  EXPECT_EQ(idle.calls, 1);
  EXPECT_EQ(idle.events, Events::idle);
  pipe.fill();
  turn(2);
  EXPECT_EQ(io.calls, 2);
  EXPECT_EQ(idle.calls, 1);
  pipe.drain();
  turn();
  EXPECT_EQ(idle.calls, 2);
}

TEST_P(HooksTest, IdleIsNotDelayedByLowerPriority) {
  Pipe pipe;
  Probe<Idle> idle{*loop_};
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  io->set_priority(-1);
  EXPECT_TRUE(idle->start());
  EXPECT_TRUE(io->start());
  turn(2);
  EXPECT_EQ(idle.calls, 2);
  EXPECT_EQ(io.calls, 2);
}

TEST_P(HooksTest, IdleIsDelayedByHigherPriority) {
  Pipe pipe;
  Probe<Idle> idle{*loop_};
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  io->set_priority(1);
  EXPECT_TRUE(idle->start());
  EXPECT_TRUE(io->start());
  turn(2);
  EXPECT_EQ(idle.calls, 0);
  io->stop();
  turn();
  EXPECT_EQ(idle.calls, 1);
}

TEST_P(HooksTest, OnlyIdleHooksOfHighestPriorityAreCalled) {
  Probe<Idle> low{*loop_};
  Probe<Idle> high{*loop_};
  Probe<Idle> also_high{*loop_};
  high->set_priority(1);
  also_high->set_priority(1);
  EXPECT_TRUE(low->start());
  EXPECT_TRUE(high->start());
  EXPECT_TRUE(also_high->start());
  turn(2);
  EXPECT_EQ(low.calls, 0);
  EXPECT_EQ(high.calls, 2);
  EXPECT_EQ(also_high.calls, 2);
  high->stop();
  also_high->stop();
  turn();
  EXPECT_EQ(low.calls, 1);
}

TEST_P(HooksTest, CheckDoesNotCountAsPending) {
  Probe<Idle> idle{*loop_};
  Probe<Check> check{*loop_};
  EXPECT_TRUE(idle->start());
  EXPECT_TRUE(check->start());
  turn(2);
  EXPECT_EQ(idle.calls, 2);
  EXPECT_EQ(check.calls, 2);
}

TEST_P(HooksTest, IdleKeepsLoopFromBlocking) {
  Probe<Idle> idle{*loop_};
  Probe<Timer> far{*loop_};
  EXPECT_TRUE(idle->start());
  EXPECT_TRUE(far->start(1h));
  EXPECT_FALSE(loop_->run(Run::once));
  EXPECT_EQ(idle.calls, 1);
  idle.then = [&] { loop_->stop(); };
  EXPECT_FALSE(loop_->run());
  EXPECT_TRUE(loop_->has_work());
  EXPECT_EQ(idle.calls, 2);
}

TEST_P(HooksTest, AllExceptForkAndCleanupKeepLoopAlive) {
  Probe<Prepare> prepare{*loop_};
  Probe<Check> check{*loop_};
  Probe<Idle> idle{*loop_};
  Probe<Fork> fork{*loop_};
  Probe<Cleanup> cleanup{*loop_};
  EXPECT_TRUE(fork->start());
  EXPECT_TRUE(cleanup->start());
  EXPECT_EQ(loop_->active_count(), 0);
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_TRUE(prepare->start());
  EXPECT_TRUE(check->start());
  EXPECT_TRUE(idle->start());
  EXPECT_EQ(loop_->active_count(), 3);
  fork->stop();
  cleanup->stop();
  EXPECT_EQ(loop_->active_count(), 3);
  idle.then = [&] {
    prepare->stop();
    check->stop();
    idle->stop();
  };
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(fork.calls + cleanup.calls, 0);
}

TEST_P(HooksTest, CleanupIsCalledWhileLoopIsBeingDestroyed) {
  auto other = make_loop(backend());
  Loop& loop = *other;
  Pipe pipe;
  Probe<Cleanup> first{loop};
  Probe<Cleanup> second{loop};
  Probe<Io> io{loop, pipe.out(), Events::write};
  Probe<Timer> timer{loop};
  first.note(log_, 'a'), second.note(log_, 'b');
  first.then = [&] {
    EXPECT_TRUE(io->is_active());
    io->stop();
    EXPECT_TRUE(timer->start(1ms));
    EXPECT_EQ(loop.active_count(), 1);
    EXPECT_TRUE(loop.post([] { FAIL() << "there is no next turn"; }));
  };
  EXPECT_TRUE(first->start());
  EXPECT_TRUE(second->start());
  EXPECT_TRUE(io->start());
  other.reset();
  EXPECT_EQ(log_, "ab");
  EXPECT_EQ(first.events, Events::cleanup);
  EXPECT_FALSE(first->is_active());
  EXPECT_FALSE(timer->is_active());
  EXPECT_EQ(io.calls + timer.calls, 0);
}

TEST_P(HooksTest, CleanupStoppedBeforeDestructionIsNotCalled) {
  auto other = make_loop(backend());
  Probe<Cleanup> stopped{*other};
  Probe<Cleanup> never{*other};
  EXPECT_TRUE(stopped->start());
  stopped->stop();
  other.reset();
  EXPECT_EQ(stopped.calls + never.calls, 0);
}

TEST_P(HooksTest, CleanupMayDestroyWatchersIncludingItself) {
  auto other = make_loop(backend());
  Pipe pipe;
  auto io = std::make_unique<Probe<Io>>(*other, pipe.out(), Events::write);
  auto self = std::make_unique<Probe<Cleanup>>(*other);
  auto next = std::make_unique<Probe<Cleanup>>(*other);
  int calls = 0;
  self->then = [&] {
    ++calls;
    io.reset();
    next.reset();
    self.reset();
  };
  EXPECT_TRUE(io->watcher.start());
  EXPECT_TRUE(self->watcher.start());
  EXPECT_TRUE(next->watcher.start());
  other.reset();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace spate::testing
