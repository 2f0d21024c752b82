// on(): calls a function on another loop's thread, and returns its result to the coroutine.
//
//   auto count = [registry] { return registry->count(); };
//   const Result<Count> counted = co_await coro::on(*worker, std::move(count));
//
// The coroutine stays on its own loop. If the wait is cancelled, the function is not called if it
// was not yet; otherwise it runs to its end, and its result is destroyed. So objects it refers to
// must outlive the call, not only the wait.
// Ownership: the other loop must exist when the wait begins, and may be destroyed any time later.
// Threads: awaited on the loop's thread. The function is called and destroyed on the other thread,
// where everything is allowed; an uncalled one is destroyed on either. Its result is made there and
// returned here. The wait keeps its own loop alive, but not the other one.
// Errors: ENOMEM; ECANCELED if the other loop was destroyed before it called the function.
#pragma once

#include <atomic>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "spate/async.h"
#include "spate/coro/scope.h"
#include "spate/loop.h"

namespace spate::coro {

// The shared state of one call. The second of the two threads to release it deletes it.
template <class F>
class RemoteTask {
 public:
  using Value = std::decay_t<std::invoke_result_t<F&>>;
  using Outcome = AsResult<Value>;

  RemoteTask(F&& call, Async& reply) : call_(std::move(call)), reply_(&reply) {}

  // ---- on the awaiting thread

  Outcome take() { return *std::move(outcome_); }
  void abandon() {
    {
      const std::lock_guard lock(mutex_);
      reply_ = nullptr;
    }
    release();
  }

  // ---- on the thread of the call

  bool is_awaited() {
    const std::lock_guard lock(mutex_);
    return reply_ != nullptr;
  }
  Outcome call() {
    F its_call = std::move(call_);
    if constexpr (std::is_void_v<Value>) {
      its_call();
      return {};
    } else {
      return its_call();
    }
  }
  // Sends under the lock: once abandon() can run, the Async and its loop may be destroyed.
  void finish(Outcome outcome) {
    {
      const std::lock_guard lock(mutex_);
      if (reply_ != nullptr) {
        outcome_.emplace(std::move(outcome));
        reply_->send();
      }
    }
    release();
  }

 private:
  void release() {
    if (is_half_released_.exchange(true, std::memory_order_acq_rel)) delete this;
  }

  F call_;
  std::mutex mutex_;
  Async* reply_;
  std::optional<Outcome> outcome_;
  std::atomic<bool> is_half_released_ = false;  // One of the two has left.
};

// The task posted to the other loop. If that loop is destroyed first, the post is destroyed
// uncalled, and reports ECANCELED.
template <class F>
class RemoteTaskPost {
 public:
  explicit RemoteTaskPost(RemoteTask<F>& remote) : remote_(&remote) {}
  RemoteTaskPost(RemoteTaskPost&& other) noexcept
      : remote_(std::exchange(other.remote_, nullptr)) {}
  RemoteTaskPost& operator=(RemoteTaskPost&&) = delete;
  ~RemoteTaskPost() {
    if (remote_ != nullptr) finish(canceled());
  }

  void operator()() {
    if (remote_->is_awaited()) finish(remote_->call());
  }

 private:
  static auto canceled() {
    return std::unexpected(std::make_error_code(std::errc::operation_canceled));
  }
  void finish(typename RemoteTask<F>::Outcome outcome) {
    std::exchange(remote_, nullptr)->finish(std::move(outcome));
  }

  RemoteTask<F>* remote_;
};

template <class F>
class On : public Operation<On<F>> {
 public:
  using Outcome = typename RemoteTask<F>::Outcome;

  On(Loop& other, F call) : other_(other), call_(std::move(call)) {}
  ~On() { cancel(); }

  bool await_ready() const { return false; }
  bool start(Promise& fiber, Continuation continuation) {
    if (!send(fiber.loop())) {
      cancel();
      outcome_.emplace(std::unexpected(std::make_error_code(std::errc::not_enough_memory)));
      return false;
    }
    continuation_ = continuation;
    return true;
  }
  void cancel() {
    continuation_.cancel();
    if (remote_ != nullptr) std::exchange(remote_, nullptr)->abandon();
    reply_.reset();
  }
  Outcome await_resume() { return *std::move(outcome_); }

 private:
  bool send(Loop& loop) {
    reply_.emplace(loop, bind<&On::on_reply>(this));
    if (!reply_->start()) return false;
    remote_ = new (std::nothrow) RemoteTask<F>(std::move(call_), *reply_);
    return remote_ != nullptr && other_.post(RemoteTaskPost<F>(*remote_));
  }
  // Releases the shared state last: this may destroy a function that was not called, and with it
  // the scope of this awaitable.
  void on_reply() {
    RemoteTask<F>* const remote = std::exchange(remote_, nullptr);
    outcome_.emplace(remote->take());
    reply_.reset();
    continuation_.resume();
    remote->abandon();
  }

  Loop& other_;
  F call_;
  RemoteTask<F>* remote_ = nullptr;
  std::optional<Async> reply_;
  std::optional<Outcome> outcome_;
  Continuation continuation_;
};

// co_await: calls `call()` on the thread of `other`, and returns its result, as a Result. With g++
// 12, a function that captures by value must be a named variable that is moved
// (docs/guide/coroutine-compilers.md).
template <class F>
On<F> on(Loop& other, F call) {
  return On<F>(other, std::move(call));
}

}  // namespace spate::coro
