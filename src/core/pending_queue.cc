#include "core/pending_queue.h"

namespace spate {

bool PendingQueue::feed(Node& node, Events events) {
  Line& line = lines_[level_of(node)];
  if (node.pending != 0) {
    line.entries[node.pending - 1].events |= events;
    return true;
  }
  if (!line.entries.push({&node, events})) return false;
  node.pending = static_cast<std::uint32_t>(line.entries.size());
  ++count_;
  return true;
}

Events PendingQueue::remove(Node& node) {
  if (node.pending == 0) return Events::none;
  Due& entry = lines_[level_of(node)].entries[node.pending - 1];
  entry.node = nullptr;
  node.pending = 0;
  --count_;
  return entry.events;
}

void PendingQueue::begin_turn(std::uint32_t budget) {
  for (Line& line : lines_) {
    drop_taken(line);
    line.turn_end = line.entries.size();
  }
  extra_ = budget;
}

bool PendingQueue::take(Due& due) {
  for (int level = kPriorityLevels - 1; level >= 0 && count_ > 0; --level) {
    if (take_from(lines_[level], due)) return true;
  }
  return false;
}

bool PendingQueue::take_from(Line& line, Due& due) {
  while (line.head < line.entries.size()) {
    const Due entry = line.entries[line.head];
    if (entry.node != nullptr) {
      if (line.head >= line.turn_end) {
        if (extra_ == 0) return false;
        --extra_;
      }
      entry.node->pending = 0;
      --count_;
      due = entry;
    }
    ++line.head;
    if (entry.node != nullptr) return true;
  }
  drop_taken(line);
  line.turn_end = 0;
  return false;
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
  for (Line& line : lines_) {
    for (std::size_t i = line.head; i < line.entries.size(); ++i) {
      if (line.entries[i].node != nullptr) line.entries[i].node->pending = 0;
    }
    line.head = line.entries.size();
    drop_taken(line);
  }
  count_ = 0;
}

// Moves the rest of a line to its front. Cheap, since it is nearly always empty: only a spent
// budget leaves anything.
void PendingQueue::drop_taken(Line& line) {
  std::size_t kept = 0;
  for (std::size_t i = line.head; i < line.entries.size(); ++i) {
    const Due entry = line.entries[i];
    if (entry.node == nullptr) continue;
    line.entries[kept++] = entry;
    entry.node->pending = static_cast<std::uint32_t>(kept);
  }
  line.entries.shrink_to(kept);
  line.head = 0;
}

}  // namespace spate
