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
    const int level = level_of(watcher);
    Stack& stack = stacks_[level];
    if (watcher.pending != 0) {
      stack.entries[watcher.pending - 1].events |= events;
      return;
    }
    if (stack.size == stack.capacity) return feed_more(watcher, events);
    stack.entries[stack.size] = {&watcher, events};
    watcher.pending = ++stack.size;
    filled_ |= 1u << level;
  }

  // Returns the events that were queued for it.
  int clear(ev_watcher& watcher) { return watcher.pending == 0 ? 0 : blank(watcher); }

  // The next to be called, no longer pending; false when there is none.
  bool pop(Entry& entry) {
    if (filled_ == 0) return false;
    const int level = std::bit_width(filled_) - 1;
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
    int size = 0;
    int capacity = 0;
  };

  // Within the range, though the program may have fed a watcher that never was started.
  static int level_of(const ev_watcher& watcher) {
    const int level = watcher.priority - EV_MINPRI;
    if (static_cast<unsigned int>(level) < kPriorityLevels) [[likely]]
      return level;
    return watcher.priority > EV_MAXPRI ? kPriorityLevels - 1 : 0;
  }
  [[gnu::cold, gnu::noinline]] void feed_more(ev_watcher& watcher, int events);
  [[gnu::cold]] int blank(ev_watcher& watcher);
  static void do_nothing(struct ev_loop*, ev_watcher*, int) {}

  std::uint32_t filled_ = 0;  // The stacks that are not empty, bit by level.
  Stack stacks_[kPriorityLevels];
  ev_watcher stand_in_{0, 0, 0, nullptr, do_nothing};
};

}  // namespace spate::libev
