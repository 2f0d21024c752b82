// The program's locks and conditions, and its thread IDs.
//
// Semantics: event2/thread.h; probed: the results of calls out of order.
//
// All of it is set once, before the first base is made. While nothing is set there are no locks:
// every lock is then a null pointer, which costs a branch.
#pragma once

#include "compat/libevent/event_api.h"

namespace spate::libevent {

struct Threads {
  evthread_lock_callbacks locks;
  evthread_condition_callbacks conditions;
  unsigned long (*id)();
};

extern constinit Threads threads;

inline bool has_locks() { return threads.locks.alloc != nullptr; }

// Returns a recursive lock; null if locks are disabled, and without memory.
inline void* make_lock() {
  return has_locks() ? threads.locks.alloc(EVTHREAD_LOCKTYPE_RECURSIVE) : nullptr;
}
inline void free_lock(void* lock) {
  if (lock != nullptr && threads.locks.free != nullptr) {
    threads.locks.free(lock, EVTHREAD_LOCKTYPE_RECURSIVE);
  }
}
inline void acquire(void* lock) {
  if (lock != nullptr) threads.locks.lock(0, lock);
}
inline void give_back(void* lock) {
  if (lock != nullptr) threads.locks.unlock(0, lock);
}

// Must not exist while a callback of the program runs: that may leave by longjmp().
class Holding {
 public:
  explicit Holding(void* lock) : lock_(lock) { acquire(lock_); }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;
  ~Holding() { give_back(lock_); }

 private:
  void* lock_;
};

}  // namespace spate::libevent
