// or_return(): returns the value of an operation that can fail, or ends the coroutine with its
// error.
//
//   coro::Task<Result<Reply>> ask(Loop& loop, const Address& address, Bytes question) {
//     coro::Stream peer(co_await coro::or_return(coro::connect(address)));
//     co_await coro::or_return(peer.send(question));
//     Bytes answer = co_await coro::or_return(peer.read(LengthField{}));
//     co_return parse(answer);
//   }
//
// The coroutine's own result must be a Result. On an error it becomes that error, the awaiting
// coroutine is resumed, and the locals are destroyed, as by a return.
// Threads: the loop's thread only.
#pragma once

#include <optional>
#include <system_error>

#include "spate/coro/extend/nested.h"

namespace spate::coro {

template <class Op>
class OrReturn : Selector {
 public:
  using Outcome = ResultOf<Op>;
  static_assert(kIsResult<Outcome>, "or_return() needs an operation that returns a Result");

  explicit OrReturn(Op& operation) : Selector(select), operation_(operation) {}
  OrReturn(const OrReturn&) = delete;
  OrReturn& operator=(const OrReturn&) = delete;
  // Cancels while the WaitNode at which the operation waits still exists.
  ~OrReturn() {
    if (awaiting != nullptr && !outcome_) operation_->cancel();
  }

  bool await_ready() {
    if (!operation_->await_ready()) return false;
    outcome_.emplace(operation_->await_resume());
    return outcome_->has_value();
  }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> handle) {
    static_assert(
        requires { handle.promise().fail(std::error_code()); },
        "or_return() ends the task with an error: let the task return a Result");
    P& promise = handle.promise();
    awaiting = &promise;
    fail_ = [](Promise& self, std::error_code error) { static_cast<P&>(self).fail(error); };
    if (promise.fiber().is_cancelled()) return true;
    if (!outcome_) {
      if (operation_->start(promise.fiber(), Continuation(*static_cast<Selector*>(this))))
        return true;
      outcome_.emplace(operation_->await_resume());
    }
    if (outcome_->has_value()) return false;
    fail_(promise, outcome_->error());
    return true;  // The coroutine has ended with the error.
  }
  typename Outcome::value_type await_resume() {
    if constexpr (!std::is_void_v<typename Outcome::value_type>) return std::move(**outcome_);
  }

 private:
  static Promise* select(Selector& selector) {
    auto& self = static_cast<OrReturn&>(selector);
    self.outcome_.emplace(self.operation_->await_resume());
    if (!self.outcome_->has_value()) self.fail_(*self.awaiting, self.outcome_->error());
    return self.awaiting;
  }

  Nested<Op> operation_;
  void (*fail_)(Promise& promise, std::error_code error) = nullptr;
  std::optional<Outcome> outcome_;
};

template <class Op>
auto or_return(Op&& operation) {
  return OrReturn<std::remove_reference_t<Op>>(operation);
}

}  // namespace spate::coro
