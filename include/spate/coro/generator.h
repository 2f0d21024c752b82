// Generator: a coroutine that produces a sequence of values, each on request. It may wait in
// between.
//
//   coro::Generator<Result<std::string>> lines_of(coro::Stream* stream) {
//     for (;;) {
//       const Bytes line = co_await coro::or_return(stream->read(Delimiter{}));
//       co_yield std::string(text_of(line));
//     }
//   }
//   ...
//   coro::Generator<Result<std::string>> lines = lines_of(&stream);
//   for (;;) {
//     const Result<std::optional<std::string>> line = co_await lines.next();
//     if (!line || !*line) break;
//     ...
//   }
//
// Results: next() of a Generator<T> returns std::optional<T>: nullopt once the coroutine has
// returned. next() of a Generator<Result<T>> returns Result<std::optional<T>>. It passes on errors
// that the coroutine yields, or ends with by or_return(); the latter is its last result.
// Ownership: the Generator owns its frame. Destroying it cancels the coroutine, as with a Task.
// Cancelling a next() that waits also ends the Generator, because the coroutine itself is waiting.
// To continue after a time limit, put the limit into the coroutine, or use a task that sends into a
// Channel (channel.h), which loses nothing.
// A Generator may move, and several tasks may use it in turn, but only one at a time. It must
// neither move nor be destroyed while a task waits for it.
// Threads: one loop's, from the first next() to the end.
// Exceptions and scarce memory: as for a Task (task.h), at next().
// Compilers: write co_yield as a separate statement, with a named value or a constructor call. g++
// 12 destroys the operands of `co_yield c ? a : b`, and of `co_yield Line{text}` if Line is an
// aggregate, twice (docs/guide/coroutine-compilers.md).
#pragma once

#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "spate/coro/task.h"

namespace spate::coro {

template <class T>
class Generator;

// The result of next().
template <class T>
struct Generated {
  using Value = T;
  using Outcome = std::optional<T>;
  static Outcome of(std::optional<T> value) { return value; }
};
template <class T>
struct Generated<Result<T>> {
  using Value = T;
  using Outcome = Result<std::optional<T>>;
  static Outcome of(std::optional<Result<T>> value) {
    if (!value) return std::optional<T>();
    if (!*value) return std::unexpected(value->error());
    return std::optional<T>(*std::move(*value));
  }
};

// A promise with the value of the next co_yield.
template <class T>
class GeneratorPromise : public Promise {
 public:
  Generator<T> get_return_object() noexcept { return Generator<T>(this); }
  static Generator<T> get_return_object_on_allocation_failure() noexcept {
    return Generator<T>(nullptr);
  }

  template <class U>
    requires std::is_convertible_v<U&&, T>
  auto yield_value(U&& value) {
    value_.emplace(std::forward<U>(value));
    return Ending();  // Suspends until the next value is requested.
  }
  void return_void() noexcept {}
  // Ends the coroutine with an error.
  void fail(std::error_code error)
    requires kIsResult<T>
  {
    value_.emplace(std::unexpected(error));
    has_failed_ = true;
    end();
  }
  bool is_over() { return has_failed_ || handle().done(); }
  std::optional<T> take() {
    rethrow();
    std::optional<T> value = std::move(value_);
    value_.reset();
    return value;
  }

 private:
  std::optional<T> value_;
  bool has_failed_ = false;
};

template <class T>
class [[nodiscard("a discarded Generator does nothing")]] Generator {
 public:
  using promise_type = GeneratorPromise<T>;
  using Outcome = typename Generated<T>::Outcome;
  class Next;

  Generator(Generator&& other) noexcept
      : promise_(other.release()), lacks_memory_(other.lacks_memory_) {}
  Generator& operator=(Generator&& other) noexcept {
    Generator moved(std::move(other));
    std::swap(promise_, moved.promise_);
    std::swap(lacks_memory_, moved.lacks_memory_);
    std::swap(is_awaited_, moved.is_awaited_);  // Its destructor asserts that no task waits.
    return *this;
  }
  ~Generator() { destroy(); }

  // co_await: resumes the coroutine, and returns its next value.
  Next next() { return Next(*this); }
  // False if it has ended, was cancelled or moved from, or if memory ran out.
  explicit operator bool() const { return promise_ != nullptr && !promise_->is_over(); }

 private:
  friend promise_type;

  explicit Generator(promise_type* promise)
      : promise_(promise), lacks_memory_(promise == nullptr) {}
  promise_type* release() {
    SPATE_ASSERT(!is_awaited_, "a task waits for this Generator");
    return std::exchange(promise_, nullptr);
  }
  void destroy() {
    promise_type* const promise = release();
    if (promise != nullptr) promise->handle().destroy();
  }
  Outcome take() {
    Outcome outcome = Generated<T>::of(promise_->take());
    if (promise_->is_over()) destroy();
    return outcome;
  }

  promise_type* promise_;
  bool lacks_memory_;  // Memory ran out.
  bool is_awaited_ = false;
};

// The awaitable of next().
template <class T>
class Generator<T>::Next : public Operation<Next> {
 public:
  explicit Next(Generator& generator) : generator_(generator) {}
  ~Next() { cancel(); }

  bool await_ready() const { return !generator_; }
  bool start(Promise& fiber, Continuation continuation) {
    SPATE_ASSERT(!generator_.is_awaited_, "one task at a time may use a Generator");
    generator_.is_awaited_ = is_waiting_ = true;
    promise_type& promise = *generator_.promise_;
    promise.start_again();
    if (!promise.start(fiber)) return false;
    promise.set_continuation(continuation);
    return true;
  }
  void cancel() {
    if (!is_waiting_) return;
    stop_waiting();
    generator_.destroy();
  }
  Outcome await_resume() {
    if (is_waiting_) {
      stop_waiting();
      return generator_.take();
    }
    if constexpr (kIsResult<T>) {
      if (generator_.lacks_memory_)
        return std::unexpected(make_error_code(std::errc::not_enough_memory));
    }
    SPATE_ASSERT(!generator_.lacks_memory_, "next() of an empty Generator: memory ran out");
    return std::optional<Value>();
  }

 private:
  using Value = typename Generated<T>::Value;

  void stop_waiting() { generator_.is_awaited_ = is_waiting_ = false; }

  Generator& generator_;
  bool is_waiting_ = false;
};

}  // namespace spate::coro
