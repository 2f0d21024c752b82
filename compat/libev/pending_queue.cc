#include "compat/libev/pending_queue.h"

#include <cstdlib>

#include "compat/libev/fatal.h"

namespace spate::libev {

namespace {

constexpr std::uint32_t kFirstCapacity = 64;

}  // namespace

PendingQueue::~PendingQueue() {
  for (const Stack& stack : stacks_) std::free(stack.entries);
}

void PendingQueue::feed_with_care(ev_watcher& watcher, int events) {
  const std::uint32_t level = level_of(watcher);
  Stack& stack = stacks_[level];
  if (watcher.pending != 0) {
    stack.entries[watcher.pending - 1].events |= events;
    return;
  }
  if (push(level, watcher, events)) return;
  const std::uint32_t capacity = stack.capacity == 0 ? kFirstCapacity : stack.capacity * 2;
  void* entries = std::realloc(stack.entries, capacity * sizeof(Entry));
  require(entries != nullptr, "out of memory for pending events");
  stack.entries = static_cast<Entry*>(entries);
  stack.capacity = capacity;
  push(level, watcher, events);
}

int PendingQueue::blank(ev_watcher& watcher) {
  Entry& entry = stacks_[level_of(watcher)].entries[watcher.pending - 1];
  entry.watcher = &stand_in_;
  watcher.pending = 0;
  return entry.events;
}

int PendingQueue::size() const {
  std::uint32_t size = 0;
  for (const Stack& stack : stacks_) size += stack.size;
  return static_cast<int>(size);
}

bool PendingQueue::is_consistent() const {
  for (std::uint32_t level = 0; level < kPriorityLevels; ++level) {
    const Stack& stack = stacks_[level];
    if ((stack.size == 0) != ((filled_ >> level & 1) == 0)) return false;
    for (std::uint32_t i = 0; i < stack.size; ++i) {
      const ev_watcher& watcher = *stack.entries[i].watcher;
      if (&watcher == &stand_in_) continue;
      if (watcher.pending != static_cast<int>(i + 1) || level_of(watcher) != level) return false;
    }
  }
  return true;
}

}  // namespace spate::libev
