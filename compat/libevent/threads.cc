#include "compat/libevent/threads.h"

#include <pthread.h>

#include <cerrno>
#include <ctime>

#include "compat/libevent/debug_mode.h"
#include "compat/libevent/lock_debugging.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"
#include "compat/libevent/timeval.h"

namespace spate::libevent {

constinit Threads threads{};

namespace {

// In debug mode there is a table that other threads may use already.
void check_that_it_is_early() {
  if (debug::is_on && debug::is_too_late) {
    fatal(1, "the callbacks for threads have to be set before all else");
  }
}

bool is_complete(const evthread_lock_callbacks& callbacks) {
  return callbacks.alloc != nullptr && callbacks.free != nullptr && callbacks.lock != nullptr &&
         callbacks.unlock != nullptr;
}

bool is_complete(const evthread_condition_callbacks& callbacks) {
  return callbacks.alloc_condition != nullptr && callbacks.free_condition != nullptr &&
         callbacks.signal_condition != nullptr && callbacks.wait_condition != nullptr;
}

bool is_same(const evthread_lock_callbacks& a, const evthread_lock_callbacks& b) {
  return a.alloc == b.alloc && a.free == b.free && a.lock == b.lock && a.unlock == b.unlock;
}

bool is_same(const evthread_condition_callbacks& a, const evthread_condition_callbacks& b) {
  return a.alloc_condition == b.alloc_condition && a.free_condition == b.free_condition &&
         a.signal_condition == b.signal_condition && a.wait_condition == b.wait_condition;
}

// ---- POSIX threads

void* make_mutex(unsigned type) {
  auto* mutex = static_cast<pthread_mutex_t*>(allocate(sizeof(pthread_mutex_t)));
  if (mutex == nullptr) return nullptr;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  const bool is_recursive = (type & EVTHREAD_LOCKTYPE_RECURSIVE) != 0;
  pthread_mutexattr_settype(&attributes,
                            is_recursive ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL);
  const int error = pthread_mutex_init(mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  if (error == 0) return mutex;
  release(mutex);
  return nullptr;
}

void free_mutex(void* mutex, unsigned) {
  pthread_mutex_destroy(static_cast<pthread_mutex_t*>(mutex));
  release(mutex);
}

int lock_mutex(unsigned mode, void* mutex) {
  auto* known = static_cast<pthread_mutex_t*>(mutex);
  return (mode & EVTHREAD_TRY) != 0 ? pthread_mutex_trylock(known) : pthread_mutex_lock(known);
}

int unlock_mutex(unsigned, void* mutex) {
  return pthread_mutex_unlock(static_cast<pthread_mutex_t*>(mutex));
}

void* make_condition(unsigned) {
  auto* condition = static_cast<pthread_cond_t*>(allocate(sizeof(pthread_cond_t)));
  if (condition == nullptr) return nullptr;
  if (pthread_cond_init(condition, nullptr) == 0) return condition;
  release(condition);
  return nullptr;
}

void free_condition(void* condition) {
  pthread_cond_destroy(static_cast<pthread_cond_t*>(condition));
  release(condition);
}

int signal_condition(void* condition, int to_all) {
  auto* known = static_cast<pthread_cond_t*>(condition);
  return (to_all != 0 ? pthread_cond_broadcast(known) : pthread_cond_signal(known)) == 0 ? 0 : -1;
}

int wait_condition(void* condition, void* mutex, const timeval* timeout) {
  auto* known = static_cast<pthread_cond_t*>(condition);
  auto* held = static_cast<pthread_mutex_t*>(mutex);
  if (timeout == nullptr) return pthread_cond_wait(known, held) == 0 ? 0 : -1;
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  const std::int64_t nanos = until.tv_nsec + nanos_of(*timeout);
  until.tv_sec += nanos / 1'000'000'000;
  until.tv_nsec = nanos % 1'000'000'000;
  const int error = pthread_cond_timedwait(known, held, &until);
  if (error == ETIMEDOUT) return 1;
  return error == 0 ? 0 : -1;
}

unsigned long thread_id() { return static_cast<unsigned long>(pthread_self()); }

}  // namespace
}  // namespace spate::libevent

using spate::libevent::threads;

int evthread_set_lock_callbacks(const evthread_lock_callbacks* callbacks) {
  evthread_lock_callbacks& target = spate::libevent::lock_callbacks();
  spate::libevent::check_that_it_is_early();
  if (callbacks == nullptr) {
    if (target.alloc != nullptr) {
      spate::libevent::warnx("evthread_set_lock_callbacks: locks that are in use are taken away");
    }
    target = {};
    return 0;
  }
  if (target.alloc != nullptr) {
    if (spate::libevent::is_same(target, *callbacks)) return 0;
    spate::libevent::warnx("evthread_set_lock_callbacks: others are set already");
    return -1;
  }
  if (!spate::libevent::is_complete(*callbacks)) return -1;  // Whatever their version.
  target = *callbacks;
  return 0;
}

// Incomplete ones are ignored.
int evthread_set_condition_callbacks(const evthread_condition_callbacks* callbacks) {
  evthread_condition_callbacks& target = spate::libevent::condition_callbacks();
  spate::libevent::check_that_it_is_early();
  if (callbacks == nullptr) {
    if (target.alloc_condition != nullptr) {
      spate::libevent::warnx(
          "evthread_set_condition_callbacks: conditions that are in use are taken away");
    }
    target = {};
    spate::libevent::condition_callbacks_were_set();
    return 0;
  }
  if (target.alloc_condition != nullptr) {
    if (spate::libevent::is_same(target, *callbacks)) return 0;
    spate::libevent::warnx("evthread_set_condition_callbacks: others are set already");
    return -1;
  }
  if (spate::libevent::is_complete(*callbacks)) target = *callbacks;
  spate::libevent::condition_callbacks_were_set();
  return 0;
}

void evthread_set_id_callback(unsigned long (*id)()) { threads.id = id; }

int evthread_use_pthreads() {
  using namespace spate::libevent;
  const evthread_lock_callbacks locks{EVTHREAD_LOCK_API_VERSION,
                                      EVTHREAD_LOCKTYPE_RECURSIVE,
                                      make_mutex,
                                      free_mutex,
                                      lock_mutex,
                                      unlock_mutex};
  const evthread_condition_callbacks conditions{EVTHREAD_CONDITION_API_VERSION, make_condition,
                                                free_condition, signal_condition, wait_condition};
  evthread_set_lock_callbacks(&locks);
  evthread_set_condition_callbacks(&conditions);
  evthread_set_id_callback(thread_id);
  return 0;
}
