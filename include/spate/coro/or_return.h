// or_return(): the value of an operation that can fail; an error ends the coroutine with it.
//
//   coro::Task<Result<Reply>> ask(Loop& loop, const Address& address, Bytes question) {
//     coro::Stream peer(co_await coro::or_return(coro::connect(address)));
//     co_await coro::or_return(peer.send(question));
//     Bytes answer = co_await coro::or_return(peer.read(LengthField{}));
//     co_return parse(answer);
//   }
//
// The coroutine's own result must be a Result, too: it gets the error, whoever awaits the coroutine
// goes on, and its locals are destroyed, as by a return.
// Threads: the loop's thread only.
#pragma once

#include <optional>
#include <system_error>

#include "spate/coro/held.h"

namespace spate::coro {

template <class Op>
class OrReturn : Chooser {
 public:
  using Outcome = Given<Op>;
  static_assert(kIsResult<Outcome>, "or_return() is for what gives a Result");

  explicit OrReturn(Op& operation) : Chooser(choose), operation_(operation) {}
  OrReturn(const OrReturn&) = delete;
  OrReturn& operator=(const OrReturn&) = delete;
  // Before the place goes at which the operation waits.
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
        "or_return() ends the task with an error: let the task give a Result");
    P& promise = handle.promise();
    awaiting = &promise;
    fail_ = [](Promise& self, std::error_code error) { static_cast<P&>(self).fail(error); };
    if (promise.chain().is_doomed()) return true;
    if (!outcome_) {
      if (operation_->start(promise.chain(), Then(*static_cast<Chooser*>(this)))) return true;
      outcome_.emplace(operation_->await_resume());
    }
    if (outcome_->has_value()) return false;
    fail_(promise, outcome_->error());
    return true;  // Never resumed.
  }
  typename Outcome::value_type await_resume() {
    if constexpr (!std::is_void_v<typename Outcome::value_type>) return std::move(**outcome_);
  }

 private:
  static Promise* choose(Chooser& chooser) {
    auto& self = static_cast<OrReturn&>(chooser);
    self.outcome_.emplace(self.operation_->await_resume());
    if (!self.outcome_->has_value()) self.fail_(*self.awaiting, self.outcome_->error());
    return self.awaiting;
  }

  Held<Op> operation_;
  void (*fail_)(Promise& promise, std::error_code error) = nullptr;
  std::optional<Outcome> outcome_;
};

template <class Op>
auto or_return(Op&& operation) {
  return OrReturn<std::remove_reference_t<Op>>(operation);
}

}  // namespace spate::coro
