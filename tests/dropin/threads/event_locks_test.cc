// The program's locks and conditions under load: locked and unlocked in pairs, by the same thread,
// and never held in a callback.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "running_base.h"

namespace spate::dropin {
namespace {

struct Lock {
  std::recursive_mutex mutex;
  int depth = 0;  // Guarded by itself.
};

std::atomic<long> locks_alive{0};
std::atomic<long> conditions_alive{0};
thread_local int held = 0;

int lock(unsigned mode, void* which) {
  auto& own = *static_cast<Lock*>(which);
  if (mode & EVTHREAD_TRY) {
    if (!own.mutex.try_lock()) return 1;
  } else {
    own.mutex.lock();
  }
  ++own.depth;
  ++held;
  return 0;
}

int unlock(unsigned, void* which) {
  auto& own = *static_cast<Lock*>(which);
  EXPECT_GT(own.depth, 0);
  --own.depth;
  --held;
  own.mutex.unlock();
  return 0;
}

// The program's condition releases and acquires the program's own lock, completely.
int wait_condition(void* condition, void* which, const timeval* timeout) {
  auto& own = *static_cast<Lock*>(which);
  EXPECT_EQ(own.depth, 1);
  EXPECT_EQ(timeout, nullptr);
  own.depth = 0;
  static_cast<std::condition_variable_any*>(condition)->wait(own.mutex);
  own.depth = 1;
  return 0;
}

int signal_condition(void* condition, int all) {
  auto& own = *static_cast<std::condition_variable_any*>(condition);
  all ? own.notify_all() : own.notify_one();
  return 0;
}

void use_own_locks() {
  static const evthread_lock_callbacks locks = {
      EVTHREAD_LOCK_API_VERSION,
      EVTHREAD_LOCKTYPE_RECURSIVE,
      [](unsigned) -> void* { return ++locks_alive, new Lock; },
      [](void* which, unsigned) { --locks_alive, delete static_cast<Lock*>(which); },
      lock,
      unlock};
  static const evthread_condition_callbacks conditions = {
      EVTHREAD_CONDITION_API_VERSION,
      [](unsigned) -> void* { return ++conditions_alive, new std::condition_variable_any; },
      [](void* which) {
        --conditions_alive, delete static_cast<std::condition_variable_any*>(which);
      },
      signal_condition, wait_condition};
  ASSERT_EQ(evthread_set_lock_callbacks(&locks), 0);
  ASSERT_EQ(evthread_set_condition_callbacks(&conditions), 0);
  evthread_set_id_callback([] { return static_cast<unsigned long>(pthread_self()); });
}

struct Guarded {
  long calls = 0;  // Safe to read after event_del().
};

TEST(UserLocks, AreBalancedAndNotHeldInCallbacks) {
  use_own_locks();
  {
    RunningBase base{Base(event_base_new())};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&base] {
        Guarded guarded;
        const Event ev(event_new(
            base.get(), -1, EV_PERSIST,
            [](int, short, void* context) {
              EXPECT_EQ(held, 0);
              ++static_cast<Guarded*>(context)->calls;
            },
            &guarded));
        const timeval soon = micros(10);
        for (int round = 0; round < 300; ++round) {
          event_add(ev.get(), &soon);
          event_active(ev.get(), EV_READ, 1);
          EXPECT_EQ(event_del(ev.get()), 0);
          guarded.calls = 0;
          EXPECT_EQ(held, 0);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  libevent_global_shutdown();
  EXPECT_EQ(locks_alive, 0);
  EXPECT_EQ(conditions_alive, 0);
}

}  // namespace
}  // namespace spate::dropin
