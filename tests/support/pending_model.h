// A plain model of the pending queue: the tests of the queue and of whole loops compare with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "spate/events.h"
#include "spate/layer/node.h"

namespace spate::testing {

// Items are numbers that the test assigns.
class PendingModel {
 public:
  struct Item {
    int id;
    Events events;
  };

  void feed(int id, int priority, Events events) {
    Line& line = line_of(priority);
    for (Entry& entry : line) {
      if (entry.item.id != id) continue;
      entry.item.events |= events;
      return;
    }
    line.push_back({{id, events}, false});
  }

  // Removes it from the queue. Returns its queued events.
  Events remove(int id) {
    for (Line& line : lines_) {
      for (auto entry = line.begin(); entry != line.end(); ++entry) {
        if (entry->item.id != id) continue;
        const Events events = entry->item.events;
        line.erase(entry);
        return events;
      }
    }
    return Events::none;
  }

  // Removes these events of one watcher from the queue.
  void drop(int id, Events events) {
    for (Line& line : lines_) {
      for (Entry& entry : line) {
        if (entry.item.id == id) entry.item.events &= ~events;
      }
      std::erase_if(line, [](const Entry& entry) { return !any(entry.item.events); });
    }
  }

  bool has(int id) const {
    for (const Line& line : lines_) {
      for (const Entry& entry : line) {
        if (entry.item.id == id) return true;
      }
    }
    return false;
  }

  void begin_turn(std::uint32_t budget) {
    for (Line& line : lines_) {
      for (Entry& entry : line) entry.was_here = true;
    }
    budget_ = budget;
  }

  // Returns the next to be called; nothing at the end of the turn.
  std::optional<Item> take() {
    for (std::size_t level = kPriorityLevels; level-- > 0;) {
      Line& line = lines_[level];
      if (line.empty() || (!line.front().was_here && budget_ == 0)) continue;
      if (!line.front().was_here) --budget_;
      const Item item = line.front().item;
      line.pop_front();
      return item;
    }
    return std::nullopt;
  }

  bool turn_is_over() const {
    PendingModel copy = *this;
    return !copy.take();
  }

  std::size_t size() const {
    std::size_t count = 0;
    for (const Line& line : lines_) count += line.size();
    return count;
  }

  bool has_from(int priority) const {
    for (int p = priority; p <= kPriorityMax; ++p) {
      if (!lines_[static_cast<std::size_t>(p - kPriorityMin)].empty()) return true;
    }
    return false;
  }

 private:
  struct Entry {
    Item item;
    bool was_here;  // When the turn began.
  };
  using Line = std::deque<Entry>;

  Line& line_of(int priority) {
    const int p = priority < kPriorityMin   ? kPriorityMin
                  : priority > kPriorityMax ? kPriorityMax
                                            : priority;
    return lines_[static_cast<std::size_t>(p - kPriorityMin)];
  }

  std::vector<Line> lines_ = std::vector<Line>(kPriorityLevels);
  std::uint32_t budget_ = 0;
};

}  // namespace spate::testing
