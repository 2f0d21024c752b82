// Async: calls back when any thread, or a signal handler, calls send(). Sends before the callback
// runs are merged into one call; use Loop::post() where each call counts.
//
// Threads: send() from anywhere; everything else on the loop's thread. The Async must outlive all
// calls to send(). An active Async keeps its loop alive.
#pragma once

#include <atomic>

#include "spate/watcher.h"

namespace spate {

struct AsyncNode {
  Node head;
  // core: not sent; sent and not yet collected; or the latter, and served by a call meanwhile.
  enum Sent : std::uint32_t { kUnsent, kSent, kServed };

  AsyncNode* next;  // core: the next one to be collected.
  std::atomic<std::uint32_t> sent;

  // For who is about to call: this call serves what was sent between collecting and it, too, if it
  // is active.
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

  // False when memory runs out.
  bool start() { return loop_->start(node_); }
  void stop() {
    if (is_known()) loop_->stop(node_);
  }
  // Calls back in the loop's next turn. A system call only if the loop sleeps. Async-signal-safe.
  void send() noexcept { loop_->send(node_); }
  // Sent, and the loop has not noticed yet; from then on is_pending() says it. Any thread.
  bool is_sent() const noexcept { return node_.sent.load() == AsyncNode::kSent; }

 private:
  friend class Delegate<Async>;

  void before_call(Events& events) { node_.serve(events); }
};

}  // namespace spate
