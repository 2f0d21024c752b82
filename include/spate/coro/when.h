// when_all(), when_any(): several tasks at a time.
//
//   const Result<std::tuple<Price, Price>> both = co_await coro::when_all(ask(one), ask(other));
//   const std::variant<Reply, std::monostate> first =
//       co_await coro::when_any(ask(one), patience());
//
// The tasks are started in order, each up to its first wait. The wait owns them: when it is over,
// or is given up, those that are left are destroyed. Nothing is allocated but their frames.
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

#include "spate/coro/scope.h"

namespace spate::coro {

// What stands for the result of a Task<void>.
template <class T>
using Shown = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

// What stands for it if no task has failed.
template <class T>
struct ValueOf {
  using Type = Shown<T>;
};
template <class T>
struct ValueOf<Result<T>> {
  using Type = Shown<T>;
};

// The tasks of one wait, by their numbers; Self says in on_end(number) whether the wait is over.
template <class Self, class... T>
class Together : public Operation<Self> {
 public:
  explicit Together(Task<T>&... tasks) : tasks_(tasks.release()...) {}

  bool await_ready() const { return false; }
  bool start(Promise& chain, Then then) {
    then_ = then;
    return start_all(chain, std::index_sequence_for<T...>());
  }
  // Of all but those that have given their result.
  void cancel() {
    for (Part& part : parts_) part.leave();
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
    if constexpr (std::is_void_v<std::tuple_element_t<i, std::tuple<T...>>>) {
      task<i>().await_resume();
      return std::monostate();
    } else {
      return task<i>().await_resume();
    }
  }

 private:
  struct Part : Chooser {
    Part() : Chooser(choose) {}
    Together* owner = nullptr;
    std::size_t number = 0;
  };

  static Promise* choose(Chooser& chooser) {
    const Part& part = static_cast<Part&>(chooser);
    Together& self = *part.owner;
    return static_cast<Self&>(self).on_end(part.number) ? self.then_.choose() : nullptr;
  }
  template <std::size_t... i>
  bool start_all(Promise& chain, std::index_sequence<i...>) {
    return (start_one<i>(chain) && ...);
  }
  // False if the wait is over, so that the others are not started.
  template <std::size_t i>
  bool start_one(Promise& chain) {
    if (chain.is_doomed()) return true;
    Part& part = parts_[i];
    part.awaiting = &chain;
    part.owner = this;
    part.number = i;
    if (!task<i>().await_ready() && task<i>().start(chain, Then(part))) return true;
    return !static_cast<Self*>(this)->on_end(i);
  }

  Then then_;
  std::array<Part, kCount> parts_;
  std::tuple<typename Task<T>::Awaiter...> tasks_;
};

// Until all have ended. If all can fail: until one fails, whose error is then the result; the
// others are destroyed.
template <class... T>
class WhenAll : public Together<WhenAll<T...>, T...> {
  using Base = Together<WhenAll, T...>;
  using Values = std::tuple<typename ValueOf<T>::Type...>;
  static constexpr bool kCanFail = (kIsResult<T> && ...);

 public:
  using Outcome = std::conditional_t<kCanFail, Result<Values>, std::tuple<Shown<T>...>>;
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
  template <class R>
  static auto value_of(R&& result) {
    if constexpr (std::is_void_v<typename std::remove_cvref_t<R>::value_type>) {
      return std::monostate();
    } else {
      return std::move(*result);
    }
  }

  std::size_t ended_ = 0;
  std::error_code error_;
};

// Until one has ended; the others are destroyed.
template <class... T>
class WhenAny : public Together<WhenAny<T...>, T...> {
  using Base = Together<WhenAny, T...>;

 public:
  using Outcome = std::variant<Shown<T>...>;
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

// co_await: the results of all, in order; std::monostate for those that give none. If all of them
// give a Result, it gives one of their values: the first error ends the wait.
template <class... T>
WhenAll<T...> when_all(Task<T>... tasks) {
  return WhenAll<T...>(tasks...);
}
// co_await: the result of the first that ends; which it was is the variant's index().
template <class... T>
WhenAny<T...> when_any(Task<T>... tasks) {
  return WhenAny<T...>(tasks...);
}

}  // namespace spate::coro
