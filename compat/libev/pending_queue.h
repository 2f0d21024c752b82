// PendingQueue: the watchers whose callbacks are due.
//
// Each priority has a stack. The next to be called is the last one queued, of the highest priority;
// if a callback queues a watcher above its own priority, that is called next. A watcher is queued
// at most once; further events are added to those that it has. `pending` of a queued watcher is one
// more than its place in the stack, so that taking it out costs one store: a stand-in that does
// nothing takes the place.
//
// Semantics: ev(3) "WATCHER STATES", "ev_feed_event", "ev_clear_pending"; the order was probed.
#pragma once

#include <bit>
#include <cstdint>

#include "compat/libev/overlay.h"

namespace spate::libev {

class PendingQueue {
 public:
  struct Entry {
    ev_watcher* watcher;
    int events;
  };

  PendingQueue() = default;
  ~PendingQueue();
  PendingQueue(const PendingQueue&) = delete;
  PendingQueue& operator=(const PendingQueue&) = delete;

  void feed(ev_watcher& watcher, int events) {
    constexpr std::uint32_t kNormal = 0 - EV_MINPRI;  // The level of nearly all.
    if ((watcher.pending | watcher.priority) == 0 && push(kNormal, watcher, events)) [[likely]]
      return;
    feed_with_care(watcher, events);
  }

  // Returns the events that were queued for the watcher.
  int clear(ev_watcher& watcher) { return watcher.pending == 0 ? 0 : blank(watcher); }

  // Removes the next to be called; returns false if the queue is empty.
  [[nodiscard]] bool pop(Entry& entry) {
    if (filled_ == 0) return false;
    const std::uint32_t level = 31u ^ static_cast<std::uint32_t>(std::countl_zero(filled_));
    Stack& stack = stacks_[level];
    entry = stack.entries[--stack.size];
    if (stack.size == 0) filled_ &= ~(1u << level);
    entry.watcher->pending = 0;
    return true;
  }

  // Returns true if a watcher of this or a higher priority is queued.
  bool has_from(int priority) const { return filled_ >> (priority - EV_MINPRI) != 0; }
  int size() const;
  // Used by ev_verify().
  bool is_consistent() const;

 private:
  struct Stack {
    Entry* entries = nullptr;
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;
  };

  // In range, though the program may have fed a watcher that was never started.
  static std::uint32_t level_of(const ev_watcher& watcher) {
    const auto level = static_cast<std::uint32_t>(watcher.priority - EV_MINPRI);
    if (level < kPriorityLevels) [[likely]]
      return level;
    return watcher.priority > EV_MAXPRI ? kPriorityLevels - 1 : 0;
  }
  // Returns false without memory.
  bool push(std::uint32_t level, ev_watcher& watcher, int events) {
    Stack& stack = stacks_[level];
    const std::uint32_t size = stack.size;
    if (size == stack.capacity) return false;
    stack.entries[size] = {&watcher, events};
    stack.size = size + 1;
    watcher.pending = static_cast<int>(size + 1);
    filled_ |= 1u << level;
    return true;
  }
  // Queues a watcher of another priority, one that is queued already, or one that needs more room.
  [[gnu::noinline]] void feed_with_care(ev_watcher& watcher, int events);
  [[gnu::cold]] int blank(ev_watcher& watcher);
  static void do_nothing(struct ev_loop*, ev_watcher*, int) {}

  std::uint32_t filled_ = 0;  // The stacks that are not empty, bit by level.
  Stack stacks_[kPriorityLevels];
  ev_watcher stand_in_ = watcher_with(0, do_nothing);
};

}  // namespace spate::libev
