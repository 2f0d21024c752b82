// when_all() and when_any() of tasks in a vector. Included by when.h, which describes them.
// Threads: the loop's thread only.
#pragma once

#include <cstddef>
#include <deque>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "spate/coro/scope.h"

namespace spate::coro {

// The result type of a task; std::monostate for a Task<void>.
template <class T>
using NonVoid = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

// As NonVoid, with the Result removed: the type of the value if no task has failed.
template <class T>
struct ValueOf {
  using Type = NonVoid<T>;
};
template <class T>
struct ValueOf<Result<T>> {
  using Type = NonVoid<T>;
};

// Takes the result of a task that has ended.
template <class Awaiter>
auto take_non_void(Awaiter& task) {
  if constexpr (std::is_void_v<decltype(task.await_resume())>) {
    task.await_resume();
    return std::monostate();
  } else {
    return task.await_resume();
  }
}
// Takes the value out of a Result that has one; returns other results unchanged.
template <class T>
T value_of(T&& result) {
  return std::move(result);
}
template <class T>
NonVoid<T> value_of(Result<T>&& result) {
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return *std::move(result);
  }
}

// The tasks of one wait, in a vector. Self::on_end(number) returns whether the wait is over.
template <class Self, class T>
class WhenInVectorBase : public Operation<Self> {
 public:
  explicit WhenInVectorBase(std::vector<Task<T>>&& tasks) {
    for (Task<T>& task : tasks) branches_.emplace_back(*this, branches_.size(), task.release());
  }

  bool await_ready() const { return branches_.empty(); }
  bool start(Promise& fiber, Continuation continuation) {
    continuation_ = continuation;
    for (Branch& branch : branches_) {
      if (!start_one(fiber, branch)) return false;
    }
    return true;
  }
  // Cancels all tasks whose result was not taken.
  void cancel() {
    for (Branch& branch : branches_) branch.unlink();
    for (Branch& branch : branches_) branch.task.cancel();
  }

 protected:
  std::size_t count() const { return branches_.size(); }
  auto& task(std::size_t number) { return branches_[number].task; }

 private:
  struct Branch : Selector {
    Branch(WhenInVectorBase& its_owner, std::size_t its_number, TaskPromise<T>* promise)
        : Selector(select), owner(its_owner), number(its_number), task(promise) {}
    WhenInVectorBase& owner;
    const std::size_t number;
    typename Task<T>::Awaiter task;
  };

  static Promise* select(Selector& selector) {
    const Branch& branch = static_cast<Branch&>(selector);
    Self& self = static_cast<Self&>(branch.owner);
    return self.on_end(branch.number) ? branch.owner.continuation_.select() : nullptr;
  }
  // Returns false if the wait is over, so that the other tasks are not started.
  bool start_one(Promise& fiber, Branch& branch) {
    if (fiber.is_cancelled()) return true;
    branch.awaiting = &fiber;
    if (!branch.task.await_ready() && branch.task.start(fiber, Continuation(branch))) return true;
    return !static_cast<Self*>(this)->on_end(branch.number);
  }

  Continuation continuation_;
  std::deque<Branch> branches_;  // They must not move.
};

// As WhenAll.
template <class T>
class WhenAllInVector : public WhenInVectorBase<WhenAllInVector<T>, T> {
  using Base = WhenInVectorBase<WhenAllInVector, T>;
  using Value = typename ValueOf<T>::Type;
  static constexpr bool kCanFail = kIsResult<T>;

 public:
  using Outcome = std::conditional_t<kCanFail, Result<std::vector<Value>>, std::vector<Value>>;
  using Base::Base;

  Outcome await_resume() {
    if (error_) return failure();
    std::vector<Value> values;
    values.reserve(this->count());
    for (std::size_t i = 0; i < this->count(); ++i)
      values.push_back(value_of(take_non_void(this->task(i))));
    return values;
  }

 private:
  friend Base;

  bool on_end([[maybe_unused]] std::size_t number) {
    ++ended_;
    if constexpr (kCanFail) {
      if (const std::error_code error = this->task(number).error()) {
        error_ = error;
        this->cancel();
        return true;
      }
    }
    return ended_ == this->count();
  }
  Outcome failure() const {
    if constexpr (kCanFail) {
      return std::unexpected(error_);
    } else {
      return {};
    }
  }

  std::size_t ended_ = 0;
  std::error_code error_;
};

// The task of when_any() that ended first.
template <class T>
struct FirstOf {
  std::size_t number;
  NonVoid<T> result;
};

// As WhenAny.
template <class T>
class WhenAnyInVector : public WhenInVectorBase<WhenAnyInVector<T>, T> {
  using Base = WhenInVectorBase<WhenAnyInVector, T>;

 public:
  using Outcome = FirstOf<T>;
  explicit WhenAnyInVector(std::vector<Task<T>>&& tasks) : Base(std::move(tasks)) {
    SPATE_ASSERT(this->count() > 0, "when_any() of no task would never end");
  }

  Outcome await_resume() { return {first_, take_non_void(this->task(first_))}; }

 private:
  friend Base;

  bool on_end(std::size_t number) {
    first_ = number;
    for (std::size_t i = 0; i < this->count(); ++i) {
      if (i != number) this->task(i).cancel();
    }
    return true;
  }

  std::size_t first_ = 0;
};

// co_await: returns the results of all tasks, in order, in a vector; std::monostate for those
// without one. If T is a Result, it returns one Result of their values: the first error ends the
// wait. `tasks` may be empty.
template <class T>
WhenAllInVector<T> when_all(std::vector<Task<T>> tasks) {
  return WhenAllInVector<T>(std::move(tasks));
}
// co_await: returns the number and the result of the first task that ends. `tasks` must not be
// empty.
template <class T>
WhenAnyInVector<T> when_any(std::vector<Task<T>> tasks) {
  return WhenAnyInVector<T>(std::move(tasks));
}

}  // namespace spate::coro
