// Async: calls back when any thread, or a signal handler, calls send(). Sends before the callback
// runs are merged into one call; use Loop::post() where each call counts.
//
// Threads: send() from any thread; everything else on the loop's thread. The Async must outlive all
// calls to send(). An active Async keeps its loop alive.
#pragma once

#include <atomic>

#include "spate/watcher.h"

namespace spate {

struct AsyncNode {
  Node head;
  // core: kSent: sent, and not yet collected by the loop. kServed: the same, but a callback that
  // ran meanwhile has already reported the send.
  enum Sent : std::uint32_t { kUnsent, kSent, kServed };

  AsyncNode* next;  // core: the next node to be collected.
  std::atomic<std::uint32_t> sent;

  // Adds Events::async to `events` if a send is waiting and the node is active: the call that is
  // about to be made covers every send made before it.
  void serve(Events& events) {
    if (sent.load(std::memory_order_relaxed) == kUnsent || head.active == 0) return;
    sent.exchange(kServed);
    events |= Events::async;
  }
};

class Async : public Watcher<Async, AsyncNode> {
 public:
  Async(Loop& loop, Delegate<Async> callback) : Watcher(loop, callback) {}
  ~Async() {
    if (is_known() || node_.sent.load() != AsyncNode::kUnsent) loop_->stop(node_);
  }

  // Activates the watcher. False when memory runs out.
  bool start() { return loop_->start(node_); }
  void stop() {
    if (is_known()) loop_->stop(node_);
  }
  // Schedules a callback for the loop's next turn. Makes a system call only if the loop sleeps. Any
  // thread; async-signal-safe.
  void send() noexcept { loop_->send(node_); }
  // True after send() until the loop notices it; from then on is_pending() is true. Any thread.
  bool is_sent() const noexcept { return node_.sent.load() == AsyncNode::kSent; }

 private:
  friend class Delegate<Async>;

  void before_call(Events& events) { node_.serve(events); }
};

}  // namespace spate
