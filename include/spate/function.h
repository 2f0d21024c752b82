// Function: owns a callable and calls it, as std::move_only_function does.
//
//   Function<void()> done = [buffer = std::move(buffer)] { ... };  captures may be move-only
//   Function<int(int) const> twice = [](int n) { return 2 * n; };  calls the callable as a constant
//
// The type is spate's own because not every standard library has std::move_only_function. So a
// program that is compiled with libc++ gets the same type, with the same size and behaviour.
//
// Ownership: a Function owns its callable. A callable of at most three words whose move does not
// throw is stored in the Function, and any other on the heap. A Function's move never throws.
//
// An empty Function has no callable. It is made from nullptr, from a null pointer, or from an empty
// function wrapper (another Function, std::function). Calling it is a mistake of the caller.
//
// Threads: any, one at a time for each object.
//
// Inside a call: everything is allowed. A callable whose Function is destroyed or assigned
// meanwhile is destroyed, and must not use its captures afterwards. An assignment destroys it last:
// the destructor sees the Function with its new callable.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "spate/assert.h"
#include "spate/invoke.h"

namespace spate {

template <class Signature>
class Function;

// Whether a callable of this type may be null: a pointer, or a wrapper of one signature.
template <class F>
inline constexpr bool kMayBeNull = std::is_pointer_v<F> || std::is_member_pointer_v<F>;
template <template <class...> class Wrapper, class Signature>
  requires std::is_function_v<Signature>
inline constexpr bool kMayBeNull<Wrapper<Signature>> =
    requires(const Wrapper<Signature>& wrapper) { wrapper == nullptr; };

// A parameter that two registers hold is passed in them, as in a direct call.
template <class T>
concept FitsRegisters =
    std::is_object_v<T> && std::is_trivially_copyable_v<T> && sizeof(T) <= 2 * sizeof(void*);
template <class T>
struct Passed {
  using Type = T&&;
};
template <FitsRegisters T>
struct Passed<T> {
  using Type = T;
};

// The part of a Function that does not depend on the signature: stores the callable and moves it.
class FunctionTarget {
 public:
  // Whether a callable is stored inside.
  template <class F>
  static constexpr bool kFits = sizeof(F) <= 3 * sizeof(void*) && alignof(F) <= alignof(void*) &&
                                std::is_nothrow_move_constructible_v<F>;

  FunctionTarget() noexcept : room_{}, manage_(nullptr), invoke_(nullptr) {}
  FunctionTarget(FunctionTarget&& other) noexcept { take(other); }
  ~FunctionTarget() {
    if (manage_ != nullptr) manage_(*this, nullptr);
  }

  bool is_empty() const { return invoke_ == nullptr; }

  // Stores a callable. The target must be empty.
  template <class F, class Invoke, class From>
  void store(Invoke* invoke, From&& from) {
    if constexpr (kFits<F>) {
      ::new (static_cast<void*>(room_.bytes)) F(std::forward<From>(from));
    } else {
      ::new (static_cast<void*>(room_.bytes)) F*(new F(std::forward<From>(from)));
    }
    if constexpr (!kFits<F> || !std::is_trivially_copyable_v<F>) manage_ = &manage<F>;
    invoke_ = reinterpret_cast<AnyFunction*>(invoke);
  }
  // Moves the callable of `other` here. The target must be empty.
  void take(FunctionTarget& other) noexcept {
    if (other.manage_ != nullptr) {
      other.manage_(other, this);
    } else {
      room_ = other.room_;
      manage_ = nullptr;
      invoke_ = std::exchange(other.invoke_, nullptr);
    }
  }
  // Moves the callable of `other` here, and then destroys the old one.
  void replace(FunctionTarget& other) noexcept {
    if (manage_ != nullptr) {
      replace_managed(other);
    } else {
      take(other);
    }
  }

  template <class F>
  F& callable() {
    if constexpr (kFits<F>) {
      return *std::launder(reinterpret_cast<F*>(room_.bytes));
    } else {
      return **std::launder(reinterpret_cast<F**>(room_.bytes));
    }
  }
  template <class Invoke>
  Invoke* invoker() const {
    return reinterpret_cast<Invoke*>(invoke_);
  }

 private:
  struct Room {
    alignas(void*) std::byte bytes[3 * sizeof(void*)];
  };
  using AnyFunction = void();
  // Moves the callable of `from` to `to`, or destroys it if `to` is null.
  using Manage = void(FunctionTarget& from, FunctionTarget* to) noexcept;

  template <class F>
  static void manage(FunctionTarget& from, FunctionTarget* to) noexcept {
    F& callable = from.callable<F>();
    if constexpr (kFits<F>) {
      if (to != nullptr) ::new (static_cast<void*>(to->room_.bytes)) F(std::move(callable));
      callable.~F();
    } else if (to != nullptr) {
      to->room_ = from.room_;
    } else {
      delete &callable;
    }
    if (to != nullptr) {
      to->manage_ = std::exchange(from.manage_, nullptr);
      to->invoke_ = std::exchange(from.invoke_, nullptr);
    }
  }
  [[gnu::noinline]] void replace_managed(FunctionTarget& other) noexcept {
    FunctionTarget incoming(std::move(other));  // First, because the old callable may own `other`.
    const FunctionTarget old(std::move(*this));
    take(incoming);
  }

  Room room_;
  Manage* manage_;       // Null if the bytes can be copied and dropped.
  AnyFunction* invoke_;  // Null if there is no callable. Its type needs complete parameters.
};

// Calls a stored callable. It is instantiated by the first call or callable, not by the Function.
template <class R, class... Args>
struct FunctionInvoker {
  using Type = R(FunctionTarget& target, typename Passed<Args>::Type... args);

  template <class F>
  static R invoke(FunctionTarget& target, typename Passed<Args>::Type... args) {
    F& callable = target.callable<std::remove_const_t<F>>();
    if constexpr (std::is_void_v<R>) {
      invoke_callable(callable, std::forward<Args>(args)...);
    } else {
      return invoke_callable(callable, std::forward<Args>(args)...);
    }
  }
};

// The call operator of a Function.
template <class Signature>
class FunctionCall;

template <class R, class... Args>
class FunctionCall<R(Args...)> : protected FunctionTarget {
 public:
  R operator()(Args... args) {
    SPATE_ASSERT(!is_empty(), "only a Function that has a callable may be called");
    using Invoke = typename FunctionInvoker<R, Args...>::Type;
    return invoker<Invoke>()(*this, std::forward<Args>(args)...);
  }

 protected:
  template <class F>
  static constexpr bool kCalls = std::is_invocable_r_v<R, F&, Args...>;
  template <class F>
  static auto* invoke_of() {
    return &FunctionInvoker<R, Args...>::template invoke<F>;
  }
};

template <class R, class... Args>
class FunctionCall<R(Args...) const> : protected FunctionTarget {
 public:
  R operator()(Args... args) const {
    SPATE_ASSERT(!is_empty(), "only a Function that has a callable may be called");
    using Invoke = typename FunctionInvoker<R, Args...>::Type;
    return invoker<Invoke>()(const_cast<FunctionCall&>(*this), std::forward<Args>(args)...);
  }

 protected:
  template <class F>
  static constexpr bool kCalls = std::is_invocable_r_v<R, const F&, Args...>;
  template <class F>
  static auto* invoke_of() {
    return &FunctionInvoker<R, Args...>::template invoke<const F>;
  }
};

template <class Signature>
class Function : public FunctionCall<Signature> {
  using Call = FunctionCall<Signature>;

 public:
  Function() = default;
  Function(std::nullptr_t) noexcept {}
  Function(Function&& other) noexcept = default;
  // Takes a callable, or copies it. Throws what its constructor and operator new throw.
  template <class From, class F = std::decay_t<From>>
    requires(!std::is_same_v<F, Function>) && (Call::template kCalls<F>)
  Function(From&& callable) noexcept(Call::template kFits<F> &&
                                     std::is_nothrow_constructible_v<F, From>) {
    if constexpr (kMayBeNull<F>) {
      const F& wrapper = callable;
      if (wrapper == nullptr) return;
    }
    this->template store<F>(Call::template invoke_of<F>(), std::forward<From>(callable));
  }

  Function& operator=(Function&& other) noexcept {
    this->replace(other);
    return *this;
  }
  Function& operator=(std::nullptr_t) noexcept {
    const Function old(std::move(*this));
    return *this;
  }
  template <class From>
    requires std::is_constructible_v<Function, From>
  Function& operator=(From&& callable) noexcept(std::is_nothrow_constructible_v<Function, From>) {
    Function incoming(std::forward<From>(callable));
    this->replace(incoming);
    return *this;
  }

  explicit operator bool() const noexcept { return !this->is_empty(); }
  friend bool operator==(const Function& function, std::nullptr_t) noexcept {
    return function.is_empty();
  }

  void swap(Function& other) noexcept {
    Function held(std::move(other));
    other.take(*this);
    this->take(held);
  }
  friend void swap(Function& one, Function& other) noexcept { one.swap(other); }
};

}  // namespace spate
