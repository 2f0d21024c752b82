// LoopLocal: per-loop state of a layer above core. Each derived class has at most one object per
// loop, made by the first call of local_of().
//
// A handle that may outlive the loop calls enter(): the object then exists until the loop was
// destroyed and the last member has called leave(), so that a handle can always check is_alive().
#pragma once

#include <cstddef>
#include <new>

#include "core/ownership.h"
#include "spate/export.h"
#include "spate/loop.h"

namespace spate {

class ActiveList;

class LoopLocal {
 public:
  LoopLocal(const LoopLocal&) = delete;
  LoopLocal& operator=(const LoopLocal&) = delete;

  Loop& loop() const { return *loop_; }
  // Returns whether the loop still exists.
  bool is_alive() const { return is_alive_; }
  // True also during the loop's destruction, when nodes must still be stopped.
  bool has_loop() const { return loop_ != nullptr; }
  // Returns whether this is a child of a fork whose loop is still the parent's: then only
  // descriptors may be closed.
  bool is_foreign() const { return has_loop() ? spate::is_foreign(*loop_) : was_foreign_; }

  void enter() { ++members_; }
  void leave() {
    if (--members_ == 0) delete this;
  }

 protected:
  explicit LoopLocal(Loop& loop) : loop_(&loop) {}
  virtual ~LoopLocal() = default;

  // The second half of construction, which can fail.
  virtual bool open() { return true; }
  // Called when the loop is being destroyed, and still works.
  virtual void on_loop_end() {}
  // Called before a callback runs this loop or another one, and when the loop returns with events
  // queued. Work that waits for the callback's return, or for its turn, must be done now.
  virtual void on_handover() {}
  // Called in the child of a fork, after after_fork() has taken the loop over.
  virtual void on_fork() {}
  // Adds what keeps the loop alive by Loop::ref(), not by a watcher.
  virtual void list_active(ActiveList&) {}
  // Marks the loop as destroyed.
  void on_loop_destroyed() { is_alive_ = false; }

 private:
  friend class LoopLocals;

  Loop* loop_;
  bool is_alive_ = true;
  bool was_foreign_ = false;  // At the loop's end.
  std::size_t members_ = 1;   // The loop counts as one.
  const void* kind_ = nullptr;
  LoopLocal* next_ = nullptr;
};

// The locals of a loop. Destroyed with it, newest first.
class LoopLocals {
 public:
  LoopLocals() = default;
  LoopLocals(const LoopLocals&) = delete;
  LoopLocals& operator=(const LoopLocals&) = delete;

  LoopLocal* find(const void* kind) const {
    LoopLocal* local = first_;
    while (local != nullptr && local->kind_ != kind) local = local->next_;
    return local;
  }
  // Adds `made`, if it can be opened; otherwise deletes it and returns nullptr.
  SPATE_EXPORT LoopLocal* add(const void* kind, LoopLocal* made);
  void on_handover() {
    for (LoopLocal* local = first_; local != nullptr; local = local->next_) local->on_handover();
  }
  void on_fork() {
    for (LoopLocal* local = first_; local != nullptr; local = local->next_) local->on_fork();
  }
  void list_active(ActiveList& list) {
    for (LoopLocal* local = first_; local != nullptr; local = local->next_)
      local->list_active(list);
  }
  void end();

 private:
  LoopLocal* first_ = nullptr;
};

SPATE_EXPORT LoopLocals& locals_of(Loop& loop);

// Returns the loop's T; nullptr when memory runs out.
template <class T>
T* local_of(Loop& loop) {
  static char kind;  // Its address identifies T.
  LoopLocals& locals = locals_of(loop);
  LoopLocal* local = locals.find(&kind);
  if (local == nullptr) local = locals.add(&kind, new (std::nothrow) T(loop));
  return static_cast<T*>(local);
}

}  // namespace spate
