// Async, post() and wake(): the calls allowed on other threads.
#include <csignal>
#include <thread>

#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

using AsyncTest = OnEveryBackend;
using PostTest = OnEveryBackend;
using WakeTest = OnEveryBackend;
SPATE_ON_EVERY_BACKEND(AsyncTest);
SPATE_ON_EVERY_BACKEND(PostTest);
SPATE_ON_EVERY_BACKEND(WakeTest);

TEST_P(AsyncTest, SendInvokesCallback) {
  Probe<Async> async{*loop_};
  EXPECT_TRUE(async->start());
  turn();
  EXPECT_EQ(async.calls, 0);
  async->send();
  turn();
  EXPECT_EQ(async.calls, 1);
  EXPECT_EQ(async.events, Events::async);
  turn(2);
  EXPECT_EQ(async.calls, 1);
}

TEST_P(AsyncTest, SentFlagIsSetUntilLoopCollectsIt) {
  Probe<Timer> first{*loop_};
  Probe<Async> async{*loop_};
  EXPECT_FALSE(async->is_sent());
  EXPECT_TRUE(async->start());
  async->send();
  EXPECT_TRUE(async->is_sent());
  EXPECT_FALSE(async->is_pending());
  first->set_priority(1);
  first.then = [&] {
    EXPECT_FALSE(async->is_sent());
    EXPECT_TRUE(async->is_pending());
  };
  EXPECT_TRUE(first->start(0ns));
  turn();
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(async.calls, 1);
  EXPECT_FALSE(async->is_sent());
}

TEST_P(AsyncTest, SendsAreMergedUntilCallbackRuns) {
  Probe<Async> async{*loop_};
  EXPECT_TRUE(async->start());
  for (int i = 0; i < 100; ++i) async->send();
  turn(2);
  EXPECT_EQ(async.calls, 1);
}

TEST_P(AsyncTest, SendBeforeCallIsServedByThatCall) {
  Probe<Async> first{*loop_};
  Probe<Async> async{*loop_};
  first->set_priority(1);
  first.then = [&] { async->send(); };
  EXPECT_TRUE(first->start());
  EXPECT_TRUE(async->start());
  first->send();
  async->send();
  turn(3);
  EXPECT_EQ(async.calls, 1);
  async->send();
  turn(2);
  EXPECT_EQ(async.calls, 2);
}

TEST_P(AsyncTest, CallForAnotherReasonIncludesSentEvent) {
  Probe<Async> async{*loop_};
  EXPECT_TRUE(async->start());
  Probe<Timer> timer{*loop_};
  timer.then = [&] {
    async->feed();
    async->send();
  };
  timer->start(0ns);
  turn(3);
  EXPECT_EQ(async.calls, 1);
  EXPECT_EQ(async.events, Events::custom | Events::async);
}

TEST_P(AsyncTest, SendDuringServingCallInvokesItAgain) {
  Probe<Async> first{*loop_};
  Probe<Async> async{*loop_};
  first->set_priority(1);
  first.then = [&] { async->send(); };
  async.then = [&] {
    if (async.calls == 1) async->send();
  };
  EXPECT_TRUE(first->start());
  EXPECT_TRUE(async->start());
  first->send();
  async->send();
  turn(4);
  EXPECT_EQ(async.calls, 2);
}

TEST_P(AsyncTest, StopAfterServedSendIsSafe) {
  Probe<Async> first{*loop_};
  auto async = std::make_unique<Probe<Async>>(*loop_);
  first->set_priority(1);
  first.then = [&] { async->watcher.send(); };
  async->then = [&] { async.reset(); };
  EXPECT_TRUE(first->start());
  EXPECT_TRUE(async->watcher.start());
  first->send();
  async->watcher.send();
  turn(3);
  EXPECT_EQ(async, nullptr);
}

TEST_P(AsyncTest, SendInItsOwnCallbackInvokesItAgain) {
  Probe<Async> async{*loop_};
  async.then = [&] {
    if (async.calls == 1) async->send();
    if (async.calls == 2) async->stop();
  };
  EXPECT_TRUE(async->start());
  async->send();
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(async.calls, 2);
}

TEST_P(AsyncTest, WakesSleepingLoop) {
  Probe<Async> async{*loop_};
  async.then = [&] { async->stop(); };
  EXPECT_TRUE(async->start());
  std::thread thread = when_asleep([&] { async->send(); });
  EXPECT_TRUE(runs_out(*loop_));
  thread.join();
  EXPECT_EQ(async.calls, 1);
}

TEST_P(AsyncTest, SendEntersKernelOnlyIfLoopSleeps) {
  Probe<Async> async{*loop_};
  EXPECT_TRUE(async->start());
  for (int i = 0; i < 10; ++i) {
    async->send();
    turn();
  }
  EXPECT_EQ(async.calls, 10);
  EXPECT_EQ(loop_->metrics().kernel_calls.wake_write, 0u);
}

TEST_P(AsyncTest, SeveralAsyncsAreIndependent) {
  Probe<Async> a{*loop_};
  Probe<Async> b{*loop_};
  Probe<Async> c{*loop_};
  for (Probe<Async>* async : {&a, &b, &c}) EXPECT_TRUE((*async)->start());
  a->send();
  c->send();
  turn(2);
  EXPECT_EQ(a.calls, 1);
  EXPECT_EQ(b.calls, 0);
  EXPECT_EQ(c.calls, 1);
}

TEST_P(AsyncTest, SendIsAllowedInSignalHandler) {
  static Async* target = nullptr;
  Probe<Async> async{*loop_};
  async.then = [&] { async->stop(); };
  EXPECT_TRUE(async->start());
  target = &async.watcher;
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = [](int) { target->send(); };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  const int parent = ::getpid();
  const int pid = fork_child([&] {
    await_sleep(parent);
    return ::kill(parent, SIGUSR1);
  });
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(async.calls, 1);
  EXPECT_EQ(wait_for(pid), 0);
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(AsyncTest, StoppedAsyncIsNotCalledForEarlierSend) {
  Probe<Async> a{*loop_};
  Probe<Async> b{*loop_};
  EXPECT_TRUE(a->start());
  EXPECT_TRUE(b->start());
  a->send();
  b->send();
  a->stop();
  turn();
  EXPECT_EQ(a.calls, 0);
  EXPECT_EQ(b.calls, 1);
  EXPECT_TRUE(a->start());
  a->send();
  turn();
  EXPECT_EQ(a.calls, 1);
}

TEST_P(AsyncTest, DestroyedAsyncIsNotCalledForEarlierSend) {
  auto async = std::make_unique<Probe<Async>>(*loop_);
  Probe<Async> other{*loop_};
  EXPECT_TRUE(async->watcher.start());
  EXPECT_TRUE(other->start());
  async->watcher.send();
  other->send();
  async.reset();
  turn();
  EXPECT_EQ(other.calls, 1);
}

TEST_P(AsyncTest, DestroyAfterSendWhileInactiveIsSafe) {
  auto never_started = std::make_unique<Probe<Async>>(*loop_);
  auto stopped = std::make_unique<Probe<Async>>(*loop_);
  EXPECT_TRUE(stopped->watcher.start());
  stopped->watcher.stop();
  never_started->watcher.send();
  stopped->watcher.send();
  never_started.reset();
  stopped.reset();
  turn(2);
}

TEST_P(AsyncTest, SendWhileInactiveIsNotReportedByAnotherCall) {
  Probe<Async> probe{*loop_};
  EXPECT_TRUE(probe->feed(Events::custom));
  probe->send();
  turn();
  EXPECT_EQ(probe.calls, 1);
  EXPECT_EQ(probe.events, Events::custom);
}

TEST_P(AsyncTest, SendAfterStartWorksDespiteEarlierInactiveSend) {
  Probe<Async> async{*loop_};
  async->send();
  turn();
  EXPECT_EQ(async.calls, 0);
  EXPECT_TRUE(async->start());
  async->send();
  turn();
  EXPECT_EQ(async.calls, 1);
}

TEST_P(PostTest, CallsInOrder) {
  for (char name = 'a'; name <= 'e'; ++name)
    EXPECT_TRUE(loop_->post([this, name] { log_ += name; }));
  EXPECT_EQ(log_, "");
  turn();
  EXPECT_EQ(log_, "abcde");
  EXPECT_EQ(loop_->metrics().posts, 5u);
}

TEST_P(PostTest, NeverMerges) {
  int calls = 0;
  constexpr int kPosts = 5000;
  for (int i = 0; i < kPosts; ++i) EXPECT_TRUE(loop_->post([&calls] { ++calls; }));
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(calls, kPosts);
}

TEST_P(PostTest, TaskPostedInTaskIsCalledLastByNextTurn) {
  EXPECT_TRUE(loop_->post([this] {
    log_ += 'a';
    EXPECT_TRUE(loop_->post([this] { log_ += 'c'; }));
  }));
  EXPECT_TRUE(loop_->post([this] { log_ += 'b'; }));
  turn(2);
  EXPECT_EQ(log_, "abc");
}

TEST_P(PostTest, TasksOfEachThreadKeepTheirOrder) {
  constexpr int kThreads = 4;
  constexpr int kPosts = 2000;
  int next[kThreads] = {};
  int done = 0;
  loop_->ref();
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      for (int i = 0; i < kPosts; ++i) {
        ASSERT_TRUE(loop_->post([&, number, i] {
          EXPECT_EQ(next[number]++, i);
          if (++done == kThreads * kPosts) loop_->unref();
        }));
      }
    });
  }
  EXPECT_TRUE(runs_out(*loop_));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, kThreads * kPosts);
}

TEST_P(PostTest, WakesSleepingLoop) {
  loop_->ref();
  std::thread thread = when_asleep([&] { EXPECT_TRUE(loop_->post([&] { loop_->unref(); })); });
  EXPECT_TRUE(runs_out(*loop_));
  thread.join();
  EXPECT_EQ(loop_->metrics().kernel_calls.wake_write, 1u);
  EXPECT_EQ(loop_->metrics().wakeups, 1u);
}

TEST_P(PostTest, TaskThatWakesLoopIsCalledInSameTurn) {
  bool called = false;
  loop_->ref();
  wake_by(*loop_, [&] {
    called = false;
    EXPECT_TRUE(loop_->post([&] { called = true; }));
  });
  EXPECT_TRUE(called);
  loop_->unref();
}

TEST_P(PostTest, PostFromLoopThreadMakesNoKernelCall) {
  EXPECT_TRUE(loop_->post([&] { EXPECT_TRUE(loop_->post([] {})); }));
  turn(2);
  EXPECT_EQ(loop_->metrics().posts, 2u);
  EXPECT_EQ(loop_->metrics().kernel_calls.wake_write, 0u);
}

TEST_P(PostTest, KeepsLoopFromBlocking) {
  Probe<Timer> far{*loop_};
  EXPECT_TRUE(far->start(1h));
  bool called = false;
  EXPECT_TRUE(loop_->post([&] { called = true; }));
  EXPECT_FALSE(loop_->run(Run::once));
  EXPECT_TRUE(loop_->has_work());
  EXPECT_TRUE(called);
}

TEST_P(PostTest, TaskOwnsItsCaptures) {
  auto shared = std::make_shared<int>(1);
  EXPECT_TRUE(loop_->post([kept = std::make_unique<std::shared_ptr<int>>(shared)] {}));
  EXPECT_EQ(shared.use_count(), 2);
  turn();
  EXPECT_EQ(shared.use_count(), 1);
}

TEST_P(PostTest, DestroyedLoopDestroysUnrunTasks) {
  auto other = make_loop(backend());
  auto shared = std::make_shared<int>(1);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(other->post([shared] { FAIL(); }));
  EXPECT_EQ(shared.use_count(), 4);
  other.reset();
  EXPECT_EQ(shared.use_count(), 1);
}

TEST_P(PostTest, TaskDestroyedWithLoopMayOwnWatcher) {
  auto other = make_loop(backend());
  auto timer = std::make_unique<Probe<Timer>>(*other);
  auto io = std::make_unique<Probe<Io>>(*other, 0, Events::read);
  EXPECT_TRUE(timer->watcher.start(1h));
  EXPECT_TRUE(io->watcher.start());
  EXPECT_TRUE(other->post([timer = std::move(timer), io = std::move(io)] {}));
  other.reset();
}

TEST_P(PostTest, TaskMayRunLoop) {
  EXPECT_TRUE(loop_->post([this] {
    log_ += 'a';
    turn();
    log_ += 'd';
  }));
  EXPECT_TRUE(loop_->post([this] { log_ += 'b'; }));
  EXPECT_TRUE(loop_->post([this] { log_ += 'c'; }));
  turn();
  EXPECT_EQ(log_, "abcd");
}

TEST_P(PostTest, TasksWaitUntilLoopRuns) {
  std::thread([&] { EXPECT_TRUE(loop_->post([this] { log_ += 'x'; })); }).join();
  EXPECT_EQ(log_, "");
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_EQ(log_, "x");
}

TEST_P(WakeTest, WakeMakesSleepingLoopTurn) {
  Probe<Timer> far{*loop_};
  EXPECT_TRUE(far->start(1h));
  wake_by(*loop_, [&] { loop_->wake(); });
  EXPECT_TRUE(loop_->has_work());
  EXPECT_EQ(far.calls, 0);
  EXPECT_EQ(loop_->metrics().events, 0u);
}

TEST_P(WakeTest, WakeDoesNothingWhileLoopIsAwake) {
  loop_->wake();
  turn();
  EXPECT_EQ(loop_->metrics().wakeups, 0u);
  EXPECT_EQ(loop_->metrics().kernel_calls.wake_write, 0u);
}

}  // namespace
}  // namespace spate::testing
