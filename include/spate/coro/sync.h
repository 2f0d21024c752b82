// Event, Semaphore, Mutex: synchronization between the tasks of one loop. Waiters are served in
// order.
//
//   coro::Semaphore slots(10);
//   {
//     const coro::Semaphore::Permit slot(co_await slots.acquire());
//     ...
//   }
//
// Ownership: the program's; they must outlive their waiters. They allocate nothing.
// Threads: the loop's thread only; between threads use Mailbox (mailbox.h) and on() (on_loop.h).
// Cancellation: a woken waiter has a reservation, and claims it when it is resumed. If it is
// destroyed first, the reservation passes to the next one.
#pragma once

#include <cstddef>
#include <utility>

#include "spate/coro/scope.h"

namespace spate::coro {

// A flag: wait() waits until it is set.
class Event {
 public:
  class Wait;

  bool is_set() const { return is_set_; }
  // Sets the flag, and wakes all waiters.
  void set() {
    is_set_ = true;
    while (!waiting_.empty()) waiting_.first()->as_continuation().wake();
  }
  // Clears the flag. Waiters that were woken are resumed nevertheless.
  void reset() { is_set_ = false; }
  // co_await: waits until the flag is set.
  Wait wait();

 private:
  WaitList waiting_;
  bool is_set_ = false;
};

class Event::Wait : public Operation<Wait> {
 public:
  explicit Wait(Event& event) : event_(event) {}
  ~Wait() { cancel(); }

  bool await_ready() const { return event_.is_set(); }
  bool start(Promise&, Continuation continuation) {
    continuation_ = continuation;
    event_.waiting_.push(continuation.node());
    return true;
  }
  void cancel() { continuation_.cancel(); }
  void await_resume() { continuation_ = Continuation(); }

 private:
  Event& event_;
  Continuation continuation_;
};

inline Event::Wait Event::wait() { return Wait(*this); }

// A counting semaphore with `units` units.
class Semaphore {
 public:
  class Acquire;
  class Permit;

  explicit Semaphore(std::size_t units) : units_(units) {}

  // Returns the units that are neither held nor reserved.
  std::size_t available() const { return units_ - reserved_; }
  // co_await: acquires one unit. Returns a Permit that releases it.
  Acquire acquire();
  // As above without waiting. Returns an empty Permit if there is no unit.
  Permit try_acquire();
  // Adds one unit. A Permit calls it automatically.
  void release() {
    ++units_;
    wake_next();
  }

 private:
  void wake_next() {
    if (available() == 0 || waiting_.empty()) return;
    ++reserved_;
    waiting_.first()->as_continuation().wake();
  }

  std::size_t units_;
  std::size_t reserved_ = 0;  // Reserved for woken waiters.
  WaitList waiting_;
};

// A unit, released by the destructor.
class [[nodiscard]] Semaphore::Permit {
 public:
  Permit() = default;
  explicit Permit(Semaphore& semaphore) : semaphore_(&semaphore) {}
  Permit(Permit&& other) noexcept : semaphore_(std::exchange(other.semaphore_, nullptr)) {}
  Permit& operator=(Permit&& other) noexcept {
    if (this != &other) {
      release();
      semaphore_ = std::exchange(other.semaphore_, nullptr);
    }
    return *this;
  }
  ~Permit() { release(); }

  explicit operator bool() const { return semaphore_ != nullptr; }
  void release() {
    if (semaphore_ != nullptr) std::exchange(semaphore_, nullptr)->release();
  }

 private:
  Semaphore* semaphore_ = nullptr;
};

class Semaphore::Acquire : public Operation<Acquire> {
 public:
  explicit Acquire(Semaphore& semaphore) : semaphore_(semaphore) {}
  ~Acquire() { cancel(); }

  bool await_ready() const { return semaphore_.available() > 0 && semaphore_.waiting_.empty(); }
  bool start(Promise&, Continuation continuation) {
    continuation_ = continuation;
    semaphore_.waiting_.push(continuation.node());
    return true;
  }
  void cancel() {
    if (!continuation_) return;
    const bool had_reservation = !continuation_.node().is_waiting();
    continuation_.cancel();
    if (!had_reservation) return;
    --semaphore_.reserved_;
    semaphore_.wake_next();
  }
  Permit await_resume() {
    if (continuation_) --semaphore_.reserved_;
    continuation_ = Continuation();
    --semaphore_.units_;
    return Permit(semaphore_);
  }

 private:
  Semaphore& semaphore_;
  Continuation continuation_;
};

inline Semaphore::Acquire Semaphore::acquire() { return Acquire(*this); }
inline Semaphore::Permit Semaphore::try_acquire() {
  if (available() == 0 || !waiting_.empty()) return Permit();
  --units_;
  return Permit(*this);
}

// A mutual exclusion lock.
class Mutex {
 public:
  using Lock = Semaphore::Permit;

  // co_await: acquires the lock. Returns a Lock that releases it.
  Semaphore::Acquire lock() { return one_.acquire(); }
  Lock try_lock() { return one_.try_acquire(); }
  bool is_locked() const { return one_.available() == 0; }

 private:
  Semaphore one_{1};
};

}  // namespace spate::coro
