// Signal: calls back, on the loop's thread, after the process received a signal.
//
// Any number of watchers in any loops may share a signal; each is called. Signals that arrive
// before the callback runs are merged. While at least one watcher is active, spate's handler is
// installed (with SA_RESTART). When the last one stops, the previous disposition is restored,
// unless it was changed meanwhile. Signals that are not watched are not touched. An active watcher
// keeps its loop alive.
#pragma once

#include "spate/watcher.h"

namespace spate {

struct SignalNode {
  Node head;
  SignalNode* next;  // core: the next node of the same signal in this loop.
  int signum;        // Must not change while active.
};

class Signal : public Watcher<Signal, SignalNode> {
 public:
  Signal(Loop& loop, Delegate<Signal> callback) : Watcher(loop, callback) {}
  ~Signal() { stop(); }

  // Starts or restarts the watcher. `signum` is 1 ... 64, as in <signal.h>. Errors: EINVAL for a
  // signal that cannot be caught, ENOSPC when more than 16 loops watch it, ENOMEM, EMFILE.
  std::error_code start(int signum) {
    stop();
    node_.signum = signum;
    return loop_->start(node_);
  }
  void stop() {
    if (is_known()) loop_->stop(node_);
  }

  int signum() const { return node_.signum; }
};

}  // namespace spate
