// Functions that every watcher has: priorities, feed, invoke, clear_pending, the forms of a
// callback.
#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

using PendingTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(PendingTest);

TEST_P(PendingTest, FedWatcherIsCalledEvenIfInactive) {
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(timer->feed(Events::timer | Events::custom));
  EXPECT_TRUE(timer->is_pending());
  EXPECT_FALSE(timer->is_active());
  EXPECT_EQ(loop_->pending_count(), 1u);
  timer.then = [&] { EXPECT_FALSE(timer->is_pending()); };
  turn();
  EXPECT_EQ(timer.calls, 1);
  EXPECT_EQ(timer.events, Events::timer | Events::custom);
  EXPECT_EQ(loop_->pending_count(), 0u);
}

TEST_P(PendingTest, WatcherFedTwiceIsCalledOnceWithBothEventSets) {
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(timer->feed(Events::read));
  EXPECT_TRUE(timer->feed());
  EXPECT_TRUE(timer->feed(Events::write));
  EXPECT_EQ(loop_->pending_count(), 1u);
  turn(2);
  EXPECT_EQ(timer.calls, 1);
  EXPECT_EQ(timer.events, Events::read | Events::write | Events::custom);
}

TEST_P(PendingTest, FedEventsAreMergedWithReportedEvents) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(io->feed());
  turn();
  EXPECT_EQ(io.calls, 1);
  EXPECT_EQ(io.events, Events::write | Events::custom);
}

TEST_P(PendingTest, ClearPendingReturnsDiscardedEvents) {
  Probe<Timer> timer{*loop_};
  Probe<Timer> other{*loop_};
  EXPECT_EQ(timer->clear_pending(), Events::none);
  EXPECT_TRUE(timer->feed(Events::read));
  EXPECT_TRUE(other->feed());
  EXPECT_EQ(timer->clear_pending(), Events::read);
  EXPECT_FALSE(timer->is_pending());
  EXPECT_EQ(loop_->pending_count(), 1u);
  EXPECT_EQ(timer->clear_pending(), Events::none);
  turn();
  EXPECT_EQ(timer.calls, 0);
  EXPECT_EQ(other.calls, 1);
}

TEST_P(PendingTest, ClearPendingLeavesWatcherActive) {
  Pipe pipe;
  Probe<Io> io{*loop_, pipe.out(), Events::write};
  Probe<Check> first{*loop_};
  first->set_priority(2);
  first.then = [&] {
    first->stop();
    EXPECT_EQ(io->clear_pending(), Events::write);
  };
  EXPECT_TRUE(io->start());
  EXPECT_TRUE(first->start());
  turn();
  EXPECT_EQ(io.calls, 0);
  EXPECT_TRUE(io->is_active());
  turn();
  EXPECT_EQ(io.calls, 1);
}

TEST_P(PendingTest, StopDiscardsEventsFedToInactiveWatcher) {
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(timer->feed());
  timer->stop();
  EXPECT_FALSE(timer->is_pending());
  turn();
  EXPECT_EQ(timer.calls, 0);
}

TEST_P(PendingTest, InvokeCallsAtOnce) {
  Probe<Timer> timer{*loop_};
  timer->invoke();
  EXPECT_EQ(timer.calls, 1);
  EXPECT_EQ(timer.events, Events::custom);
  timer->invoke(Events::timer);
  EXPECT_EQ(timer.events, Events::timer);
  EXPECT_EQ(loop_->pending_count(), 0u);
}

TEST_P(PendingTest, InvokeMayDestroyWatcher) {
  auto timer = std::make_unique<Probe<Timer>>(*loop_);
  timer->then = [&] { timer.reset(); };
  timer->watcher.invoke();
  EXPECT_EQ(timer, nullptr);
}

TEST_P(PendingTest, HighestPriorityIsCalledFirst) {
  std::vector<std::unique_ptr<Probe<Timer>>> timers;
  for (const int priority : {0, -2, 2, -1, 1, 0, 2, -2}) {
    timers.push_back(std::make_unique<Probe<Timer>>(*loop_));
    timers.back()->note(log_, static_cast<char>('3' + priority));
    timers.back()->watcher.set_priority(priority);
    EXPECT_TRUE(timers.back()->watcher.feed());
  }
  turn();
  EXPECT_EQ(log_, "55433211");
}

TEST_P(PendingTest, PrioritiesBeyondRangeAreClamped) {
  Probe<Timer> timer{*loop_};
  EXPECT_EQ(timer->priority(), 0);
  timer->set_priority(100);
  EXPECT_EQ(timer->priority(), 2);
  timer->set_priority(-100);
  EXPECT_EQ(timer->priority(), -2);
}

TEST_P(PendingTest, PrioritiesMayChangeWhileActive) {
  Pipe one;
  Pipe two;
  Probe<Io> a{*loop_, one.out(), Events::write};
  Probe<Io> b{*loop_, two.out(), Events::write};
  a.note(log_, 'a'), b.note(log_, 'b');
  EXPECT_TRUE(a->start());
  EXPECT_TRUE(b->start());
  a->set_priority(1);
  turn();
  a->set_priority(-1);
  turn();
  EXPECT_EQ(log_, "abba");
  EXPECT_EQ(loop_->active_count(), 2);
}

TEST_P(PendingTest, EqualPrioritiesAreServedInOrder) {
  std::vector<std::unique_ptr<Probe<Timer>>> timers;
  for (char name = 'a'; name <= 'z'; ++name) {
    timers.push_back(std::make_unique<Probe<Timer>>(*loop_));
    timers.back()->note(log_, name);
    EXPECT_TRUE(timers.back()->watcher.feed());
  }
  for (std::size_t i = 1; i < timers.size(); i += 2) timers[i]->watcher.clear_pending();
  EXPECT_TRUE(timers[1]->watcher.feed());
  turn();
  EXPECT_EQ(log_, "acegikmoqsuwyb");
}

TEST_P(PendingTest, HigherPriorityFedInCallbackIsCalledNext) {
  Probe<Timer> a{*loop_};
  Probe<Timer> b{*loop_};
  Probe<Timer> high{*loop_};
  Probe<Timer> same{*loop_};
  Probe<Timer> low{*loop_};
  a.note(log_, 'a'), b.note(log_, 'b'), high.note(log_, 'H'), same.note(log_, 's');
  low.note(log_, 'l');
  high->set_priority(1);
  low->set_priority(-1);
  a.then = [&] {
    EXPECT_TRUE(low->feed());
    EXPECT_TRUE(same->feed());
    EXPECT_TRUE(high->feed());
  };
  EXPECT_TRUE(a->feed());
  EXPECT_TRUE(b->feed());
  turn();
  EXPECT_EQ(log_, "aHbsl");
}

TEST_P(PendingTest, WatcherMayFeedItselfInItsCallback) {
  Probe<Timer> timer{*loop_};
  timer.then = [&] {
    if (timer.calls < 3) EXPECT_TRUE(timer->feed());
  };
  EXPECT_TRUE(timer->feed());
  turn();
  EXPECT_EQ(timer.calls, 3);
}

TEST_P(PendingTest, CallbackMayBeReplaced) {
  static int replaced;
  replaced = 0;
  Probe<Timer> timer{*loop_};
  EXPECT_TRUE(timer->feed());
  timer->set_callback([] { ++replaced; });
  turn();
  EXPECT_EQ(timer.calls, 0);
  EXPECT_EQ(replaced, 1);
}

struct Session {
  explicit Session(Loop& loop)
      : by_method(loop, bind<&Session::on_timer>(this)),
        by_plain_method(loop, bind<&Session::on_anything>(this)),
        by_lambda(loop, [this](Timer& timer) { last = &timer; }) {}
  void on_timer(Timer& timer, Events events) {
    last = &timer;
    seen = events;
  }
  void on_anything() { ++calls; }

  Timer* last = nullptr;
  Events seen = Events::none;
  int calls = 0;
  Timer by_method;
  Timer by_plain_method;
  Timer by_lambda;
};

TEST_P(PendingTest, CallbackMayTakeAnySupportedArguments) {
  Session session{*loop_};
  session.by_method.invoke(Events::timer);
  EXPECT_EQ(session.last, &session.by_method);
  EXPECT_EQ(session.seen, Events::timer);
  session.by_plain_method.invoke();
  EXPECT_EQ(session.calls, 1);
  session.by_lambda.invoke();
  EXPECT_EQ(session.last, &session.by_lambda);
  static Events captureless;
  Timer with_events{*loop_, [](Events events) { captureless = events; }};
  with_events.invoke(Events::read);
  EXPECT_EQ(captureless, Events::read);
  Timer with_function{*loop_, +[](Timer&, Events events) { captureless = events; }};
  with_function.invoke(Events::write);
  EXPECT_EQ(captureless, Events::write);
  EXPECT_EQ(&with_function.loop(), loop_.get());
}

}  // namespace
}  // namespace spate::testing
