// sleep(), next_turn(), with_deadline().
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

// What sleep() gives to co_await. A timer is kept where it waits: no allocation.
class SPATE_EXPORT Sleep : public Operation<Sleep> {
 public:
  explicit Sleep(Nanos delay) : delay_(delay) {}
  ~Sleep() { cancel(); }

  bool await_ready() const { return false; }
  bool start(Promise& chain, Then then);
  void cancel();
  std::error_code await_resume() const { return error_; }

 private:
  static void on_timer(void* context, Node& node, Events events);

  Nanos delay_;
  std::error_code error_;
  Loop* loop_ = nullptr;
  TimerNode node_{};
  Then then_;
};

// co_await: not before `delay` has gone by; negative counts as zero, which is the next turn. Gives
// ENOMEM, at once, if there is no memory for the timer; else no error.
inline Sleep sleep(Nanos delay) { return Sleep(delay); }
// co_await: the loop's next turn, after the events that are due.
inline Sleep next_turn() { return Sleep(Nanos{0}); }

// A task, and the time it has. What it gives is a Result, of which an own Result is a part.
template <class T>
class WithDeadline : public Operation<WithDeadline<T>> {
 public:
  using Outcome = AsResult<T>;

  WithDeadline(Nanos time, Task<T> task) : time_(time), task_(task.release()) {}

  bool await_ready() const { return task_.await_ready(); }
  bool start(Promise& chain, Then then) {
    then_ = then;
    done_.awaiting = &chain;
    late_.awaiting = &chain;
    if (!time_.start(chain, Then(late_))) {
      task_.cancel();
      error_ = time_.await_resume();
      return false;
    }
    if (task_.start(chain, Then(done_))) return true;
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
  struct Part : Chooser {
    Part(WithDeadline& its_owner, Choose choose) : Chooser(choose), owner(its_owner) {}
    WithDeadline& owner;
  };

  static Promise* on_done(Chooser& chooser) {
    WithDeadline& self = static_cast<Part&>(chooser).owner;
    self.time_.cancel();
    return self.then_.choose();
  }
  static Promise* on_late(Chooser& chooser) {
    WithDeadline& self = static_cast<Part&>(chooser).owner;
    self.task_.cancel();
    self.error_ = Error::deadline;
    return self.then_.choose();
  }

  Then then_;
  Part done_{*this, on_done};
  Part late_{*this, on_late};
  std::error_code error_;
  Sleep time_;
  typename Task<T>::Awaiter task_;
};

// co_await: `task`, for at most `time`. Then it is destroyed, and the result is Error::deadline.
template <class T>
WithDeadline<T> with_deadline(Nanos time, Task<T> task) {
  return WithDeadline<T>(time, std::move(task));
}

}  // namespace spate::coro
