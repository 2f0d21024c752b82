// ReservationQueue: a queue of waiters for any of several equal items, served in order. For authors
// of awaitables.
//
// A woken waiter has a reservation, and claims its item when it is resumed. If it is destroyed
// first, it has taken nothing, and the reservation passes to the next one.
// Threads: the loop's thread only.
#pragma once

#include <cstddef>

#include "spate/coro/scope.h"

namespace spate::coro {

class ReservationQueue {
 public:
  // Returns whether one of `count` items is free for a task that has not waited. Returns false
  // after too many in a row, so that other tasks run.
  bool has_free(std::size_t count) {
    return waiters_.empty() && reserved_ < count && --budget_ >= 0;
  }
  bool has_waiter() const { return !waiters_.empty(); }

  // Adds a waiter. Wakes waiters as wake().
  void push(Continuation continuation, std::size_t count) {
    budget_ = kBudget;
    waiters_.push(continuation.node());
    wake(count);
  }
  // Wakes as many waiters as can have one of `count` items.
  void wake(std::size_t count) {
    while (!waiters_.empty() && reserved_ < count) reserve_first().wake();
  }
  // Reserves an item for the first waiter, which the caller wakes.
  Continuation reserve_first() {
    ++reserved_;
    return waiters_.first()->as_continuation();
  }

  // Claims the reservation of a resumed waiter.
  void claim(Continuation& continuation) {
    if (continuation) --reserved_;
    continuation = Continuation();
  }
  // Removes a waiter that was destroyed. True if it had a reservation, which the caller passes on.
  bool remove(Continuation& continuation) {
    if (!continuation) return false;
    const bool had_reservation = !continuation.node().is_waiting();
    continuation.cancel();
    if (had_reservation) --reserved_;
    return had_reservation;
  }

 private:
  static constexpr int kBudget = 128;

  WaitList waiters_;
  int budget_ = kBudget;
  std::size_t reserved_ = 0;
};

}  // namespace spate::coro
