// when_all(), when_any(): run several tasks concurrently.
//
//   const Result<std::tuple<Price, Price>> both = co_await coro::when_all(ask(one), ask(other));
//   const std::variant<Reply, std::monostate> first =
//       co_await coro::when_any(ask(one), time_limit());
//   std::vector<Task<Result<Price>>> tasks = ...;
//   const Result<std::vector<Price>> all = co_await coro::when_all(std::move(tasks));
//
// The tasks are started in order, each up to its first wait. The wait owns them: when it ends or is
// cancelled, the remaining tasks are destroyed. Only their frames are allocated, and with a vector
// a node per task, by the standard library.
// Threads: the loop's thread only.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "spate/coro/extend/when_in_vector.h"
#include "spate/coro/scope.h"

namespace spate::coro {

// The tasks of one wait, by number. Self::on_end(number) returns whether the wait is over.
template <class Self, class... T>
class WhenBase : public Operation<Self> {
 public:
  explicit WhenBase(Task<T>&... tasks) : tasks_(tasks.release()...) {}

  bool await_ready() const { return false; }
  bool start(Promise& fiber, Continuation continuation) {
    continuation_ = continuation;
    return start_all(fiber, std::index_sequence_for<T...>());
  }
  // Cancels all tasks whose result was not taken.
  void cancel() {
    for (Branch& branch : branches_) branch.unlink();
    std::apply([](auto&... task) { (task.cancel(), ...); }, tasks_);
  }

 protected:
  static constexpr std::size_t kCount = sizeof...(T);
  static_assert(kCount > 0, "nothing to wait for");

  template <std::size_t i>
  auto& task() {
    return std::get<i>(tasks_);
  }
  template <std::size_t i>
  auto take() {
    return take_non_void(task<i>());
  }

 private:
  struct Branch : Selector {
    Branch() : Selector(select) {}
    WhenBase* owner = nullptr;
    std::size_t number = 0;
  };

  static Promise* select(Selector& selector) {
    const Branch& branch = static_cast<Branch&>(selector);
    WhenBase& self = *branch.owner;
    return static_cast<Self&>(self).on_end(branch.number) ? self.continuation_.select() : nullptr;
  }
  template <std::size_t... i>
  bool start_all(Promise& fiber, std::index_sequence<i...>) {
    return (start_one<i>(fiber) && ...);
  }
  // Returns false if the wait is over, so that the other tasks are not started.
  template <std::size_t i>
  bool start_one(Promise& fiber) {
    if (fiber.is_cancelled()) return true;
    Branch& branch = branches_[i];
    branch.awaiting = &fiber;
    branch.owner = this;
    branch.number = i;
    if (!task<i>().await_ready() && task<i>().start(fiber, Continuation(branch))) return true;
    return !static_cast<Self*>(this)->on_end(i);
  }

  Continuation continuation_;
  std::array<Branch, kCount> branches_;
  std::tuple<typename Task<T>::Awaiter...> tasks_;
};

// Waits until all tasks have ended. If all can fail, ends with the first error, and destroys the
// other tasks.
template <class... T>
class WhenAll : public WhenBase<WhenAll<T...>, T...> {
  using Base = WhenBase<WhenAll, T...>;
  using Values = std::tuple<typename ValueOf<T>::Type...>;
  static constexpr bool kCanFail = (kIsResult<T> && ...);

 public:
  using Outcome = std::conditional_t<kCanFail, Result<Values>, std::tuple<NonVoid<T>...>>;
  using Base::Base;

  Outcome await_resume() { return take_all(std::index_sequence_for<T...>()); }

 private:
  friend Base;

  bool on_end(std::size_t number) {
    ++ended_;
    if constexpr (kCanFail) {
      if (const std::error_code error = error_of(number, std::index_sequence_for<T...>())) {
        error_ = error;
        this->cancel();
        return true;
      }
    }
    return ended_ == Base::kCount;
  }
  template <std::size_t... i>
  std::error_code error_of(std::size_t number, std::index_sequence<i...>) {
    std::error_code error;
    ((i == number ? void(error = this->template task<i>().error()) : void()), ...);
    return error;
  }
  template <std::size_t... i>
  Outcome take_all(std::index_sequence<i...>) {
    if constexpr (kCanFail) {
      if (error_) return std::unexpected(error_);
      return Values{value_of(this->template take<i>())...};
    } else {
      return Outcome{this->template take<i>()...};
    }
  }

  std::size_t ended_ = 0;
  std::error_code error_;
};

// Waits until one task has ended, and destroys the others.
template <class... T>
class WhenAny : public WhenBase<WhenAny<T...>, T...> {
  using Base = WhenBase<WhenAny, T...>;

 public:
  using Outcome = std::variant<NonVoid<T>...>;
  using Base::Base;

  Outcome await_resume() { return take_first(std::index_sequence_for<T...>()); }

 private:
  friend Base;

  bool on_end(std::size_t number) {
    first_ = number;
    cancel_others(std::index_sequence_for<T...>());
    return true;
  }
  template <std::size_t... i>
  void cancel_others(std::index_sequence<i...>) {
    ((i != first_ ? this->template task<i>().cancel() : void()), ...);
  }
  template <std::size_t... i>
  Outcome take_first(std::index_sequence<i...>) {
    std::optional<Outcome> outcome;
    ((i == first_ ? void(outcome.emplace(std::in_place_index<i>, this->template take<i>()))
                  : void()),
     ...);
    return std::move(*outcome);
  }

  std::size_t first_ = 0;
};

// co_await: returns the results of all tasks, in order; std::monostate for those without one. If
// all of them return a Result, it returns one Result of their values: the first error ends the
// wait.
template <class... T>
WhenAll<T...> when_all(Task<T>... tasks) {
  return WhenAll<T...>(tasks...);
}
// co_await: returns the result of the first task that ends; the variant's index() is its number.
template <class... T>
WhenAny<T...> when_any(Task<T>... tasks) {
  return WhenAny<T...>(tasks...);
}

}  // namespace spate::coro
