// Generator: values that a coroutine makes one after the other, each when it is asked for. It may
// wait in between.
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
// A Generator<T> gives std::optional<T>: none when the coroutine has returned, and ever after. A
// Generator<Result<T>> gives Result<std::optional<T>>: an error, co_yielded or or_return()'s, is
// passed on; or_return()'s is the last.
// Ownership: whoever holds the Generator owns its frame. Destroying it cancels, as of a Task; so
// does giving up a next() that waits, as it waits where the coroutine does: after that it is over.
// Who wants to go on after a time limit has the limit in the coroutine, or a task that sends into a
// Channel (channel.h), which loses nothing.
// It may move, and be asked by one task after the other, but by one at a time, and it neither moves
// nor goes while somebody waits for it.
// Threads: one loop's, from the first next() to the end.
// Exceptions and scarce memory: as of a Task (task.h), at next().
// Write co_yield as a statement, and of what has a name or a constructor: `co_yield c ? a : b` and
// `co_yield Line{text}` are destroyed twice by g++ 12 (docs/guide/coroutine-compilers.md).
#pragma once

#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "spate/coro/task.h"

namespace spate::coro {

template <class T>
class Generator;

// What one is asked for gives.
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

// A promise with the value that it gives next.
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
    return Ending();  // Of this part of it.
  }
  void return_void() noexcept {}
  // Ends it with an error, in place of all that it would have given.
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
class [[nodiscard("a Generator that nobody asks does nothing")]] Generator {
 public:
  using promise_type = GeneratorPromise<T>;
  using Outcome = typename Generated<T>::Outcome;
  class Next;

  Generator(Generator&& other) noexcept
      : promise_(other.release()), is_missing_(other.is_missing_) {}
  Generator& operator=(Generator&& other) noexcept {
    if (this != &other) {
      destroy();
      promise_ = other.release();
      is_missing_ = other.is_missing_;
    }
    return *this;
  }
  ~Generator() { destroy(); }

  // co_await: the next value, for which the coroutine runs on.
  Next next() { return Next(*this); }
  // False if it is over: it has given all, was given up, or moved away; or memory has run out.
  explicit operator bool() const { return promise_ != nullptr && !promise_->is_over(); }

 private:
  friend promise_type;

  explicit Generator(promise_type* promise) : promise_(promise), is_missing_(promise == nullptr) {}
  promise_type* release() {
    SPATE_ASSERT(!is_asked_, "somebody waits for this Generator");
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
  bool is_missing_;  // There was no memory.
  bool is_asked_ = false;
};

// What next() gives to co_await.
template <class T>
class Generator<T>::Next : public Operation<Next> {
 public:
  explicit Next(Generator& generator) : generator_(generator) {}
  ~Next() { cancel(); }

  bool await_ready() const { return !generator_; }
  bool start(Promise& chain, Then then) {
    SPATE_ASSERT(!generator_.is_asked_, "one asks a Generator at a time");
    generator_.is_asked_ = is_asking_ = true;
    promise_type& promise = *generator_.promise_;
    promise.start_again();
    if (!promise.start(chain)) return false;
    promise.then(then);
    return true;
  }
  void cancel() {
    if (!is_asking_) return;
    stop_asking();
    generator_.destroy();
  }
  Outcome await_resume() {
    if (is_asking_) {
      stop_asking();
      return generator_.take();
    }
    if constexpr (kIsResult<T>) {
      if (generator_.is_missing_)
        return std::unexpected(make_error_code(std::errc::not_enough_memory));
    }
    SPATE_ASSERT(!generator_.is_missing_, "an empty Generator was asked: memory ran out");
    return std::optional<Value>();
  }

 private:
  using Value = typename Generated<T>::Value;

  void stop_asking() { generator_.is_asked_ = is_asking_ = false; }

  Generator& generator_;
  bool is_asking_ = false;
};

}  // namespace spate::coro
