// CallbackAwaiter: makes an awaitable from a function that takes a callback. connect(), resolve()
// and offload() are made with it. A program's own functions can be wrapped likewise:
//
//   auto ask(Database& database, std::string_view question) {
//     return coro::CallbackAwaiter<Result<Row>>::of(
//         [&database, question](Loop&, auto reply) { return database.ask(question, reply); });
//   }
//   ...
//   const Result<Row> row = co_await ask(database, "who");
//
// The function is called once, by co_await, with the loop and the callback. It returns a handle of
// the operation. A cancelled wait destroys the handle, after which the callback must not be called.
// If the function returns a Result<Handle>, its error becomes the result of co_await. The callback
// takes a T, or nothing for Result<void>, and has the size of a pointer. It must be called on the
// loop's thread.
// Objects that the function refers to must live until the end of the co_await statement.
// Threads: the loop's thread only.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "spate/coro/scope.h"

namespace spate::coro {

template <class T, class Begin = void>
class CallbackAwaiter;

// Deduces the type of the function.
template <class T>
class CallbackAwaiter<T, void> {
 public:
  template <class Begin>
  static CallbackAwaiter<T, Begin> of(Begin begin) {
    return CallbackAwaiter<T, Begin>(std::move(begin));
  }
};

template <class T, class Begin>
class CallbackAwaiter : public Operation<CallbackAwaiter<T, Begin>> {
 public:
  // The callback that the function receives.
  class Reply {
   public:
    explicit Reply(CallbackAwaiter& awaiter) : awaiter_(&awaiter) {}
    void operator()(T outcome) const { awaiter_->end(std::move(outcome)); }
    void operator()() const
      requires std::is_same_v<T, Result<void>>
    {
      awaiter_->end(T());
    }

   private:
    CallbackAwaiter* awaiter_;
  };

  explicit CallbackAwaiter(Begin begin) : begin_(std::move(begin)) {}
  ~CallbackAwaiter() { cancel(); }

  bool await_ready() const { return false; }
  bool start(Promise& fiber, Continuation continuation) {
    continuation_ = continuation;
    auto begun = begin_(fiber.loop(), Reply(*this));
    if constexpr (kIsResult<Begun>) {
      if (!begun) {
        continuation_ = Continuation();
        outcome_.emplace(std::unexpected(begun.error()));
        return false;
      }
      handle_.emplace(*std::move(begun));
    } else {
      handle_.emplace(std::move(begun));
    }
    return true;
  }
  void cancel() {
    continuation_.cancel();
    handle_.reset();
  }
  T await_resume() { return *std::move(outcome_); }

 private:
  using Begun = std::invoke_result_t<Begin&, Loop&, Reply>;
  template <class B>
  struct HandleOf {
    using Type = B;
  };
  template <class B>
  struct HandleOf<Result<B>> {
    using Type = B;
  };

  void end(T outcome) {
    outcome_.emplace(std::move(outcome));
    continuation_.resume();
  }

  Begin begin_;
  std::optional<typename HandleOf<Begun>::Type> handle_;
  std::optional<T> outcome_;
  Continuation continuation_;
};

}  // namespace spate::coro
