// PendingQueue: queued events, one first-in first-out queue per priority.
//
// A node is queued at most once; feeding it again adds to its events. Removing it is O(1): its
// entry is blanked. A turn is fair: it takes all events that were queued when it began, and at most
// `budget` of those fed meanwhile.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

#include "base/array.h"
#include "spate/layer/node.h"

namespace spate {

class PendingQueue {
 public:
  // Returns the priority, clamped to the range.
  static int priority_of(const Node& node) {
    if (node.priority >= kPriorityMax) return kPriorityMax;
    return node.priority <= kPriorityMin ? kPriorityMin : node.priority;
  }

  // Queues an event. False when memory runs out.
  bool feed(Node& node, Events events);
  // Reserves room, so that feed() cannot fail.
  bool reserve(std::size_t nodes);
  // Removes the node's event, and returns it.
  [[gnu::cold]] Events remove(Node& node);

  // Removes some events of the node.
  void drop(Node& node, Events events);

  void begin_turn(std::uint32_t budget) {
    extra_ = budget;
    if ((runnable_ | put_off_) != 0) begin_lines();
  }
  // Removes the next event of the turn, whose node is no longer pending; false when the turn is
  // over.
  bool take(Due& due) { return take_from(0, due); }

  // Events fed between begin_front() and end_front() come before all others of priority 0, and
  // belong to this turn. begin_front() reserves room for `nodes`; false, with nothing begun, when
  // memory runs out.
  bool begin_front(std::size_t nodes);
  void end_front();
  // Returns whether this turn may have events of a priority above 0; take_urgent() takes the next
  // one.
  bool has_urgent() const { return runnable_ >= 2u << kNormal; }
  bool take_urgent(Due& due) { return take_from(kNormal + 1, due); }

  // ---- batches: entries in the caller's array that will be claimed one after the other. Until
  // then their nodes count as pending, and removing one blanks its entry.
  // Begins an empty batch, and gives back the rest of the last one. False when memory runs out.
  bool begin_batch(Due* entries) {
    if (!give_back()) return false;
    batch_ = entries;
    batch_size_ = 0;
    return true;
  }
  bool is_batch(const Due* entries) const { return batch_ == entries; }
  std::size_t batch_size() const { return batch_size_; }
  void hold(const Due& due) {
    batch_[batch_size_++] = due;
    due.node->pending = kHeld | static_cast<std::uint32_t>(batch_size_);
    ++held_;
  }
  // Claims an entry. Returns nullptr if it was removed.
  Node* claim(Due& entry) {
    Node* const node = std::exchange(entry.node, nullptr);
    if (node == nullptr) return nullptr;
    node->pending = 0;
    --held_;
    return node;
  }
  // Queues unclaimed entries again: those of priority 0 before all others. False, with nothing
  // changed, when memory runs out.
  bool give_back() { return held_ == 0 || give_back_held(); }

  std::size_t size() const { return count_ + held_; }
  bool empty() const { return count_ == 0; }
  // Returns whether an event of this or a higher priority is queued.
  bool has_from(int priority) const;
  void clear();

 private:
  struct Line {
    Array<Due> entries;  // A removed entry has no node.
    std::size_t head = 0;
    std::size_t turn_end = 0;  // Entries before it were queued when the turn began.
  };

  static constexpr int kNormal = -kPriorityMin;  // The index of priority 0.
  // In Node::pending: the index is that of a batch entry.
  static constexpr std::uint32_t kHeld = 1u << 31;

  static int level_of(const Node& node) {
    const auto level = static_cast<std::uint32_t>(node.priority) - kPriorityMin;
    if (level < kPriorityLevels) return static_cast<int>(level);
    return priority_of(node) - kPriorityMin;
  }
  [[gnu::noinline]] bool feed_slowly(Node& node, Events events);
  static bool is_held(const Node& node) { return (node.pending & kHeld) != 0; }
  Due& entry_of(const Node& node) {
    return is_held(node) ? batch_[(node.pending & ~kHeld) - 1]
                         : lines_[level_of(node)].entries[node.pending - 1];
  }
  [[gnu::cold]] bool give_back_held();
  bool take_from(int lowest, Due& due);
  void begin_lines();
  static void drop_taken(Line& line);

  Line lines_[kPriorityLevels];
  std::size_t count_ = 0;
  std::uint32_t extra_ = 0;     // How many events fed in this turn may still be taken in it.
  std::uint32_t runnable_ = 0;  // The queues that may have events for this turn, a bit each.
  std::uint32_t put_off_ = 0;   // The queues that only have events for the next turn.
  std::size_t front_ = 0;       // From here on the queue of priority 0 has the events for its
                                // front.
  Due* batch_ = nullptr;
  std::size_t batch_size_ = 0;
  std::size_t held_ = 0;  // Entries of the batch that were neither claimed nor removed.
};

// Fast paths, used for every event.

inline bool PendingQueue::feed(Node& node, Events events) {
  const int level = level_of(node);
  Line& line = lines_[level];
  if (node.pending != 0 || line.entries.size() == line.entries.capacity())
    return feed_slowly(node, events);
  line.entries.push_reserved({&node, events});
  node.pending = static_cast<std::uint32_t>(line.entries.size());
  runnable_ |= 1u << level;
  ++count_;
  return true;
}

inline bool PendingQueue::take_from(int lowest, Due& due) {
  while (runnable_ >> lowest != 0) {
    const int level = 31 ^ std::countl_zero(runnable_);
    Line& line = lines_[level];
    while (line.head < line.entries.size()) {
      const Due& next = line.entries[line.head];
      if (next.node != nullptr && line.head >= line.turn_end && extra_-- == 0) {
        extra_ = 0;
        break;
      }
      ++line.head;
      if (next.node == nullptr) continue;
      due.node = next.node;
      due.events = next.events;
      next.node->pending = 0;
      --count_;
      return true;
    }
    if (line.head == line.entries.size()) {
      drop_taken(line);
    } else {
      put_off_ |= 1u << level;
    }
    runnable_ &= ~(1u << level);
  }
  return false;
}

}  // namespace spate
