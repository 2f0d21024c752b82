// LoopLocal: what a room above core keeps for each loop. Each class derived from it has at most one
// object a loop, made when it is first asked for with local_of().
//
// A handle that a user keeps beyond the loop enters: the object stays until the loop has gone and
// the last member has left, so that a handle can always ask whether the loop is still there.
#pragma once

#include <cstddef>
#include <new>

#include "core/ownership.h"
#include "spate/export.h"
#include "spate/loop.h"

namespace spate {

class LoopLocal {
 public:
  LoopLocal(const LoopLocal&) = delete;
  LoopLocal& operator=(const LoopLocal&) = delete;

  Loop& loop() const { return *loop_; }
  // Whether the loop is still there.
  bool is_alive() const { return is_alive_; }
  // A loop that is going has still to let go of the nodes of those who go before it.
  bool has_loop() const { return loop_ != nullptr; }
  // Whether this is a child of a fork whose loop is still the parent's: nothing is to be done then
  // but to close our descriptors.
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
  // The loop is going, and still works.
  virtual void on_loop_end() {}
  // A callback is about to run the loop, or the loop returns with something queued: what waits for
  // that callback to return, or for its turn, has to go first.
  virtual void on_handover() {}
  // From here on the loop counts as gone.
  void forsake_loop() { is_alive_ = false; }

 private:
  friend class LoopLocals;

  Loop* loop_;
  bool is_alive_ = true;
  bool was_foreign_ = false;  // When the loop went.
  std::size_t members_ = 1;   // The loop is one.
  const void* kind_ = nullptr;
  LoopLocal* next_ = nullptr;
};

// A loop's own. They go with it, the youngest first.
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
  // Takes over what was made, if it can be opened; nullptr otherwise.
  SPATE_EXPORT LoopLocal* add(const void* kind, LoopLocal* made);
  void on_handover() {
    for (LoopLocal* local = first_; local != nullptr; local = local->next_) local->on_handover();
  }
  void end();

 private:
  LoopLocal* first_ = nullptr;
};

SPATE_EXPORT LoopLocals& locals_of(Loop& loop);

// The loop's T; nullptr when memory runs out.
template <class T>
T* local_of(Loop& loop) {
  static char kind;  // Its address is the name of T.
  LoopLocals& locals = locals_of(loop);
  LoopLocal* local = locals.find(&kind);
  if (local == nullptr) local = locals.add(&kind, new (std::nothrow) T(loop));
  return static_cast<T*>(local);
}

}  // namespace spate
