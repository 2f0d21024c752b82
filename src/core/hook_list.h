// HookList: nodes of one kind that are called together, in the order in which they were started.
#pragma once

#include <algorithm>

#include "base/array.h"
#include "core/pending_queue.h"
#include "spate/layer/node.h"

namespace spate {

class HookList {
 public:
  bool empty() const { return count_ == 0; }

  // False when memory runs out.
  bool add(Node& node) {
    if (nodes_.size() == nodes_.capacity()) close_gaps();
    if (!nodes_.push(&node)) return false;
    node.active = static_cast<std::uint32_t>(nodes_.size());
    ++count_;
    return true;
  }
  // Leaves a gap, to keep the order.
  void remove(Node& node) {
    nodes_[node.active - 1] = nullptr;
    node.active = 0;
    --count_;
  }

  // Queues all nodes. False, and none queued, when memory runs out.
  bool feed_all(PendingQueue& pending, Events events) {
    close_gaps();
    if (!pending.reserve(nodes_.size())) return false;
    for (Node* node : nodes_) pending.feed(*node, events);
    return true;
  }
  // Queues the nodes of the highest priority among them, unless an event of that or a higher
  // priority is queued.
  void feed_highest(PendingQueue& pending, Events events) {
    close_gaps();
    int highest = kPriorityMin;
    for (const Node* node : nodes_) highest = std::max(highest, PendingQueue::priority_of(*node));
    if (pending.has_from(highest)) return;
    for (Node* node : nodes_) {
      if (PendingQueue::priority_of(*node) == highest) pending.feed(*node, events);
    }
  }
  template <class F>
  void for_each(const F& show) const {
    for (Node* node : nodes_) {
      if (node != nullptr) show(*node);
    }
  }
  void remove_all() {
    for (Node* node : nodes_) {
      if (node != nullptr) node->active = 0;
    }
    nodes_.clear();
    count_ = 0;
  }

 private:
  void close_gaps() {
    if (count_ == nodes_.size()) return;
    std::size_t kept = 0;
    for (Node* node : nodes_) {
      if (node == nullptr) continue;
      nodes_[kept++] = node;
      node->active = static_cast<std::uint32_t>(kept);
    }
    nodes_.shrink_to(kept);
  }

  Array<Node*> nodes_;
  std::size_t count_ = 0;
};

}  // namespace spate
