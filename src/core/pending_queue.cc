#include "core/pending_queue.h"

#include <algorithm>

namespace spate {

bool PendingQueue::reserve(std::size_t nodes) {
  if (nodes == 0) return true;
  for (Line& line : lines_) {
    if (!line.entries.reserve(line.entries.size() + nodes)) return false;
  }
  return true;
}

// Slow path: the node is queued already, or there is no room yet.
bool PendingQueue::feed_slowly(Node& node, Events events) {
  if (node.pending == 0) {
    Array<Due>& entries = lines_[level_of(node)].entries;
    return entries.reserve(entries.size() + 1) && feed(node, events);
  }
  entry_of(node).events |= events;
  return true;
}

Events PendingQueue::remove(Node& node) {
  if (node.pending == 0) return Events::none;
  Due& entry = entry_of(node);
  --(is_held(node) ? held_ : count_);
  entry.node = nullptr;
  node.pending = 0;
  return entry.events;
}

void PendingQueue::drop(Node& node, Events events) {
  Due& entry = entry_of(node);
  entry.events &= ~events;
  if (!any(entry.events)) remove(node);
}

bool PendingQueue::give_back_held() {
  if (!reserve(held_) || !begin_front(held_)) return false;
  for (Due *entry = batch_, *end = batch_ + batch_size_; entry != end; ++entry) {
    const Events events = entry->events;
    if (Node* const node = claim(*entry)) feed(*node, events);
  }
  end_front();
  return true;
}

void PendingQueue::begin_lines() {
  runnable_ |= put_off_;
  put_off_ = 0;
  for (std::uint32_t rest = runnable_; rest != 0; rest &= rest - 1) {
    Line& line = lines_[std::countr_zero(rest)];
    drop_taken(line);
    line.turn_end = line.entries.size();
  }
}

bool PendingQueue::begin_front(std::size_t nodes) {
  Array<Due>& entries = lines_[kNormal].entries;
  front_ = entries.size();
  return entries.reserve(front_ + nodes);
}

void PendingQueue::end_front() {
  Line& line = lines_[kNormal];
  Array<Due>& entries = line.entries;
  const std::size_t count = entries.size() - front_;
  line.turn_end = std::max(line.turn_end, line.head) + count;
  if (front_ == line.head) return;  // Nothing else is queued.
  std::rotate(entries.begin() + line.head, entries.begin() + front_, entries.end());
  for (std::size_t i = line.head; i < entries.size(); ++i) {
    if (entries[i].node != nullptr) entries[i].node->pending = static_cast<std::uint32_t>(i) + 1;
  }
}

bool PendingQueue::has_from(int priority) const {
  for (int level = priority - kPriorityMin; level < kPriorityLevels; ++level) {
    const Line& line = lines_[level];
    for (std::size_t i = line.head; i < line.entries.size(); ++i) {
      if (line.entries[i].node != nullptr) return true;
    }
  }
  return false;
}

void PendingQueue::clear() {
  for (std::size_t i = 0; held_ != 0; ++i) claim(batch_[i]);
  for (Line& line : lines_) {
    for (std::size_t i = line.head; i < line.entries.size(); ++i) {
      if (line.entries[i].node != nullptr) line.entries[i].node->pending = 0;
    }
    line.head = line.entries.size();
    drop_taken(line);
  }
  count_ = 0;
}

// Moves the rest of a queue to its front. Cheap, since the rest is nearly always empty: only a
// spent budget leaves anything.
void PendingQueue::drop_taken(Line& line) {
  if (line.head == 0) return;
  std::size_t kept = 0;
  for (std::size_t i = line.head; i < line.entries.size(); ++i) {
    const Due entry = line.entries[i];
    if (entry.node == nullptr) continue;
    line.entries[kept++] = entry;
    entry.node->pending = static_cast<std::uint32_t>(kept);
  }
  line.entries.shrink_to(kept);
  line.head = 0;
  line.turn_end = 0;
}

}  // namespace spate
