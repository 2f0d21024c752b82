// Watcher: what all watchers have in common.
//
// A watcher is memory that its owner lends to one Loop. It starts inactive; start() activates it,
// stop() and the destructor deactivate it. While it is active the loop points to it, so it can be
// neither copied nor moved.
//
// Lifetime: a watcher may be stopped or destroyed anywhere on the loop's thread, inside any
// callback, its own included; after that its callback is not called, even if an event for it had
// been queued. A loop that is destroyed first stops all its watchers, so either order is fine.
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

  // Started and not yet stopped. A one-shot timer is inactive when its callback is called.
  bool is_active() const { return head().active != 0; }
  // An event has happened or been fed and its callback not yet called.
  bool is_pending() const { return head().pending != 0; }

  // -2 ... +2, 0 at first. Within one turn, what is pending is called highest first; a low priority
  // never starves.
  int priority() const { return head().priority; }
  // Beyond the range is clamped. Not while pending.
  void set_priority(int priority) {
    SPATE_ASSERT(!is_pending(), "clear_pending() first: what is queued stands in another line");
    head().priority = priority < kPriorityMin   ? kPriorityMin
                      : priority > kPriorityMax ? kPriorityMax
                                                : priority;
  }

  // What is called from now on.
  void set_callback(Delegate<Self> callback) {
    head().callback = callback.thunk();
    head().context = callback.context();
  }

  // Queues the callback as if `events` had happened; the watcher need not be active. Fed twice
  // before it runs, it runs once with both sets. False, and nothing queued, when memory runs out.
  bool feed(Events events = Events::custom) { return loop_->feed(head(), events); }
  // Forgets what is queued. Returns what that was.
  Events clear_pending() { return is_pending() ? loop_->clear_pending(head()) : Events::none; }
  // Calls the callback now. The watcher may be gone afterwards.
  void invoke(Events events = Events::custom) { head().callback(head().context, head(), events); }

  // The watcher that a node is the head of.
  static Self& from(Node& node) { return static_cast<Self&>(*reinterpret_cast<Watcher*>(&node)); }

 protected:
  Watcher(Loop& loop, Delegate<Self> callback) : node_{}, loop_(&loop) { set_callback(callback); }
  ~Watcher() = default;  // Stopping is the kind's: only it knows its table.

  // Something of the loop points here. Once the loop is gone, nothing does, and it is not asked.
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
