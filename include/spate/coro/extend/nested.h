// Nested: an operation inside another awaitable. A Task is stored, as its Awaiter; other operations
// are referred to, as they live until the end of the co_await statement. For authors of awaitables.
#pragma once

#include <type_traits>
#include <utility>

#include "spate/coro/task.h"

namespace spate::coro {

template <class Op>
class Nested {
 public:
  explicit Nested(Op& operation) : operation_(operation) {}
  Op& operator*() { return operation_; }
  Op* operator->() { return &operation_; }

 private:
  Op& operation_;
};

template <class T>
class Nested<Task<T>> {
 public:
  explicit Nested(Task<T>& task) : operation_(task.release()) {}
  auto& operator*() { return operation_; }
  auto* operator->() { return &operation_; }

 private:
  typename Task<T>::Awaiter operation_;
};

// The type of its result.
template <class Op>
using ResultOf = decltype((*std::declval<Nested<Op>&>()).await_resume());

}  // namespace spate::coro
