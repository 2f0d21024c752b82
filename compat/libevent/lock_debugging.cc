#include "compat/libevent/lock_debugging.h"

#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"
#include "compat/libevent/threads.h"

namespace spate::libevent {
namespace {

constinit bool is_debugging = false;
constinit evthread_lock_callbacks program_locks{};
constinit evthread_condition_callbacks program_conditions{};

// Only the holder writes the depth and the holder. The program may remove its callbacks while locks
// exist; these are then only counted.
struct CheckedLock {
  void* lock;
  unsigned type;
  unsigned long holder;
  int depth;
};

unsigned long this_thread() { return threads.id != nullptr ? threads.id() : 1; }

[[noreturn]] void end_with(const char* what) { fatal(kAbort, "lock debugging: %s", what); }

void* make_checked(unsigned type) {
  auto* checked = static_cast<CheckedLock*>(allocate_zeroed(sizeof(CheckedLock)));
  if (checked == nullptr) return nullptr;
  checked->type = type;
  if (program_locks.alloc == nullptr) return checked;
  checked->lock = program_locks.alloc(type | EVTHREAD_LOCKTYPE_RECURSIVE);
  if (checked->lock != nullptr) return checked;
  release(checked);
  return nullptr;
}

void free_checked(void* lock, unsigned type) {
  auto* checked = static_cast<CheckedLock*>(lock);
  if (checked->depth != 0) end_with("a lock is freed that is held");
  if (checked->type != type) end_with("a lock is freed as one of another type");
  if (checked->lock != nullptr && program_locks.free != nullptr) {
    program_locks.free(checked->lock, type | EVTHREAD_LOCKTYPE_RECURSIVE);
  }
  release(checked);
}

void note_locked(CheckedLock& checked) {
  ++checked.depth;
  const bool is_recursive = (checked.type & EVTHREAD_LOCKTYPE_RECURSIVE) != 0;
  if (checked.depth > 1 && !is_recursive) end_with("a lock is taken twice");
  if (checked.depth > 1 && checked.holder != this_thread()) end_with("a lock has two holders");
  checked.holder = this_thread();
}

void note_unlocked(CheckedLock& checked) {
  if (checked.depth == 0) end_with("a lock is given back that nobody holds");
  if (checked.holder != this_thread()) end_with("a lock is given back by another thread");
  if (--checked.depth == 0) checked.holder = 0;
}

int lock_checked(unsigned mode, void* lock) {
  auto* checked = static_cast<CheckedLock*>(lock);
  const bool has_both = checked->lock != nullptr && program_locks.lock != nullptr;
  const int error = has_both ? program_locks.lock(mode, checked->lock) : 0;
  if (error == 0) note_locked(*checked);
  return error;
}

int unlock_checked(unsigned mode, void* lock) {
  auto* checked = static_cast<CheckedLock*>(lock);
  note_unlocked(*checked);
  const bool has_both = checked->lock != nullptr && program_locks.unlock != nullptr;
  return has_both ? program_locks.unlock(mode, checked->lock) : 0;
}

int wait_checked(void* condition, void* lock, const timeval* timeout) {
  auto* checked = static_cast<CheckedLock*>(lock);
  note_unlocked(*checked);
  const int result = program_conditions.wait_condition(condition, checked->lock, timeout);
  note_locked(*checked);
  return result;
}

void* make_condition(unsigned type) { return program_conditions.alloc_condition(type); }

void free_condition(void* condition) { program_conditions.free_condition(condition); }

int signal_condition(void* condition, int to_all) {
  return program_conditions.signal_condition(condition, to_all);
}

}  // namespace

evthread_lock_callbacks& lock_callbacks() { return is_debugging ? program_locks : threads.locks; }
evthread_condition_callbacks& condition_callbacks() {
  return is_debugging ? program_conditions : threads.conditions;
}

void condition_callbacks_were_set() {
  if (!is_debugging) return;
  threads.conditions = {};
  if (program_conditions.alloc_condition == nullptr) return;
  threads.conditions = {EVTHREAD_CONDITION_API_VERSION, make_condition, free_condition,
                        signal_condition, wait_checked};
}

}  // namespace spate::libevent

void evthread_enable_lock_debugging() {
  using namespace spate::libevent;
  if (is_debugging) return;
  is_debugging = true;
  program_locks = threads.locks;
  program_conditions = threads.conditions;
  threads.locks = {EVTHREAD_LOCK_API_VERSION,
                   EVTHREAD_LOCKTYPE_RECURSIVE,
                   make_checked,
                   free_checked,
                   lock_checked,
                   unlock_checked};
  condition_callbacks_were_set();
}

void evthread_enable_lock_debuging() { evthread_enable_lock_debugging(); }
