// sleep(), next_turn(), with_deadline(): waits by time.
//
//   co_await coro::sleep(1s);
//   Result<Reply> reply = co_await coro::with_deadline(5s, ask(loop, address, question));
//
// Threads: the loop's thread only. Time is the loop's (Timer, timer.h).
#pragma once

#include <optional>
#include <system_error>

#include "spate/coro/scope.h"
#include "spate/time.h"

namespace spate::coro {

// The awaitable of sleep(). It contains the timer: no allocation.
class SPATE_EXPORT Sleep : public Operation<Sleep> {
 public:
  explicit Sleep(Nanos delay) : delay_(delay) {}
  ~Sleep() { cancel(); }

  bool await_ready() const { return false; }
  bool start(Promise& fiber, Continuation continuation);
  void cancel();
  std::error_code await_resume() const { return error_; }

 private:
  static void on_timer(void* context, Node& node, Events events);

  Nanos delay_;
  std::error_code error_;
  Loop* loop_ = nullptr;
  TimerNode node_{};
  Continuation continuation_;
};

// co_await: waits for at least `delay`; negative counts as zero, which is the next turn. Returns
// ENOMEM, at once, if there is no memory for the timer; otherwise no error.
inline Sleep sleep(Nanos delay) { return Sleep(delay); }
// co_await: waits for the loop's next turn, after the events that are due.
inline Sleep next_turn() { return Sleep(Nanos{0}); }

// A task with a time limit. The result is a Result; a result of the task that is a Result already
// is not nested.
template <class T>
class WithDeadline : public Operation<WithDeadline<T>> {
 public:
  using Outcome = AsResult<T>;

  WithDeadline(Nanos time, Task<T> task) : time_(time), task_(task.release()) {}

  bool await_ready() const { return task_.await_ready(); }
  bool start(Promise& fiber, Continuation continuation) {
    continuation_ = continuation;
    done_.awaiting = &fiber;
    timeout_.awaiting = &fiber;
    if (!time_.start(fiber, Continuation(timeout_))) {
      task_.cancel();
      error_ = time_.await_resume();
      return false;
    }
    if (task_.start(fiber, Continuation(done_))) return true;
    time_.cancel();
    return false;
  }
  void cancel() {
    time_.cancel();
    task_.cancel();
  }
  Outcome await_resume() {
    if (error_) return std::unexpected(error_);
    if constexpr (std::is_void_v<T>) {
      task_.await_resume();
      return {};
    } else {
      return task_.await_resume();
    }
  }

 private:
  struct Branch : Selector {
    Branch(WithDeadline& its_owner, Select select) : Selector(select), owner(its_owner) {}
    WithDeadline& owner;
  };

  static Promise* on_done(Selector& selector) {
    WithDeadline& self = static_cast<Branch&>(selector).owner;
    self.time_.cancel();
    return self.continuation_.select();
  }
  static Promise* on_timeout(Selector& selector) {
    WithDeadline& self = static_cast<Branch&>(selector).owner;
    self.task_.cancel();
    self.error_ = Error::deadline;
    return self.continuation_.select();
  }

  Continuation continuation_;
  Branch done_{*this, on_done};
  Branch timeout_{*this, on_timeout};
  std::error_code error_;
  Sleep time_;
  typename Task<T>::Awaiter task_;
};

// co_await: runs `task` for at most `time`. Then the task is destroyed, and the result is
// Error::deadline.
template <class T>
WithDeadline<T> with_deadline(Nanos time, Task<T> task) {
  return WithDeadline<T>(time, std::move(task));
}

}  // namespace spate::coro
