// Cancels a task after it was woken and before it is resumed.
#pragma once

#include <functional>
#include <utility>

#include "spate/coro/scope.h"
#include "spate/coro/time.h"
#include "spate/coro/when.h"

namespace spate::testing {

// Runs the loop inside the task of `wait`, so that it cannot be resumed when its operation
// completes, and cancels it then. `meanwhile` is called while it waits.
template <class T>
void cancel_when_promised(Loop& loop, coro::Task<T> wait, std::function<void()> meanwhile) {
  const auto run_inside = [](Loop* inner, coro::Scope* own,
                             std::function<void()>* first) -> coro::Task<void> {
    (*first)();
    for (int i = 0; i < 5; ++i) inner->run(Run::no_wait);
    own->cancel();
    co_await coro::next_turn();
  };
  const auto both = [](coro::Task<T> one, coro::Task<void> other) -> coro::Task<void> {
    co_await coro::when_any(std::move(one), std::move(other));
  };
  coro::Scope scope(loop);
  scope.spawn(both(std::move(wait), run_inside(&loop, &scope, &meanwhile)));
}

}  // namespace spate::testing
