// For layers (drop-in libraries and language bindings), which keep their own structs (node.h),
// start them on a NodeLoop, and receive events through a Dispatcher.
//
// Ownership: NodeLoop::create() returns the loop; the dispatcher stays the layer's.
// Threads: the loop's, except with LayerOptions::guarded.
#pragma once

#include "spate/loop.h"

namespace spate {

// How a layer takes delivery in place of the default, which is: queue the node of what happened,
// and call its callback when its turn comes. Called on the loop's thread. Nothing here may destroy
// the loop.
class SPATE_EXPORT Dispatcher {
 public:
  virtual ~Dispatcher() = default;
  // A started node became ready. The default feeds it.
  virtual void ready(Loop& loop, FdNode& node, Events events) { loop.feed(node.head, events); }
  // A timer expired; it is inactive. The default restarts it if it repeats, and feeds it.
  virtual void expired(Loop& loop, TimerNode& node) { loop.default_expiry(node); }
  // Calls what is due: while (loop.take(due)) ...  Leaving some for the next turn is allowed.
  virtual void run_pending(Loop& loop) { loop.default_dispatch(); }
  // Just before and just after the wait that may block (a binding gives up its interpreter lock
  // here).
  virtual void before_wait(Loop&) {}
  virtual void after_wait(Loop&) {}
};

struct LayerOptions {
  LoopOptions loop{};
  // Replaces the default dispatch. Must outlive the loop.
  Dispatcher* dispatcher = nullptr;
  // The layer has a lock: any thread that holds it may use the loop, even while another thread
  // sleeps in run(), whose dispatcher releases the lock from before_wait() to after_wait(). Such a
  // thread calls wake() when the sleeping one has to look again, and uses start_now() with the
  // epoll backend only.
  bool guarded = false;
  // Nodes that are active when the loop is destroyed are not touched: the program may have freed
  // them.
  bool orphans = false;
};

}  // namespace spate
