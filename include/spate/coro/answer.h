// Answer: an awaitable made of a function that takes a callback. connect(), resolve() and
// offload() are made of it; so can be what a program has of its own:
//
//   auto ask(Database& database, std::string_view question) {
//     return coro::Answer<Result<Row>>::of(
//         [&database, question](Loop&, auto reply) { return database.ask(question, reply); });
//   }
//   ...
//   const Result<Row> row = co_await ask(database, "who");
//
// The function is given the loop and the callback when somebody waits, once, and returns the
// handle of what it has begun, which is destroyed when the wait is given up: nobody is called back
// then. If it returns a Result<Handle>, its error is the answer. The callback takes a T, or nothing
// for Result<void>, and is a pointer large. It must be called on the loop's thread.
// What the function refers to has to last until the end of the statement that awaits.
// Threads: the loop's thread only.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "spate/coro/scope.h"

namespace spate::coro {

template <class T, class Ask = void>
class Answer;

// Finds out the type of the function.
template <class T>
class Answer<T, void> {
 public:
  template <class Ask>
  static Answer<T, Ask> of(Ask ask) {
    return Answer<T, Ask>(std::move(ask));
  }
};

template <class T, class Ask>
class Answer : public Operation<Answer<T, Ask>> {
 public:
  // The callback.
  class Reply {
   public:
    explicit Reply(Answer& answer) : answer_(&answer) {}
    void operator()(T outcome) const { answer_->end(std::move(outcome)); }
    void operator()() const
      requires std::is_same_v<T, Result<void>>
    {
      answer_->end(T());
    }

   private:
    Answer* answer_;
  };

  explicit Answer(Ask ask) : ask_(std::move(ask)) {}
  ~Answer() { cancel(); }

  bool await_ready() const { return false; }
  bool start(Promise& chain, Then then) {
    then_ = then;
    auto begun = ask_(chain.loop(), Reply(*this));
    if constexpr (kIsResult<Begun>) {
      if (!begun) {
        then_ = Then();
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
    then_.leave();
    handle_.reset();
  }
  T await_resume() { return *std::move(outcome_); }

 private:
  using Begun = std::invoke_result_t<Ask&, Loop&, Reply>;
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
    then_.go();
  }

  Ask ask_;
  std::optional<typename HandleOf<Begun>::Type> handle_;
  std::optional<T> outcome_;
  Then then_;
};

}  // namespace spate::coro
