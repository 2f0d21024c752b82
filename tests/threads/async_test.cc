#include "spate/async.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "spate/loop.h"
#include "spate/signal.h"
#include "tests/support/running.h"

namespace spate {
namespace {

using testing::runs_out;

std::unique_ptr<Loop> make_loop() { return std::move(*Loop::create()); }

TEST(Async, NeverLosesLastOfManySends) {
  constexpr int kSends = 20'000;
  constexpr int kThreads = 3;
  const auto loop = make_loop();
  struct State {
    std::atomic<int> sent{0};
    int calls = 0;
    int seen = 0;
  } state;
  Async async(*loop, [&state](Async& self) {
    ++state.calls;
    state.seen = state.sent.load();
    if (state.seen == kSends * kThreads) self.stop();
  });
  ASSERT_TRUE(async.start());
  std::vector<std::thread> senders;
  for (int t = 0; t < kThreads; ++t) {
    senders.emplace_back([&] {
      for (int i = 0; i < kSends; ++i) {
        state.sent.fetch_add(1);
        async.send();
      }
    });
  }
  EXPECT_TRUE(runs_out(*loop));
  for (std::thread& sender : senders) sender.join();
  EXPECT_EQ(state.seen, kSends * kThreads);
  EXPECT_LE(state.calls, kSends * kThreads);
}

TEST(Async, MergesSendsThatComeBeforeItsCall) {
  const auto loop = make_loop();
  int calls = 0;
  Async async(*loop, [&calls] { ++calls; });
  async.start();
  std::thread([&async] {
    for (int i = 0; i < 1000; ++i) async.send();
  }).join();
  ASSERT_FALSE(loop->run(Run::once));
  EXPECT_EQ(calls, 1);
  ASSERT_FALSE(loop->run(Run::no_wait));
  EXPECT_EQ(calls, 1);
}

TEST(Async, EachOfSeveralIsCalled) {
  const auto loop = make_loop();
  int calls = 0;
  std::vector<std::unique_ptr<Async>> asyncs;
  for (int i = 0; i < 50; ++i) {
    asyncs.push_back(std::make_unique<Async>(*loop, [&calls] { ++calls; }));
    asyncs.back()->start();
  }
  std::thread([&asyncs] {
    for (const auto& async : asyncs) async->send();
  }).join();
  ASSERT_FALSE(loop->run(Run::once));
  EXPECT_EQ(calls, 50);
}

TEST(Async, IsNotCalledWhenItWasStoppedAfterSend) {
  const auto loop = make_loop();
  Async async(*loop, [] { ADD_FAILURE(); });
  async.start();
  std::thread([&async] { async.send(); }).join();
  async.stop();
  EXPECT_TRUE(runs_out(*loop, Run::no_wait));
}

TEST(Async, MayBeDestroyedAfterSendWhileInactive) {
  const auto loop = make_loop();
  {
    Async async(*loop, [] { ADD_FAILURE(); });
    std::thread([&async] { async.send(); }).join();
  }
  EXPECT_TRUE(runs_out(*loop, Run::no_wait));
}

TEST(Async, MayOutliveItsLoop) {
  auto loop = make_loop();
  Async async(*loop, [] { ADD_FAILURE(); });
  async.start();
  async.send();
  loop.reset();
  EXPECT_FALSE(async.is_active());
  EXPECT_FALSE(async.is_pending());
}

TEST(Async, MayBeSentInSignalHandler) {
  static Async* target = nullptr;
  const auto loop = make_loop();
  int calls = 0;
  Async async(*loop, [&calls](Async& self) {
    if (++calls == 20) self.stop();
  });
  async.start();
  target = &async;
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = [](int) { target->send(); };
  ASSERT_EQ(::sigaction(SIGUSR2, &action, &before), 0);
  std::atomic<bool> done{false};
  std::thread raiser([&done] {
    while (!done.load()) ::kill(::getpid(), SIGUSR2);
  });
  EXPECT_TRUE(runs_out(*loop));
  done.store(true);
  raiser.join();
  ::sigaction(SIGUSR2, &before, nullptr);
  EXPECT_EQ(calls, 20);
}

// ---- signals

TEST(SignalThreads, SignalRaisedInAnotherThreadIsCalledOnLoopThread) {
  const auto loop = make_loop();
  struct State {
    std::thread::id thread;
    int calls = 0;
  } state;
  Signal signal(*loop, [&state](Signal& self) {
    state.thread = std::this_thread::get_id();
    if (++state.calls == 50) self.stop();
  });
  ASSERT_FALSE(signal.start(SIGUSR1));
  std::atomic<bool> done{false};
  std::thread raiser([&done] {
    while (!done.load()) ::pthread_kill(::pthread_self(), SIGUSR1);
  });
  while (state.calls < 40) ASSERT_FALSE(loop->run(Run::once));
  done.store(true);
  raiser.join();
  EXPECT_EQ(state.thread, std::this_thread::get_id());
}

TEST(SignalThreads, SignalReachesEveryLoopThatWatchesIt) {
  constexpr std::size_t kLoops = 4;
  std::atomic<std::size_t> ready{0};
  std::atomic<std::size_t> called{0};
  std::vector<std::thread> runners;
  for (std::size_t i = 0; i < kLoops; ++i) {
    runners.emplace_back([&] {
      const auto loop = make_loop();
      Signal signal(*loop, [&called](Signal& self) {
        called.fetch_add(1);
        self.stop();
      });
      ASSERT_FALSE(signal.start(SIGUSR1));
      ready.fetch_add(1);
      EXPECT_TRUE(runs_out(*loop));
    });
  }
  while (ready.load() < kLoops) std::this_thread::yield();
  ::raise(SIGUSR1);
  for (std::thread& runner : runners) runner.join();
  EXPECT_EQ(called.load(), kLoops);
}

TEST(SignalThreads, SignalMayBeStartedAndStoppedWhileRaised) {
  struct sigaction ignored{};
  struct sigaction before{};
  ignored.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGUSR1, &ignored, &before), 0);
  std::atomic<bool> done{false};
  std::thread raiser([&done] {
    while (!done.load()) ::kill(::getpid(), SIGUSR1);
  });
  std::vector<std::thread> runners;
  for (int i = 0; i < 3; ++i) {
    runners.emplace_back([] {
      for (int round = 0; round < 100; ++round) {
        const auto loop = make_loop();
        Signal signal(*loop, [](Signal& self) { self.stop(); });
        ASSERT_FALSE(signal.start(SIGUSR1));
        ASSERT_FALSE(loop->run(Run::no_wait));
      }
    });
  }
  for (std::thread& runner : runners) runner.join();
  done.store(true);
  raiser.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace spate
