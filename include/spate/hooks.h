// The hooks of a turn: Prepare, Check, Idle, Fork, Cleanup. loop.h shows where each has its place.
//
// Hooks of one kind are called in the order they were started (by priority first). Starting or
// stopping hooks inside a hook is fine; one started there is called from the next turn on.
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

// Just before the kernel is told what changed and the loop waits: the place to start watchers for
// this turn's wait.
class Prepare : public HookWatcher<Prepare, Hook::prepare> {
 public:
  using HookWatcher::HookWatcher;
};

// Just after the wait, whatever came of it. Give it a high priority to be called before the events
// themselves.
class Check : public HookWatcher<Check, Hook::check> {
 public:
  using HookWatcher::HookWatcher;
};

// In every turn in which nothing of the same or a higher priority is pending; an active one keeps
// the loop from blocking. Only the highest priority that has idle watchers is called.
class Idle : public HookWatcher<Idle, Hook::idle> {
 public:
  using HookWatcher::HookWatcher;
};

// In the child of a fork, at the start of the first turn after Loop::after_fork(). Does not keep
// the loop alive.
class Fork : public HookWatcher<Fork, Hook::fork> {
 public:
  using HookWatcher::HookWatcher;
};

// While the loop is being destroyed, when everything else still works but run(). Does not keep the
// loop alive.
class Cleanup : public HookWatcher<Cleanup, Hook::cleanup> {
 public:
  using HookWatcher::HookWatcher;
};

}  // namespace spate
