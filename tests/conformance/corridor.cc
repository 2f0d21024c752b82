// Ready watchers are called without being queued; the behaviour must be the same.
#include "base/fault.h"
#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

// Three Ios, reported in their order.
class CorridorTest : public ::testing::Test {
 protected:
  CorridorTest() {
    a.note(log, 'a'), b.note(log, 'b'), c.note(log, 'c');
    for (Probe<Io>* io : {&a, &b, &c}) EXPECT_TRUE((*io)->start());
    EXPECT_FALSE(loop.run(Run::no_wait));
  }

  // Runs one turn in which all active ones are ready.
  void turn() {
    for (const Pipe& pipe : pipes) scripted.backend->report(pipe.in(), Events::read);
    EXPECT_FALSE(loop.run(Run::no_wait));
  }

  ScriptedLoop scripted;
  Loop& loop = *scripted.loop;
  Pipe pipes[3];
  std::string log;
  Probe<Io> a{loop, pipes[0].in(), Events::read};
  Probe<Io> b{loop, pipes[1].in(), Events::read};
  Probe<Io> c{loop, pipes[2].in(), Events::read};
};

TEST_F(CorridorTest, TimersOfSameTurnAreCalledAfterwards) {
  Probe<Timer> timer{loop};
  timer.note(log, 't');
  EXPECT_TRUE(timer->start(0ns));
  turn();
  EXPECT_EQ(log, "abct");
}

TEST_F(CorridorTest, EarlierQueuedEventsComeFirst) {
  Probe<Timer> timer{loop};
  timer.note(log, 't');
  EXPECT_TRUE(timer->feed());
  turn();
  EXPECT_EQ(log, "tabc");
}

TEST_F(CorridorTest, HigherPriorityFedInCallbackIsCalledNext) {
  Probe<Timer> urgent{loop};
  urgent.note(log, 'u');
  urgent->set_priority(1);
  a.then = [&] { EXPECT_TRUE(urgent->feed()); };
  turn();
  EXPECT_EQ(log, "aubc");
}

TEST_F(CorridorTest, StoppedIoIsNotCalledEvenIfRestarted) {
  a.then = [&] {
    b->stop();
    EXPECT_TRUE(b->start());
    c->stop();
  };
  turn();
  EXPECT_EQ(log, "a");
}

TEST_F(CorridorTest, QueuedIoIsPendingAndKeepsItsPosition) {
  Probe<Timer> timer{loop};
  timer.note(log, 't');
  EXPECT_TRUE(timer->start(0ns));
  a.then = [&] {
    EXPECT_EQ(loop.pending_count(), 3u);
    EXPECT_FALSE(a->is_pending());
    EXPECT_TRUE(b->is_pending());
    EXPECT_EQ(c->clear_pending(), Events::read);
  };
  turn();
  EXPECT_EQ(log, "abt");
}

TEST_F(CorridorTest, FedIoIsCalledOnceWithBothEvents) {
  a.then = [&] { EXPECT_TRUE(b->feed()); };
  turn();
  EXPECT_EQ(log, "abc");
  EXPECT_EQ(b.events, Events::read | Events::custom);
}

TEST_F(CorridorTest, IoStartedInCallbackMissesEarlierReadiness) {
  Probe<Io> late{loop, pipes[1].in(), Events::read};
  late.note(log, 'l');
  a.then = [&] { EXPECT_TRUE(late->start()); };
  turn();
  EXPECT_EQ(log, "abc");
}

TEST_F(CorridorTest, ModifiedIoIsCalledOnlyForItsRemainingInterest) {
  a.then = [&] {
    b->modify(Events::write);
    c->modify(Events::read | Events::write);
  };
  turn();
  EXPECT_EQ(log, "ac");
}

TEST_F(CorridorTest, DroppedInterestDiscardsEventEvenIfRestored) {
  a.then = [&] {
    b->modify(Events::write);
    b->modify(Events::read);
  };
  turn();
  EXPECT_EQ(log, "ac");
}

TEST_F(CorridorTest, NestedRunCallsRestFirst) {
  a.then = [&] {
    a.then = nullptr;
    log += '(';
    turn();
    log += ')';
  };
  turn();
  EXPECT_EQ(log, "a(bca)");
}

TEST_F(CorridorTest, PriorityOfActiveIoMayChangeInCallback) {
  a.then = [&] { c->set_priority(1); };
  turn();
  EXPECT_EQ(log, "ab");  // As stopped and started.
  log.clear();
  turn();
  EXPECT_EQ(log, "cab");
}

TEST_F(CorridorTest, QueuedIoMayBeClosedAndReopened) {
  a.then = [&] {
    b->stop_before_close();
    pipes[1] = Pipe();
    b->set(pipes[1].in(), Events::read);
    EXPECT_TRUE(b->start());
  };
  for (int i = 0; i < 3; ++i) {
    turn();
    EXPECT_FALSE(loop.run(Run::no_wait));  // Registers the new descriptor with the backend.
  }
  EXPECT_EQ(log, "acacac");
  EXPECT_EQ(loop.metrics().stale_events, 0u);
}

TEST_F(CorridorTest, RestIsCalledInNextTurnWithoutMemory) {
  a.then = [&] {
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, 1, ENOMEM);
    const FaultScope scope(plan);
    EXPECT_FALSE(b->is_pending());
  };
  turn();
  EXPECT_EQ(log, "a");
  a.then = nullptr;
  turn();
  EXPECT_EQ(log, "aabc");
}

}  // namespace
}  // namespace spate::testing
