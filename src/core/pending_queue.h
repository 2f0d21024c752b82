// PendingQueue: events that were queued and not yet called, one line per priority, first come first
// served.
//
// A node is queued at most once; feeding it again adds to its events. Taking it out is O(1): its
// place is blanked. A turn is fair: all that stood in line when it began is taken in it, and what
// is fed meanwhile, `budget` at most, too.
#pragma once

#include <cstdint>

#include "core/array.h"
#include "spate/node.h"

namespace spate {

class PendingQueue {
 public:
  // False when memory runs out.
  bool feed(Node& node, Events events);
  // Returns the events that were queued for it.
  Events remove(Node& node);

  void begin_turn(std::uint32_t budget);
  // The next to be called, no longer pending; false when the turn is over.
  bool take(Due& due);

  std::size_t size() const { return count_; }
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

  static int level_of(const Node& node) {
    if (node.priority >= kPriorityMax) return kPriorityLevels - 1;
    return node.priority <= kPriorityMin ? 0 : node.priority - kPriorityMin;
  }
  static void drop_taken(Line& line);

  Line lines_[kPriorityLevels];
  std::size_t count_ = 0;
  std::uint32_t extra_ = 0;     // How many of those fed in this turn may still be taken.
  std::uint32_t runnable_ = 0;  // The lines that may have something for this turn, bit by level.
};

}  // namespace spate
