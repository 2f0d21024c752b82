// until_stop(): waits for an operation, or for Scope::stop(), whichever is first.
//
//   Result<Bytes> some = co_await coro::until_stop(stream.read_some());
//
// Returns ECANCELED if the scope of the task is stopping. Otherwise returns the result of the
// operation, wrapped in a Result if it is none: Result<std::optional<T>> for a Channel's receive().
// Cancelling loses no data: bytes and values stay where they are.
// Threads: the loop's thread only.
#pragma once

#include <system_error>

#include "spate/coro/extend/nested.h"
#include "spate/coro/scope.h"

namespace spate::coro {

// A wait that Scope::stop() ends.
class SPATE_EXPORT StopPoint {
 public:
  StopPoint(const StopPoint&) = delete;
  StopPoint& operator=(const StopPoint&) = delete;

 protected:
  using Trigger = bool (*)(StopPoint& self);  // Returns false if its fiber is running, so that it
                                              // must be called again later.

  explicit StopPoint(Trigger trigger) : trigger_(trigger) {}
  ~StopPoint() { disarm(); }

  void arm(Scope& scope);
  void disarm();

 private:
  friend class Scope;

  Trigger trigger_;
  Scope* scope_ = nullptr;
  StopPoint* next_ = nullptr;
  StopPoint* previous_ = nullptr;
};

template <class Op>
class UntilStop : public Operation<UntilStop<Op>>, StopPoint, Selector {
 public:
  explicit UntilStop(Op& operation) : StopPoint(trigger), Selector(select), operation_(operation) {}
  // Cancels while the WaitNode at which the operation waits still exists.
  ~UntilStop() {
    if (continuation_) cancel();
  }

  bool await_ready() { return operation_->await_ready(); }
  bool start(Promise& fiber, Continuation continuation) {
    is_stopped_ = fiber.scope().is_stopping();
    if (is_stopped_) return false;
    continuation_ = continuation;
    awaiting = &fiber;
    if (!operation_->start(fiber, Continuation(*static_cast<Selector*>(this)))) {
      continuation_ = Continuation();
      return false;
    }
    if (fiber.is_cancelled()) return true;  // start() ran code that cancelled the fiber.
    arm(fiber.scope());
    if (fiber.scope().is_stopping()) trigger(*this);
    return true;
  }
  void cancel() {
    disarm();
    operation_->cancel();
    std::exchange(continuation_, Continuation()).cancel();
  }
  AsResult<ResultOf<Op>> await_resume() {
    if (is_stopped_) {
      return std::unexpected(std::make_error_code(std::errc::operation_canceled));
    }
    if constexpr (std::is_void_v<ResultOf<Op>>) {
      operation_->await_resume();
      return {};
    } else {
      return operation_->await_resume();
    }
  }

 private:
  static Promise* select(Selector& selector) {
    auto& self = static_cast<UntilStop&>(selector);
    self.disarm();
    return std::exchange(self.continuation_, Continuation()).select();
  }
  static bool trigger(StopPoint& point) {
    auto& self = static_cast<UntilStop&>(point);
    Promise& fiber = *self.awaiting;
    if (fiber.defer_if_running()) return false;
    self.disarm();
    self.is_stopped_ = true;
    fiber.call_pinned([&self] {
      self.operation_->cancel();
      self.continuation_.wake();
    });
    return true;
  }

  Nested<Op> operation_;
  Continuation continuation_;
  bool is_stopped_ = false;
};

template <class Op>
auto until_stop(Op&& operation) {
  return UntilStop<std::remove_reference_t<Op>>(operation);
}

}  // namespace spate::coro
