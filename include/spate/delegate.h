// Delegate: a watcher's callback, in two words. It owns nothing and never allocates.
//
// A Delegate is made from any callable that is trivially copyable and no larger than a pointer:
//   Timer timer{loop, [](Timer& t) { ... }};               a captureless lambda or a function
//   Timer timer{loop, [this] { on_tick(); }};              a lambda with one captured pointer
//   Timer timer{loop, bind<&Session::on_tick>(this)};      a method
// The callable may take (Watcher&, Events), (Watcher&), (Events) or nothing. The objects it points
// to must outlive the watcher.
//
// A callback must not throw: an exception prints a line to stderr that names the callback, and ends
// the program by std::terminate(), in every build. Only the handlers of an http::Server may throw.
// Threads: any, one at a time for each object.
#pragma once

#include <cstring>
#include <new>
#include <type_traits>

#include "spate/invoke.h"
#include "spate/layer/node.h"

namespace spate {

template <class F>
concept FitsDelegate = std::is_trivially_copyable_v<F> && std::is_trivially_destructible_v<F> &&
                       sizeof(F) <= sizeof(void*) && alignof(F) <= alignof(void*);

template <class W>
class Delegate {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, Delegate>)
  Delegate(F callable) : thunk_(&call<F>) {
    static_assert(FitsDelegate<F>,
                  "a delegate owns nothing: capture one pointer or reference, or use spate::bind");
    std::memcpy(&context_, &callable, sizeof(F));
  }

  Node::Callback thunk() const { return thunk_; }
  void* context() const { return context_; }

 private:
  template <class F>
  static void call(void* context, Node& node, Events events) {
    alignas(void*) std::byte storage[sizeof(void*)];
    std::memcpy(storage, &context, sizeof(context));
    F& callable = *std::launder(reinterpret_cast<F*>(storage));
    W& watcher = W::from(node);
    if constexpr (requires { watcher.before_call(events); }) watcher.before_call(events);
    if constexpr (std::is_invocable_v<F&, W&, Events>) {
      invoke_callable(callable, watcher, events);
    } else if constexpr (std::is_invocable_v<F&, W&>) {
      invoke_callable(callable, watcher);
    } else if constexpr (std::is_invocable_v<F&, Events>) {
      invoke_callable(callable, events);
    } else {
      static_assert(std::is_invocable_v<F&>,
                    "the callable takes (Watcher&, Events), (Watcher&), (Events) or nothing");
      invoke_callable(callable);
    }
  }

  Node::Callback thunk_;
  void* context_ = nullptr;
};

// A method bound to an object. Has the size of a pointer.
template <auto Method, class T>
struct Bound {
  T* object;

  template <class... Args>
    requires std::is_invocable_v<decltype(Method), T&, Args...>
  void operator()(Args&&... args) const {
    invoke_callable(Method, *object, static_cast<Args&&>(args)...);
  }
};

// Returns a callable for a Delegate. `object` must outlive the watcher that receives it.
template <auto Method, class T>
constexpr Bound<Method, T> bind(T* object) {
  return {object};
}

}  // namespace spate
