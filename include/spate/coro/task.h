// Task: an asynchronous function. A coroutine that returns a Task does nothing until it is awaited
// or spawned (scope.h).
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
// Ownership: the Task owns its frame. Destroying it cancels the coroutine: its wait is abandoned,
// its locals are destroyed, innermost call first, and no further code of it runs. If it is running,
// this happens when it next waits.
// Threads: one loop's, from the first await to the end.
// Errors: errors are values. A task that can fail returns Result<T>, and or_return() (or_return.h)
// passes an error on. An exception is rethrown where the task is awaited. From a spawned task it
// ends the program, unless coro::handler() spawned it. Without memory for the frame the Task is
// empty: awaiting it returns ENOMEM if its result is a Result, and asserts otherwise.
//
// Compilers: write co_await as a statement, after `=` or `return`, or in `T name(co_await ...)`.
// g++ 12 miscompiles many other uses (docs/guide/coroutine-compilers.md; tools/coro_lint.py finds
// them).
#pragma once

#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "spate/coro/extend/fiber.h"
#include "spate/error.h"

namespace spate::coro {

template <class T>
class Task;

template <class T>
inline constexpr bool kIsResult = false;
template <class T>
inline constexpr bool kIsResult<Result<T>> = true;

// T as a Result, unless it is one already.
template <class T>
using AsResult = std::conditional_t<kIsResult<T>, T, Result<T>>;

// A promise with the task's result.
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
  // Ends the coroutine with an error instead of a return value.
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
class [[nodiscard("a Task that is not awaited does nothing")]] Task {
 public:
  using promise_type = TaskPromise<T>;
  class Awaiter;

  Task(Task&& other) noexcept : promise_(std::exchange(other.promise_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    Task moved(std::move(other));
    std::swap(promise_, moved.promise_);
    return *this;
  }
  ~Task() { destroy(); }

  // co_await: runs the task and returns its result. Once per task.
  Awaiter operator co_await() && { return Awaiter(release()); }
  // False if memory ran out, or after the task was moved from or awaited.
  explicit operator bool() const { return promise_ != nullptr; }

  // Releases the promise to code that runs tasks, which must destroy its frame.
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

// An awaited task. It owns the frame, and destroys it when the result is taken.
template <class T>
class Task<T>::Awaiter : public Operation<Awaiter> {
 public:
  explicit Awaiter(promise_type* promise) : promise_(promise) {
    static_assert(alignof(promise_type) <= 16, "compilers align frames to 16 bytes at most");
  }
  ~Awaiter() { cancel(); }

  bool await_ready() const { return promise_ == nullptr; }
  bool start(Promise& fiber, Continuation continuation) {
    if (!promise_->start(fiber)) return false;
    promise_->set_continuation(continuation);
    return true;
  }
  void cancel() {
    if (promise_ != nullptr) std::exchange(promise_, nullptr)->handle().destroy();
  }
  // Returns the error of the result. Valid after the task has ended, before its result is taken.
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
      destroy_frame();
    } else {
      T result = promise_->take();
      destroy_frame();
      return result;
    }
  }

 private:
  // Destroys the frame before the next statement. promise_ is cleared last, so that the compiler
  // can see that the destructor has nothing to do.
  void destroy_frame() {
    promise_->handle().destroy();
    promise_ = nullptr;
  }

  promise_type* promise_;
};

}  // namespace spate::coro
