// on(): a function is called on another loop's thread, and its result comes back.
//
//   auto count = [registry] { return registry->count(); };
//   const Result<Count> counted = co_await coro::on(*worker, std::move(count));
//
// The coroutine stays where it is. A wait that is given up takes nothing back: the function is not
// called if it was not yet; else it runs to its end, and its result is destroyed. So what it refers
// to has to last until then, not only until the wait is over.
// Ownership: the other loop must exist when the wait begins, and may be destroyed any time later.
// Threads: awaited on the loop's thread. The function is called on the other one's, where it may do
// everything, and destroyed there; one that is not called is destroyed on either. Its result is
// made there and taken here. The loop is kept alive meanwhile, the other one is not. Errors:
// ENOMEM; ECANCELED, the other loop has ended before it called the function.
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

// What two threads share of one call. Whoever leaves it last deletes it.
template <class F>
class Errand {
 public:
  using Value = std::decay_t<std::invoke_result_t<F&>>;
  using Outcome = AsResult<Value>;

  Errand(F&& call, Async& back) : call_(std::move(call)), back_(&back) {}

  // ---- where it is awaited

  Outcome take() { return *std::move(outcome_); }
  void give_up() {
    {
      const std::lock_guard lock(mutex_);
      back_ = nullptr;
    }
    leave();
  }

  // ---- where it is called

  bool is_awaited() {
    const std::lock_guard lock(mutex_);
    return back_ != nullptr;
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
  // Wakes under the lock: who gives up next may destroy the Async, and its loop.
  void finish(Outcome outcome) {
    {
      const std::lock_guard lock(mutex_);
      if (back_ != nullptr) {
        outcome_.emplace(std::move(outcome));
        back_->send();
      }
    }
    leave();
  }

 private:
  void leave() {
    if (has_left_.exchange(true, std::memory_order_acq_rel)) delete this;
  }

  F call_;
  std::mutex mutex_;
  Async* back_;
  std::optional<Outcome> outcome_;
  std::atomic<bool> has_left_ = false;  // One of the two.
};

// What is posted to the other loop: destroyed uncalled, if that ends before.
template <class F>
class ErrandTicket {
 public:
  explicit ErrandTicket(Errand<F>& errand) : errand_(&errand) {}
  ErrandTicket(ErrandTicket&& other) noexcept : errand_(std::exchange(other.errand_, nullptr)) {}
  ErrandTicket& operator=(ErrandTicket&&) = delete;
  ~ErrandTicket() {
    if (errand_ != nullptr) finish(canceled());
  }

  void operator()() {
    if (errand_->is_awaited()) finish(errand_->call());
  }

 private:
  static auto canceled() {
    return std::unexpected(std::make_error_code(std::errc::operation_canceled));
  }
  void finish(typename Errand<F>::Outcome outcome) {
    std::exchange(errand_, nullptr)->finish(std::move(outcome));
  }

  Errand<F>* errand_;
};

template <class F>
class On : public Operation<On<F>> {
 public:
  using Outcome = typename Errand<F>::Outcome;

  On(Loop& other, F call) : other_(other), call_(std::move(call)) {}
  ~On() { cancel(); }

  bool await_ready() const { return false; }
  bool start(Promise& chain, Then then) {
    if (!send(chain.loop())) {
      cancel();
      outcome_.emplace(std::unexpected(std::make_error_code(std::errc::not_enough_memory)));
      return false;
    }
    then_ = then;
    return true;
  }
  void cancel() {
    then_.leave();
    if (errand_ != nullptr) std::exchange(errand_, nullptr)->give_up();
    back_.reset();
  }
  Outcome await_resume() { return *std::move(outcome_); }

 private:
  bool send(Loop& loop) {
    back_.emplace(loop, bind<&On::on_back>(this));
    if (!back_->start()) return false;
    errand_ = new (std::nothrow) Errand<F>(std::move(call_), *back_);
    return errand_ != nullptr && other_.post(ErrandTicket<F>(*errand_));
  }
  void on_back() {
    outcome_.emplace(errand_->take());
    std::exchange(errand_, nullptr)->give_up();
    back_.reset();
    then_.go();
  }

  Loop& other_;
  F call_;
  Errand<F>* errand_ = nullptr;
  std::optional<Async> back_;
  std::optional<Outcome> outcome_;
  Then then_;
};

// co_await: what `call()` gives on the thread of `other`, as a Result. With g++ 12, one that
// captures by value needs a name first, to be moved from (docs/guide/coroutine-compilers.md).
template <class F>
On<F> on(Loop& other, F call) {
  return On<F>(other, std::move(call));
}

}  // namespace spate::coro
