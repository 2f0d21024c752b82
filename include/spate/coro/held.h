// Held: the operation inside another awaitable. A Task is kept, as its Awaiter; others are referred
// to, as they live until the end of the statement that awaits them.
#pragma once

#include <type_traits>
#include <utility>

#include "spate/coro/task.h"

namespace spate::coro {

template <class Op>
class Held {
 public:
  explicit Held(Op& operation) : operation_(operation) {}
  Op& operator*() { return operation_; }
  Op* operator->() { return &operation_; }

 private:
  Op& operation_;
};

template <class T>
class Held<Task<T>> {
 public:
  explicit Held(Task<T>& task) : operation_(task.release()) {}
  auto& operator*() { return operation_; }
  auto* operator->() { return &operation_; }

 private:
  typename Task<T>::Awaiter operation_;
};

// What it gives.
template <class Op>
using Given = decltype((*std::declval<Held<Op>&>()).await_resume());

}  // namespace spate::coro
