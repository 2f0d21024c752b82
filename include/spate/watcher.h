// Watcher: the interface that all watchers share.
//
// A watcher belongs to its owner and is used by one Loop. start() activates it, stop() and the
// destructor deactivate it. While it is active the loop points to it, so it can be neither copied
// nor moved.
//
// Lifetime: a watcher may be stopped or destroyed anywhere on the loop's thread, inside any
// callback, also its own; after that its callback is not called, even if an event was queued. A
// loop that is destroyed first stops all its watchers, so either order is fine.
// Threads: the loop's thread only, except Async::send().
// Inside a callback: everything is allowed, except destroying the loop that is running it.
#pragma once

#include "spate/assert.h"
#include "spate/delegate.h"
#include "spate/loop.h"

namespace spate {

template <class Self, class NodeType>
class Watcher {
 public:
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  Loop& loop() const { return *loop_; }

  // True if started and not stopped. A one-shot timer is inactive when its callback is called.
  bool is_active() const { return head().active != 0; }
  // True if an event is queued and the callback was not called yet.
  bool is_pending() const { return head().pending != 0; }

  // Returns -2 ... +2, initially 0. Within one turn, pending events are called highest first; a low
  // priority never starves.
  int priority() const { return head().priority; }
  // Sets the priority, clamped to the range. Not while pending.
  void set_priority(int priority) {
    SPATE_ASSERT(!is_pending(), "clear_pending() first: the event is queued at the old priority");
    head().priority = priority < kPriorityMin   ? kPriorityMin
                      : priority > kPriorityMax ? kPriorityMax
                                                : priority;
  }

  void set_callback(Delegate<Self> callback) {
    head().callback = callback.thunk();
    head().context = callback.context();
  }

  // Queues a call as if `events` had happened; the watcher need not be active. If fed again before
  // the call, it is called once with both sets. Returns false, with nothing queued, when memory
  // runs out.
  bool feed(Events events = Events::custom) { return loop_->feed(head(), events); }
  // Drops the queued events, and returns them.
  Events clear_pending() { return is_pending() ? loop_->clear_pending(head()) : Events::none; }
  // Calls the callback now. It may destroy the watcher.
  void invoke(Events events = Events::custom) { head().callback(head().context, head(), events); }

  // Returns the watcher of a node.
  static Self& from(Node& node) { return static_cast<Self&>(*reinterpret_cast<Watcher*>(&node)); }

 protected:
  Watcher(Loop& loop, Delegate<Self> callback) : node_{}, loop_(&loop) { set_callback(callback); }
  ~Watcher() = default;  // The derived class stops: only it has the type of the node.

  // True if the loop points to this watcher. False after the loop was destroyed; loop_ must not be
  // touched then.
  bool is_known() const { return is_active() || is_pending(); }

  Node& head() {
    if constexpr (std::is_same_v<NodeType, Node>) {
      return node_;
    } else {
      return node_.head;
    }
  }
  const Node& head() const { return const_cast<Watcher*>(this)->head(); }

  NodeType node_;
  Loop* loop_;
};

}  // namespace spate
