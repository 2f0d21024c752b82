// until_stop(): waits for an operation, or for Scope::stop(), whichever is first.
//
//   Result<Bytes> some = co_await coro::until_stop(stream.read_some());
//
// Gives ECANCELED if the scope of the task is stopping; else what the operation gives, as a Result
// if it is none: Result<std::optional<T>> of a Channel's receive(). An operation that is given up
// has lost nothing: what it would have taken is still there. Threads: the loop's thread only.
#pragma once

#include <system_error>

#include "spate/coro/held.h"
#include "spate/coro/scope.h"

namespace spate::coro {

// Where a task waits that Scope::stop() wakes.
class SPATE_EXPORT StopPoint {
 public:
  StopPoint(const StopPoint&) = delete;
  StopPoint& operator=(const StopPoint&) = delete;

 protected:
  using GiveUp = bool (*)(StopPoint& self);  // False: not now, as its chain runs.

  explicit StopPoint(GiveUp give_up) : give_up_(give_up) {}
  ~StopPoint() { disarm(); }

  void arm(Scope& scope);
  void disarm();

 private:
  friend class Scope;

  GiveUp give_up_;
  Scope* scope_ = nullptr;
  StopPoint* next_ = nullptr;
  StopPoint* previous_ = nullptr;
};

template <class Op>
class UntilStop : public Operation<UntilStop<Op>>, StopPoint, Chooser {
 public:
  explicit UntilStop(Op& operation) : StopPoint(give_up), Chooser(choose), operation_(operation) {}
  // Before the place goes at which the operation waits.
  ~UntilStop() {
    if (then_) cancel();
  }

  bool await_ready() { return operation_->await_ready(); }
  bool start(Promise& chain, Then then) {
    is_stopped_ = chain.scope().is_stopping();
    if (is_stopped_) return false;
    then_ = then;
    awaiting = &chain;
    if (!operation_->start(chain, Then(*static_cast<Chooser*>(this)))) {
      then_ = Then();
      return false;
    }
    if (chain.is_doomed()) return true;  // Meanwhile.
    arm(chain.scope());
    if (chain.scope().is_stopping()) give_up(*this);
    return true;
  }
  void cancel() {
    disarm();
    operation_->cancel();
    std::exchange(then_, Then()).leave();
  }
  AsResult<Given<Op>> await_resume() {
    if (is_stopped_) {
      return std::unexpected(std::make_error_code(std::errc::operation_canceled));
    }
    if constexpr (std::is_void_v<Given<Op>>) {
      operation_->await_resume();
      return {};
    } else {
      return operation_->await_resume();
    }
  }

 private:
  static Promise* choose(Chooser& chooser) {
    auto& self = static_cast<UntilStop&>(chooser);
    self.disarm();
    return std::exchange(self.then_, Then()).choose();
  }
  static bool give_up(StopPoint& point) {
    auto& self = static_cast<UntilStop&>(point);
    if (self.awaiting->is_busy()) return false;
    self.disarm();
    self.operation_->cancel();
    self.is_stopped_ = true;
    self.then_.wake();
    return true;
  }

  Held<Op> operation_;
  Then then_;
  bool is_stopped_ = false;
};

template <class Op>
auto until_stop(Op&& operation) {
  return UntilStop<std::remove_reference_t<Op>>(operation);
}

}  // namespace spate::coro
