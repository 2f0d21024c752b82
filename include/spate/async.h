// Async: a call-back that any thread, or a signal handler, can ask for. Sends that come before the
// callback runs are merged into one call; where every call counts, use Loop::post().
//
// Threads: send() from anywhere; everything else on the loop's thread. The Async must outlive the
// last send() that may still be on its way. An active Async keeps its loop alive.
#pragma once

#include <atomic>

#include "spate/watcher.h"

namespace spate {

struct AsyncNode {
  Node head;
  AsyncNode* next;  // core: the next one sent and not yet collected.
  std::atomic<std::uint32_t> sent;
};

class Async : public Watcher<Async, AsyncNode> {
 public:
  Async(Loop& loop, Delegate<Async> callback) : Watcher(loop, callback) {}
  ~Async() {
    if (is_known() || node_.sent.load() != 0) loop_->stop(node_);
  }

  // False when memory runs out.
  bool start() { return loop_->start(node_); }
  void stop() {
    if (is_known()) loop_->stop(node_);
  }
  // Has the callback called in the loop's next turn. Enters the kernel only if the loop sleeps.
  // Async-signal-safe.
  void send() noexcept { loop_->send(node_); }
};

}  // namespace spate
