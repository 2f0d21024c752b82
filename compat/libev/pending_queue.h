// PendingQueue: the watchers whose callbacks are to be called.
//
// One stack a priority: called is the one that was queued last, of the highest priority there is;
// what a callback queues above its own priority goes next. A watcher is queued at most once, and
// what else happens to it is added to its events. `pending` of a queued watcher is one more than
// its place in the stack, so that taking it out costs one store: a stand-in that does nothing takes
// the place.
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

  // Returns the events that were queued for it.
  int clear(ev_watcher& watcher) { return watcher.pending == 0 ? 0 : blank(watcher); }

  // The next to be called, no longer pending; false when there is none.
  bool pop(Entry& entry) {
    if (filled_ == 0) return false;
    const std::uint32_t level = 31u ^ static_cast<std::uint32_t>(std::countl_zero(filled_));
    Stack& stack = stacks_[level];
    entry = stack.entries[--stack.size];
    if (stack.size == 0) filled_ &= ~(1u << level);
    entry.watcher->pending = 0;
    return true;
  }

  // Whether anything of this or a higher priority is queued.
  bool has_from(int priority) const { return filled_ >> (priority - EV_MINPRI) != 0; }
  int size() const;
  // What ev_verify() wants to know.
  bool is_consistent() const;

 private:
  struct Stack {
    Entry* entries = nullptr;
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;
  };

  // Within the range, though the program may have fed a watcher that never was started.
  static std::uint32_t level_of(const ev_watcher& watcher) {
    const auto level = static_cast<std::uint32_t>(watcher.priority - EV_MINPRI);
    if (level < kPriorityLevels) [[likely]]
      return level;
    return watcher.priority > EV_MAXPRI ? kPriorityLevels - 1 : 0;
  }
  // False if there is no room.
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
  // One of another priority, one that is queued already, or for which there is no room yet.
  [[gnu::noinline]] void feed_with_care(ev_watcher& watcher, int events);
  [[gnu::cold]] int blank(ev_watcher& watcher);
  static void do_nothing(struct ev_loop*, ev_watcher*, int) {}

  std::uint32_t filled_ = 0;  // The stacks that are not empty, bit by level.
  Stack stacks_[kPriorityLevels];
  ev_watcher stand_in_ = watcher_with(0, do_nothing);
};

}  // namespace spate::libev
