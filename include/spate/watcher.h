// Watcher: what all watchers have in common.
//
// A watcher belongs to its owner and is used by one Loop. start() activates it, stop() and the
// destructor deactivate it. While it is active the loop points to it, so it can be neither copied
// nor moved.
//
// Lifetime: a watcher may be stopped or destroyed anywhere on the loop's thread, inside any
// callback, its own included; after that its callback is not called, even if an event was queued.
// A loop that is destroyed first stops all its watchers, so either order is fine.
// Threads: the loop's thread only, Async::send() excepted.
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

  // Started and not stopped. A one-shot timer is inactive when its callback is called.
  bool is_active() const { return head().active != 0; }
  // An event is queued and the callback not called yet.
  bool is_pending() const { return head().pending != 0; }

  // -2 ... +2, initially 0. Within one turn, pending events are called highest first; a low
  // priority never starves.
  int priority() const { return head().priority; }
  // Clamped to the range. Not while pending.
  void set_priority(int priority) {
    SPATE_ASSERT(!is_pending(), "clear_pending() first: what is queued stands in another line");
    head().priority = priority < kPriorityMin   ? kPriorityMin
                      : priority > kPriorityMax ? kPriorityMax
                                                : priority;
  }

  void set_callback(Delegate<Self> callback) {
    head().callback = callback.thunk();
    head().context = callback.context();
  }

  // Queues a call as if `events` had happened; the watcher need not be active. If fed again before
  // the call, it is called once with both sets. False, and nothing queued, when memory runs out.
  bool feed(Events events = Events::custom) { return loop_->feed(head(), events); }
  // Drops what is queued, and returns it.
  Events clear_pending() { return is_pending() ? loop_->clear_pending(head()) : Events::none; }
  // Calls the callback now. It may destroy the watcher.
  void invoke(Events events = Events::custom) { head().callback(head().context, head(), events); }

  // The watcher of a node.
  static Self& from(Node& node) { return static_cast<Self&>(*reinterpret_cast<Watcher*>(&node)); }

 protected:
  Watcher(Loop& loop, Delegate<Self> callback) : node_{}, loop_(&loop) { set_callback(callback); }
  ~Watcher() = default;  // The derived class stops: it knows its table.

  // The loop points here. False after the loop is destroyed, when it must not be touched.
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
