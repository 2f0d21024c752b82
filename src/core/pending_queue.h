// PendingQueue: events that were queued and not yet called, one line per priority, first come first
// served.
//
// A node is queued at most once; feeding it again adds to its events. Taking it out is O(1): its
// place is blanked. A turn is fair: all that stood in line when it began is taken in it, and what
// is fed meanwhile, `budget` at most, too.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

#include "base/array.h"
#include "spate/node.h"

namespace spate {

class PendingQueue {
 public:
  // Within the range, whatever the node says.
  static int priority_of(const Node& node) {
    if (node.priority >= kPriorityMax) return kPriorityMax;
    return node.priority <= kPriorityMin ? kPriorityMin : node.priority;
  }

  // False when memory runs out.
  bool feed(Node& node, Events events);
  // Room for so many more, so that feed() cannot fail.
  bool reserve(std::size_t nodes);
  // Returns the events that were queued for it.
  [[gnu::cold]] Events remove(Node& node);

  // Takes these away from what is queued for it.
  void drop(Node& node, Events events);

  void begin_turn(std::uint32_t budget) {
    extra_ = budget;
    if ((runnable_ | put_off_) != 0) begin_lines();
  }
  // The next to be called, no longer pending; false when the turn is over.
  bool take(Due& due) { return take_from(0, due); }

  // What is fed between these two comes before all else of priority 0, and belongs to this turn.
  // There is room for `nodes` then; false if not, and nothing begun.
  bool begin_front(std::size_t nodes);
  void end_front();
  // Whether anything of a higher priority than 0 may be left to this turn; and the next of it.
  bool has_urgent() const { return runnable_ >= 2u << kNormal; }
  bool take_urgent(Due& due) { return take_from(kNormal + 1, due); }

  // A batch: entries that a caller has taken into an array of his own, and will come to one after
  // the other. Until then their nodes count as pending: what is removed is blanked in the array.
  // Begins an empty one, and gives back what is left of the last. False when memory runs out.
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
  // The caller has come to this entry. Returns nullptr if it has been removed.
  Node* claim(Due& entry) {
    Node* const node = std::exchange(entry.node, nullptr);
    if (node == nullptr) return nullptr;
    node->pending = 0;
    --held_;
    return node;
  }
  // Queues once more what has not been claimed: of priority 0, before all else. False when memory
  // runs out, and nothing is changed.
  bool give_back() { return held_ == 0 || give_back_held(); }

  std::size_t size() const { return count_ + held_; }
  bool empty() const { return count_ == 0; }
  // Whether anything of this or a higher priority is queued.
  bool has_from(int priority) const;
  void clear();

 private:
  struct Line {
    Array<Due> entries;  // A removed one has no node.
    std::size_t head = 0;
    std::size_t turn_end = 0;  // What lies before was here when the turn began.
  };

  static constexpr int kNormal = -kPriorityMin;  // The level of priority 0.
  // In Node::pending: the place is one in the batch.
  static constexpr std::uint32_t kHeld = 1u << 31;

  static int level_of(const Node& node) {
    const auto level = static_cast<std::uint32_t>(node.priority) - kPriorityMin;
    if (level < kPriorityLevels) return static_cast<int>(level);
    return priority_of(node) - kPriorityMin;
  }
  [[gnu::noinline]] bool feed_with_care(Node& node, Events events);
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
  std::uint32_t extra_ = 0;     // How many of those fed in this turn may still be taken.
  std::uint32_t runnable_ = 0;  // The lines that may have something for this turn, bit by level.
  std::uint32_t put_off_ = 0;   // Those with something for the next one only.
  std::size_t front_ = 0;       // From here on the line of priority 0 is to come before the rest.
  Due* batch_ = nullptr;
  std::size_t batch_size_ = 0;
  std::size_t held_ = 0;  // How many of the batch have not been claimed, nor removed.
};

// Every event goes through these two.

inline bool PendingQueue::feed(Node& node, Events events) {
  const int level = level_of(node);
  Line& line = lines_[level];
  if (node.pending != 0 || line.entries.size() == line.entries.capacity())
    return feed_with_care(node, events);
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
