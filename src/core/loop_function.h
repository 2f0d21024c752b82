// LoopFunction: a function of the user's behind a handle that may outlive its loop. It is destroyed
// when it can no longer be called: after the last call, when the owner drops it, or with the loop.
// So an object goes that the function holds and that holds the handle.
#pragma once

#include <utility>

#include "spate/function.h"
#include "spate/hooks.h"

namespace spate {

template <class Signature>
class LoopFunction {
 public:
  // Without memory for the hook, the function stays as long as the handle: see is_linked().
  LoopFunction(Loop& loop, Function<Signature> function)
      : loop_ends_(loop, bind<&LoopFunction::drop>(this)) {
    loop_ends_.set_priority(kPriorityMin);  // After the program's own hooks.
    set(std::move(function));
  }

  // Replaces it. The destructor of the old one may set another, or destroy the owner.
  void set(Function<Signature> function) {
    function_.swap(function);
    if (function_) loop_ends_.start();
  }
  // Whether the function goes with the loop.
  bool is_linked() const { return !function_ || loop_ends_.is_active(); }
  explicit operator bool() const { return static_cast<bool>(function_); }

  // Calls the function if it is still there.
  template <class... Args>
  void operator()(Args&&... args) {
    if (function_) function_(std::forward<Args>(args)...);
  }
  // Returns it, or nothing if it was taken or dropped before.
  Function<Signature> take() {
    loop_ends_.stop();
    return std::exchange(function_, nullptr);
  }
  // Destroys it. This may destroy the owner: it is the last that the caller does.
  void drop() { const Function<Signature> gone = take(); }
  // Calls it for the last time. The call, or the destructor of the function, may destroy the owner.
  template <class... Args>
  void call_last(Args&&... args) {
    if (Function<Signature> last = take()) last(std::forward<Args>(args)...);
  }

 private:
  Function<Signature> function_;
  Cleanup loop_ends_;
};

}  // namespace spate
