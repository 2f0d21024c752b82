// Interfaces for layers (drop-in libraries and language bindings). A layer keeps its own structs
// (node.h), starts them on a NodeLoop, and receives events through a Dispatcher.
//
// Ownership: NodeLoop::create() returns the loop; the dispatcher stays the layer's.
// Threads: the loop's, except with LayerOptions::guarded.
#pragma once

#include "spate/loop.h"

namespace spate {

// Replaces the default delivery of events, which queues a node when it becomes due and calls its
// callback in order. Called on the loop's thread. No function of it may destroy the loop.
class SPATE_EXPORT Dispatcher {
 public:
  virtual ~Dispatcher() = default;
  // Called when a started node became ready. The default feeds it.
  virtual void ready(Loop& loop, FdNode& node, Events events) { loop.feed(node.head, events); }
  // Called when a timer expired, which is then inactive. The default restarts it if it repeats, and
  // feeds it.
  virtual void expired(Loop& loop, TimerNode& node) { loop.default_expiry(node); }
  // Calls the due events: while (loop.take(due)) ... May leave some for the next turn.
  virtual void run_pending(Loop& loop) { loop.default_dispatch(); }
  // Called just before and just after a wait that may block. A language binding releases its
  // interpreter lock here.
  virtual void before_wait(Loop&) {}
  virtual void after_wait(Loop&) {}
};

struct LayerOptions {
  LoopOptions loop{};
  // Replaces the default dispatch. Must outlive the loop.
  Dispatcher* dispatcher = nullptr;
  // The layer has a lock: any thread that holds it may use the loop, even while another thread
  // sleeps in run(). The dispatcher of the sleeping thread releases the lock from before_wait() to
  // after_wait(). A thread that changes the loop meanwhile calls wake() to make the sleeping one
  // look again, and may use start_now() with the epoll backend only.
  bool guarded = false;
  // Destroying the loop does not touch nodes that are still active: the program may have freed
  // them.
  bool orphans = false;
};

}  // namespace spate
