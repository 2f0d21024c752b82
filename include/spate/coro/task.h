// Task: work that waits. A coroutine that returns one does nothing until it is awaited or spawned
// (scope.h).
//
//   coro::Task<int> count(coro::Stream& stream) {
//     int bytes = 0;
//     for (;;) {
//       Result<Bytes> some = co_await stream.read_some();
//       if (!some || some->empty()) co_return bytes;
//       bytes += some->size();
//     }
//   }
//
// Ownership: whoever holds the Task owns its frame. Destroying it cancels: what it waits for is
// given up, its locals are destroyed, innermost call first, and nothing of it runs any more; if it
// runs just now, when it next waits.
// Threads: one loop's, from the first await to the end.
// Errors are values: a task that can fail gives Result<T>, and or_return() (or_return.h) hands an
// error on. An exception is thrown again where the task is awaited; out of a spawned one it ends
// the program. When memory for its frame runs out the Task is empty: awaiting it gives ENOMEM if
// its result is a Result, else that is asserted.
//
// Write co_await as a statement, behind `=` or `return`, or in `T name(co_await ...)`: g++ 12 is
// wrong about much else (docs/guide/coroutine-compilers.md; tools/coro_lint.py finds it).
#pragma once

#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "spate/coro/chain.h"
#include "spate/error.h"

namespace spate::coro {

template <class T>
class Task;

template <class T>
inline constexpr bool kIsResult = false;
template <class T>
inline constexpr bool kIsResult<Result<T>> = true;

// What can fail, and gives a T if it does not.
template <class T>
using AsResult = std::conditional_t<kIsResult<T>, T, Result<T>>;

// A promise with its result.
template <class T>
class TaskPromise : public Promise {
 public:
  Task<T> get_return_object() noexcept { return Task<T>(this); }
  static Task<T> get_return_object_on_allocation_failure() noexcept { return Task<T>(nullptr); }

  template <class U = T>
    requires std::is_convertible_v<U&&, T>
  void return_value(U&& value) {
    result_.emplace(std::forward<U>(value));
  }
  // Ends it with an error, in place of what it would have returned.
  void fail(std::error_code error)
    requires kIsResult<T>
  {
    result_.emplace(std::unexpected(error));
    end();
  }
  T take() {
    rethrow();
    return std::move(*result_);
  }
  std::error_code error() const
    requires kIsResult<T>
  {
    return result_ && !*result_ ? result_->error() : std::error_code();
  }

 private:
  std::optional<T> result_;
};

template <>
class TaskPromise<void> : public Promise {
 public:
  inline Task<void> get_return_object() noexcept;
  static inline Task<void> get_return_object_on_allocation_failure() noexcept;
  void return_void() noexcept {}
  void take() { rethrow(); }
};

template <class T = void>
class [[nodiscard("a Task that nobody awaits does nothing")]] Task {
 public:
  using promise_type = TaskPromise<T>;
  class Awaiter;

  Task(Task&& other) noexcept : promise_(std::exchange(other.promise_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      destroy();
      promise_ = std::exchange(other.promise_, nullptr);
    }
    return *this;
  }
  ~Task() { destroy(); }

  // Once.
  Awaiter operator co_await() && { return Awaiter(release()); }
  // False if memory has run out, or it was moved away, or awaited.
  explicit operator bool() const { return promise_ != nullptr; }

  // For those who run tasks. Whoever takes the promise destroys its frame.
  promise_type* release() { return std::exchange(promise_, nullptr); }

 private:
  friend promise_type;
  explicit Task(promise_type* promise) : promise_(promise) {}
  void destroy() {
    if (promise_ != nullptr) promise_->handle().destroy();
  }

  promise_type* promise_;
};

inline Task<void> TaskPromise<void>::get_return_object() noexcept { return Task<void>(this); }
inline Task<void> TaskPromise<void>::get_return_object_on_allocation_failure() noexcept {
  return Task<void>(nullptr);
}

// A task that is awaited: the frame is its own, and goes with its result.
template <class T>
class Task<T>::Awaiter : public Operation<Awaiter> {
 public:
  explicit Awaiter(promise_type* promise) : promise_(promise) {
    static_assert(alignof(promise_type) <= 16, "no compiler aligns frames to more");
  }
  ~Awaiter() { cancel(); }

  bool await_ready() const { return promise_ == nullptr; }
  bool start(Promise& chain, Then then) {
    if (!promise_->start(chain)) return false;
    promise_->then(then);
    return true;
  }
  void cancel() {
    if (promise_ != nullptr) std::exchange(promise_, nullptr)->handle().destroy();
  }
  // Of one that has ended, before its result is taken.
  std::error_code error() const
    requires kIsResult<T>
  {
    if (promise_ == nullptr) return std::make_error_code(std::errc::not_enough_memory);
    return promise_->error();
  }
  T await_resume() {
    if constexpr (kIsResult<T>) {
      if (promise_ == nullptr)
        return std::unexpected(make_error_code(std::errc::not_enough_memory));
    }
    SPATE_ASSERT(promise_ != nullptr, "an empty Task was awaited: memory ran out, or it was moved");
    if constexpr (std::is_void_v<T>) {
      promise_->take();
      leave();
    } else {
      T result = promise_->take();
      leave();
      return result;
    }
  }

 private:
  // Its frame is gone before the next statement. It forgets it last, where the compiler sees that
  // the destructor has nothing to do.
  void leave() {
    promise_->handle().destroy();
    promise_ = nullptr;
  }

  promise_type* promise_;
};

}  // namespace spate::coro
