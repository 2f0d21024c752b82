// libev's loops in several threads: asyncs and signals sent from anywhere, one loop in each thread,
// and a loop shared under the program's lock by the release and acquire callbacks.
#include <ev.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace spate::dropin {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 2000;

struct FreeLoop {
  void operator()(struct ev_loop* loop) const { ev_loop_destroy(loop); }
};
using LoopPointer = std::unique_ptr<struct ev_loop, FreeLoop>;

LoopPointer make_loop() { return LoopPointer(ev_loop_new(EVFLAG_AUTO)); }

// `data` points to the callbacks' context.
template <class T, class Watcher>
T& context(Watcher* watcher) {
  return *static_cast<T*>(watcher->data);
}

TEST(EvLoop, NeverLosesLastOfManySends) {
  const LoopPointer loop = make_loop();
  struct State {
    std::atomic<int> sent{0};
    int seen = 0;
  } state;
  ev_async async;
  ev_async_init(&async, [](struct ev_loop* of, ev_async* self, int) {
    auto& own = context<State>(self);
    own.seen = own.sent.load();
    if (own.seen == kThreads * kRounds) ev_async_stop(of, self);
  });
  async.data = &state;
  ev_async_start(loop.get(), &async);
  std::vector<std::thread> senders;
  for (int i = 0; i < kThreads; ++i) {
    senders.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        state.sent.fetch_add(1);
        ev_async_send(loop.get(), &async);
      }
    });
  }
  ev_run(loop.get(), 0);
  for (std::thread& sender : senders) sender.join();
  EXPECT_EQ(state.seen, kThreads * kRounds);
}

TEST(EvLoop, MakesWritesBeforeSendVisibleInCallback) {
  const LoopPointer loop = make_loop();
  struct Mail {
    long letter = 0;
    long read = 0;
    std::atomic<bool> is_read{true};
  } mail;
  ev_async async;
  ev_async_init(&async, [](struct ev_loop* of, ev_async* self, int) {
    auto& own = context<Mail>(self);
    own.read += own.letter;
    if (own.letter == kRounds) ev_break(of, EVBREAK_ALL);
    own.is_read.store(true, std::memory_order_release);
  });
  async.data = &mail;
  ev_async_start(loop.get(), &async);
  std::thread sender([&] {
    for (long round = 1; round <= kRounds; ++round) {
      while (!mail.is_read.load(std::memory_order_acquire)) std::this_thread::yield();
      mail.is_read.store(false, std::memory_order_relaxed);
      mail.letter = round;
      ev_async_send(loop.get(), &async);
    }
  });
  ev_run(loop.get(), 0);
  sender.join();
  EXPECT_EQ(mail.read, static_cast<long>(kRounds) * (kRounds + 1) / 2);
  ev_async_stop(loop.get(), &async);
}

TEST(EvLoop, RelaysAsyncsBetweenThreads) {
  struct Station {
    LoopPointer loop = make_loop();
    ev_async async{};
    Station* next = nullptr;
    std::atomic<int>* left = nullptr;
    int passed = 0;
  };
  std::atomic<int> left{3000};
  std::array<Station, 3> stations;
  for (std::size_t i = 0; i < stations.size(); ++i) {
    Station& station = stations[i];
    station.next = &stations[(i + 1) % stations.size()];
    station.left = &left;
    ev_async_init(&station.async, [](struct ev_loop* of, ev_async* self, int) {
      auto& own = context<Station>(self);
      ++own.passed;
      const bool is_over = own.left->fetch_sub(1) <= 1;
      ev_async_send(own.next->loop.get(), &own.next->async);
      if (is_over) ev_break(of, EVBREAK_ALL);
    });
    station.async.data = &station;
    ev_async_start(station.loop.get(), &station.async);
  }
  std::vector<std::thread> threads;
  for (Station& station : stations) {
    threads.emplace_back([&station] { ev_run(station.loop.get(), 0); });
  }
  ev_async_send(stations[0].loop.get(), &stations[0].async);
  for (std::thread& thread : threads) thread.join();
  for (Station& station : stations) {
    EXPECT_GE(station.passed, 1000);
    ev_async_stop(station.loop.get(), &station.async);
  }
}

TEST(EvLoop, MayBeCreatedAndDestroyedInAnyThread) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 20; ++round) {
        const LoopPointer loop = make_loop();
        int calls = 0;
        ev_timer timer;
        ev_timer_init(
            &timer,
            [](struct ev_loop* of, ev_timer* self, int) {
              if (++context<int>(self) == 5) ev_timer_stop(of, self);
            },
            0., 0.0002);
        timer.data = &calls;
        ev_timer_start(loop.get(), &timer);
        ev_run(loop.get(), 0);
        EXPECT_EQ(calls, 5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(EvLoop, AcceptsFedSignalsFromAnyThread) {
  const LoopPointer loop = make_loop();
  struct State {
    std::atomic<int> answered{0};
  } state;
  ev_signal watcher;
  ev_signal_init(
      &watcher,
      [](struct ev_loop*, ev_signal* self, int) { context<State>(self).answered.fetch_add(1); },
      SIGUSR1);
  watcher.data = &state;
  ev_signal_start(loop.get(), &watcher);
  ev_async over;
  ev_async_init(&over, [](struct ev_loop* of, ev_async*, int) { ev_break(of, EVBREAK_ALL); });
  ev_async_start(loop.get(), &over);
  std::thread sender([&] {
    for (int round = 0; round < 200; ++round) {
      const int before = state.answered.load();
      round % 2 ? ev_feed_signal(SIGUSR1) : void(::raise(SIGUSR1));
      while (state.answered.load() == before) std::this_thread::yield();
    }
    ev_async_send(loop.get(), &over);
  });
  ev_run(loop.get(), 0);
  sender.join();
  EXPECT_GE(state.answered.load(), 200);
  ev_signal_stop(loop.get(), &watcher);
  ev_async_stop(loop.get(), &over);
}

TEST(EvLoop, TakesOverSignalsOfDestroyedLoop) {
  const auto count = [](struct ev_loop*, ev_signal* self, int) { ++context<int>(self); };
  int old_calls = 0;
  int calls = 0;
  ev_signal old;
  ev_signal_init(&old, count, SIGUSR1);
  old.data = &old_calls;
  LoopPointer loop = make_loop();
  ev_signal_start(loop.get(), &old);
  loop = make_loop();
  ev_signal watcher;
  ev_signal_init(&watcher, count, SIGUSR1);
  watcher.data = &calls;
  ev_signal_start(loop.get(), &watcher);
  ::raise(SIGUSR1);
  ev_run(loop.get(), EVRUN_NOWAIT);
  EXPECT_EQ(old_calls, 0);
  EXPECT_EQ(calls, 1);
  ev_signal_stop(loop.get(), &watcher);
}

// Noticed just before the wait, which must then not block.
TEST(EvLoop, ReportsBadDescriptorBeforeItSleeps) {
  for (const unsigned backend :
       {EVBACKEND_IOURING, EVBACKEND_EPOLL, EVBACKEND_POLL, EVBACKEND_SELECT}) {
    const LoopPointer loop(ev_loop_new(backend | EVFLAG_NOENV));
    if (loop == nullptr && backend == EVBACKEND_IOURING) continue;  // A sandbox forbids it.
    EXPECT_EQ(ev_backend(loop.get()), backend);
    int told = 0;
    ev_io io;
    ev_io_init(
        &io, [](struct ev_loop*, ev_io* self, int events) { context<int>(self) = events; }, 600,
        EV_READ);
    io.data = &told;
    ev_io_start(loop.get(), &io);
    ev_timer slept;
    ev_timer_init(&slept, [](struct ev_loop*, ev_timer*, int) {}, 5., 0.);
    ev_timer_start(loop.get(), &slept);
    ev_run(loop.get(), EVRUN_ONCE);
    EXPECT_NE(told & static_cast<int>(EV_ERROR), 0) << backend;
    EXPECT_TRUE(ev_is_active(&slept)) << backend;
    ev_timer_stop(loop.get(), &slept);
  }
}

// ev(3) "THREAD LOCKING EXAMPLE": the loop's thread holds the lock except during the wait. Another
// thread that holds it may start and stop watchers if it wakes the loop afterwards.
struct Shared {
  LoopPointer loop = make_loop();
  std::mutex lock;
  ev_async wake{};
  ev_async over{};
  long calls = 0;  // Guarded by the lock.
};

TEST(EvLoop, IsSharedUnderUserLock) {
  Shared shared;
  struct ev_loop* const loop = shared.loop.get();
  ev_set_userdata(loop, &shared);
  ev_set_loop_release_cb(
      loop,
      [](struct ev_loop* of) noexcept { static_cast<Shared*>(ev_userdata(of))->lock.unlock(); },
      [](struct ev_loop* of) noexcept { static_cast<Shared*>(ev_userdata(of))->lock.lock(); });
  ev_async_init(&shared.wake, [](struct ev_loop*, ev_async*, int) {});
  ev_async_init(&shared.over,
                [](struct ev_loop* of, ev_async*, int) { ev_break(of, EVBREAK_ALL); });
  ev_async_start(loop, &shared.wake);
  ev_async_start(loop, &shared.over);
  std::thread runner([&] {
    const std::lock_guard guard(shared.lock);
    ev_run(loop, 0);
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&shared, loop, i] {
      ev_timer timer;
      ev_timer_init(
          &timer, [](struct ev_loop*, ev_timer* self, int) { ++context<Shared>(self).calls; },
          0.0001, 0.0001 * i);
      timer.data = &shared;
      for (int round = 0; round < 200; ++round) {
        {
          const std::lock_guard guard(shared.lock);
          round % 2 ? ev_timer_stop(loop, &timer) : ev_timer_start(loop, &timer);
          ev_async_send(loop, &shared.wake);
        }
        std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ev_async_send(loop, &shared.over);
  runner.join();
  EXPECT_GE(shared.calls, 0);
}

}  // namespace
}  // namespace spate::dropin
