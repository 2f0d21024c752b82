// The hooks of a turn: Prepare, Check, Idle, Fork, Cleanup. See the order of a turn in loop.h.
//
// Hooks of one kind are called by priority, then in the order they were started. Hooks may start
// and stop hooks; one that is started in a hook is called from the next turn on.
//
// Threads: the loop's thread only.
#pragma once

#include "spate/watcher.h"

namespace spate {

template <class Self, Hook kind>
class HookWatcher : public Watcher<Self, Node> {
 public:
  HookWatcher(Loop& loop, Delegate<Self> callback) : Watcher<Self, Node>(loop, callback) {}
  ~HookWatcher() { stop(); }

  // False when memory runs out.
  bool start() { return this->loop_->start(kind, this->node_); }
  void stop() {
    if (this->is_known()) this->loop_->stop(kind, this->node_);
  }
};

// Called just before the loop updates the kernel and waits: the place to start watchers for this
// wait.
class Prepare : public HookWatcher<Prepare, Hook::prepare> {
 public:
  using HookWatcher::HookWatcher;
};

// Called after every wait. Give it a high priority to be called before the events.
class Check : public HookWatcher<Check, Hook::check> {
 public:
  using HookWatcher::HookWatcher;
};

// Called in every turn in which nothing of the same or a higher priority is pending. An active Idle
// keeps the loop from blocking. Only the highest priority that has idle watchers is called.
class Idle : public HookWatcher<Idle, Hook::idle> {
 public:
  using HookWatcher::HookWatcher;
};

// Called in the child of a fork, at the start of the first turn after Loop::after_fork(). Does not
// keep the loop alive.
class Fork : public HookWatcher<Fork, Hook::fork> {
 public:
  using HookWatcher::HookWatcher;
};

// Called while the loop is being destroyed, when everything except run() still works. Does not keep
// the loop alive.
class Cleanup : public HookWatcher<Cleanup, Hook::cleanup> {
 public:
  using HookWatcher::HookWatcher;
};

}  // namespace spate
