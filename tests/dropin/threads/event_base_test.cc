// Threads that add, delete, activate and finalize events of a base that runs. Most variables of the
// callbacks are not atomic on purpose: they are safe to read because event_del() waits for a
// running callback, and because a finalizer comes after the last call.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <deque>
#include <string>
#include <vector>

#include "running_base.h"

namespace spate::dropin {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 400;

template <class F>
void in_threads(F work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

// An event with the counters of its callback.
struct Counted {
  explicit Counted(event_base* base, int fd = -1, short events = 0)
      : ev(event_new(base, fd, events, &Counted::on_event, this)) {}

  static void on_event(int, short, void* context) { ++static_cast<Counted*>(context)->calls; }

  long calls = 0;
  Event ev;
};

class EventBase : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Methods, EventBase,
                         testing::Values("epoll", "changelist", "poll", "select"),
                         [](const auto& method) { return std::string(method.param); });

TEST_P(EventBase, WritesOfCallbackAreVisibleAfterDel) {
  RunningBase base(make_base(GetParam()));
  in_threads([&base](int seed) {
    SocketPair pair;
    Counted timer(base.get());
    Counted user(base.get(), -1, EV_PERSIST);
    Counted reader(base.get(), pair.watched(), EV_READ | EV_PERSIST);
    long seen = 0;
    for (int round = 0; round < kRounds; ++round) {
      const timeval soon = micros((round * 7 + seed) % 50);
      event_add(timer.ev.get(), &soon);
      event_active(user.ev.get(), EV_READ, 1);
      event_add(reader.ev.get(), nullptr);
      if (round % 3 == 0) pair.send();
      if (round % 5 == 0) std::this_thread::yield();
      for (Counted* counted : {&timer, &user, &reader}) {
        EXPECT_EQ(event_del(counted->ev.get()), 0);
        seen += counted->calls;
        counted->calls = 0;
      }
      pair.drain();
    }
    EXPECT_GE(seen, 0);  // How many there were depends on timing.
  });
}

TEST_P(EventBase, EveryAwaitedActivationIsCalled) {
  RunningBase base(make_base(GetParam()));
  struct Answer {
    std::binary_semaphore called{0};
    long calls = 0;
  };
  in_threads([&base](int) {
    Answer answer;
    const Event ev(event_new(
        base.get(), -1, 0,
        [](int, short, void* context) {
          auto& own = *static_cast<Answer*>(context);
          ++own.calls;
          own.called.release();
        },
        &answer));
    const timeval now = micros(0);
    for (int round = 0; round < kRounds; ++round) {
      round % 2 ? event_active(ev.get(), EV_WRITE, 1) : void(event_add(ev.get(), &now));
      answer.called.acquire();
    }
    EXPECT_EQ(event_del(ev.get()), 0);
    EXPECT_EQ(answer.calls, kRounds);
  });
}

TEST_P(EventBase, NothingIsCalledAfterItsFinalizer) {
  RunningBase base(make_base(GetParam()));
  struct Session {
    long calls = 0;
    std::atomic<int>* finalized = nullptr;
  };
  std::atomic<int> finalized{0};
  in_threads([&](int seed) {
    for (int round = 0; round < kRounds; ++round) {
      auto* session = new Session{0, &finalized};
      event* ev = event_new(
          base.get(), -1, EV_PERSIST | EV_FINALIZE,
          [](int, short, void* context) { ++static_cast<Session*>(context)->calls; }, session);
      const timeval soon = micros((round + seed) % 20);
      event_add(ev, &soon);
      event_active(ev, EV_READ, 1);
      event_free_finalize(0, ev, [](event*, void* context) {
        auto* own = static_cast<Session*>(context);
        own->finalized->fetch_add(1);
        delete own;
      });
    }
  });
  base.stop();
  event_base_loop(base.get(), EVLOOP_NONBLOCK);
  EXPECT_EQ(finalized, kThreads * kRounds);
}

TEST_P(EventBase, DelNoblockMayOverlapCallback) {
  RunningBase base(make_base(GetParam()));
  std::atomic<long> calls{0};
  in_threads([&](int seed) {
    const Event ev(event_new(
        base.get(), -1, EV_PERSIST | EV_FINALIZE,
        [](int, short, void* count) { static_cast<std::atomic<long>*>(count)->fetch_add(1); },
        &calls));
    for (int round = 0; round < kRounds; ++round) {
      const timeval soon = micros(round % 10);
      event_add(ev.get(), &soon);
      event_active(ev.get(), EV_WRITE, 1);
      EXPECT_EQ((round + seed) % 2 ? event_del(ev.get()) : event_del_noblock(ev.get()), 0);
    }
    event_del_block(ev.get());
  });
}

TEST_P(EventBase, EventsOfEventBaseOnceFromAllThreadsAreCalled) {
  RunningBase base(make_base(GetParam()));
  std::counting_semaphore<kThreads * kRounds> called{0};
  in_threads([&](int) {
    const timeval soon = micros(20);
    for (int round = 0; round < kRounds; ++round) {
      EXPECT_EQ(event_base_once(
                    base.get(), -1, EV_TIMEOUT,
                    [](int, short, void* all) {
                      static_cast<std::counting_semaphore<kThreads * kRounds>*>(all)->release();
                    },
                    &called, round % 2 ? &soon : nullptr),
                0);
    }
  });
  for (int i = 0; i < kThreads * kRounds; ++i) called.acquire();
}

TEST_P(EventBase, OtherThreadsMayQueryRunningBase) {
  RunningBase base(make_base(GetParam()));
  SocketPair pair;
  Counted busy(base.get(), pair.watched(), EV_WRITE | EV_PERSIST);
  Counted timer(base.get(), -1, EV_PERSIST);
  const timeval soon = micros(30);
  event_add(busy.ev.get(), nullptr);
  event_add(timer.ev.get(), &soon);
  in_threads([&](int) {
    for (int round = 0; round < kRounds; ++round) {
      timeval until{};
      event_pending(timer.ev.get(), EV_TIMEOUT, &until);
      event_remove_timer(timer.ev.get());
      event_add(timer.ev.get(), &soon);
      event_base_get_num_events(base.get(), EVENT_BASE_COUNT_ADDED | EVENT_BASE_COUNT_ACTIVE);
      event_base_get_max_events(base.get(), EVENT_BASE_COUNT_ADDED, round % 2);
      event_base_gettimeofday_cached(base.get(), &until);
      event_base_active_by_fd(base.get(), pair.watched(), EV_WRITE);
      event_base_got_exit(base.get());
      event_base_loopcontinue(base.get());
      int count = 0;
      event_base_foreach_event(
          base.get(),
          [](const event_base*, const event*, void* all) { return ++*static_cast<int*>(all), 0; },
          &count);
      EXPECT_GE(count, 1);
    }
  });
  event_del(busy.ev.get());
  event_del(timer.ev.get());
  EXPECT_GE(busy.calls + timer.calls, 0);  // Lets the sanitizer see the reads.
}

TEST_P(EventBase, ThreadsActivateEventsOfEachOther) {
  std::deque<RunningBase> bases;
  std::vector<Event> events;
  struct Relay {
    event* next = nullptr;
    std::atomic<int>* left = nullptr;
    std::binary_semaphore* done = nullptr;
  };
  constexpr int kBases = 3;
  std::array<Relay, kBases> relays;
  std::atomic<int> left{3000};
  std::binary_semaphore done{0};
  for (Relay& relay : relays) {
    const auto pass_on = [](int, short, void* context) {
      auto& own = *static_cast<Relay*>(context);
      const int before = own.left->fetch_sub(1);
      if (before > 1) event_active(own.next, EV_READ, 1);
      if (before == 1) own.done->release();
    };
    bases.emplace_back(make_base(GetParam()));
    events.emplace_back(event_new(bases.back().get(), -1, EV_PERSIST, pass_on, &relay));
  }
  for (std::size_t i = 0; i < kBases; ++i) {
    relays[i] = {events[(i + 1) % kBases].get(), &left, &done};
  }
  event_active(events[0].get(), EV_READ, 1);
  done.acquire();
  for (RunningBase& base : bases) base.stop();
  events.clear();
  EXPECT_EQ(left, 0);
}

TEST_P(EventBase, BaseMayRunInOneThreadAfterAnother) {
  const Base base = make_base(GetParam());
  Counted user(base.get(), -1, EV_PERSIST);
  for (int round = 0; round < 50; ++round) {
    event_active(user.ev.get(), EV_READ, 1);
    std::thread([&base] { event_base_loop(base.get(), EVLOOP_NONBLOCK); }).join();
    event_active(user.ev.get(), EV_READ, 1);
    event_base_loop(base.get(), EVLOOP_NONBLOCK);
  }
  EXPECT_EQ(user.calls, 100);
}

TEST_P(EventBase, SignalsMayBeRaisedInAnyThread) {
  RunningBase base(make_base(GetParam()));
  std::counting_semaphore<kThreads> called{0};
  const Event ev(event_new(
      base.get(), SIGUSR1, EV_SIGNAL | EV_PERSIST,
      [](int, short, void* all) {
        static_cast<std::counting_semaphore<kThreads>*>(all)->release();
      },
      &called));
  ASSERT_EQ(event_add(ev.get(), nullptr), 0);
  for (int round = 0; round < 50; ++round) {
    std::thread([] { ::raise(SIGUSR1); }).join();
    called.acquire();
  }
  EXPECT_EQ(event_del(ev.get()), 0);
}

TEST_P(EventBase, DeletingLastEventEndsLoopOfAnotherThread) {
  const Base base = make_base(GetParam());
  for (int round = 0; round < 50; ++round) {
    SocketPair pair;
    const Event ev(
        event_new(base.get(), pair.watched(), EV_READ, [](int, short, void*) {}, nullptr));
    event_add(ev.get(), nullptr);
    std::thread runner([&base] { EXPECT_EQ(event_base_dispatch(base.get()), 1); });
    if (round % 2 != 0) std::this_thread::yield();
    event_del(ev.get());
    runner.join();
  }
}

TEST_P(EventBase, ManyThreadsMayBreakLoopAtOnce) {
  const Base base = make_base(GetParam());
  for (int round = 0; round < 100; ++round) {
    std::atomic<bool> is_running{true};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        while (is_running) {
          i % 2 ? event_base_loopbreak(base.get()) : event_base_loopexit(base.get(), nullptr);
          std::this_thread::yield();
        }
      });
    }
    event_base_loop(base.get(), EVLOOP_NO_EXIT_ON_EMPTY);
    is_running = false;
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace spate::dropin
