// Event, Semaphore, Mutex: between the tasks of one loop. Who waits is served in order.
//
//   coro::Semaphore slots(10);
//   {
//     const coro::Semaphore::Held slot(co_await slots.acquire());
//     ...
//   }
//
// Ownership: the program's; they must outlive those who wait. Nothing is allocated.
// Threads: the loop's thread only; between threads use Mailbox (mailbox.h) and on() (on_loop.h).
// Whoever is woken takes what was given to him when he goes on; if he is destroyed before, the next
// one gets it.
#pragma once

#include <cstddef>
#include <utility>

#include "spate/coro/scope.h"

namespace spate::coro {

// Set, or not: wait() waits until it is.
class Event {
 public:
  class Wait;

  bool is_set() const { return is_set_; }
  // Wakes all who wait.
  void set() {
    is_set_ = true;
    while (!waiting_.empty()) waiting_.first()->then().wake();
  }
  // Who was woken goes on nevertheless.
  void reset() { is_set_ = false; }
  // co_await.
  Wait wait();

 private:
  Line waiting_;
  bool is_set_ = false;
};

class Event::Wait : public Operation<Wait> {
 public:
  explicit Wait(Event& event) : event_(event) {}
  ~Wait() { cancel(); }

  bool await_ready() const { return event_.is_set(); }
  bool start(Promise&, Then then) {
    then_ = then;
    event_.waiting_.push(then.place());
    return true;
  }
  void cancel() { then_.leave(); }
  void await_resume() { then_ = Then(); }

 private:
  Event& event_;
  Then then_;
};

inline Event::Wait Event::wait() { return Wait(*this); }

// Units of something, `units` at first.
class Semaphore {
 public:
  class Acquire;
  class Held;

  explicit Semaphore(std::size_t units) : units_(units) {}

  // What nobody has, nor was promised.
  std::size_t available() const { return units_ - promised_; }
  // co_await: one unit, as a Held that gives it back.
  Acquire acquire();
  // An empty Held if there is none.
  Held try_acquire();
  // One unit more. Held does it by itself.
  void release() {
    ++units_;
    promise_next();
  }

 private:
  void promise_next() {
    if (available() == 0 || waiting_.empty()) return;
    ++promised_;
    waiting_.first()->then().wake();
  }

  std::size_t units_;
  std::size_t promised_ = 0;  // To those who are woken.
  Line waiting_;
};

// A unit, given back by its destructor.
class [[nodiscard]] Semaphore::Held {
 public:
  Held() = default;
  explicit Held(Semaphore& semaphore) : semaphore_(&semaphore) {}
  Held(Held&& other) noexcept : semaphore_(std::exchange(other.semaphore_, nullptr)) {}
  Held& operator=(Held&& other) noexcept {
    if (this != &other) {
      release();
      semaphore_ = std::exchange(other.semaphore_, nullptr);
    }
    return *this;
  }
  ~Held() { release(); }

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
  bool start(Promise&, Then then) {
    then_ = then;
    semaphore_.waiting_.push(then.place());
    return true;
  }
  void cancel() {
    if (!then_) return;
    const bool was_promised = !then_.place().is_waiting();
    then_.leave();
    if (!was_promised) return;
    --semaphore_.promised_;
    semaphore_.promise_next();
  }
  Held await_resume() {
    if (then_) --semaphore_.promised_;
    then_ = Then();
    --semaphore_.units_;
    return Held(semaphore_);
  }

 private:
  Semaphore& semaphore_;
  Then then_;
};

inline Semaphore::Acquire Semaphore::acquire() { return Acquire(*this); }
inline Semaphore::Held Semaphore::try_acquire() {
  if (available() == 0 || !waiting_.empty()) return Held();
  --units_;
  return Held(*this);
}

// One at a time.
class Mutex {
 public:
  using Held = Semaphore::Held;

  // co_await: until nobody else has it, as a Held that unlocks it.
  Semaphore::Acquire lock() { return one_.acquire(); }
  Held try_lock() { return one_.try_acquire(); }
  bool is_locked() const { return one_.available() == 0; }

 private:
  Semaphore one_{1};
};

}  // namespace spate::coro
