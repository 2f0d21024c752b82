// Mailbox: a bounded queue of values from any thread to the tasks of one loop, in order.
//
//   coro::Mailbox<Order> orders(loop, 1000);
//   ...
//   if (!orders.post(std::move(order))) refuse(order);              // any thread
//   ...
//   std::optional<Order> order = co_await orders.receive();         // none: closed, and empty
//
// Ownership: the program's; it must outlive its waiters, and all calls to post() and close().
// Either the loop or the Mailbox may be destroyed first. The queue is allocated by the constructor,
// and nothing after that. If memory runs out there, the Mailbox is closed from the start.
// Threads: post() and close() from any thread, but not in a signal handler; everything else on the
// loop's thread. Values are destroyed where they are received, or with the Mailbox.
// Any number of coroutines may wait, and are served in order; they keep the loop alive.
// Cancellation: a coroutine that was woken, and is destroyed before it is resumed, has received
// nothing; the next waiter is woken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "spate/async.h"
#include "spate/coro/extend/reservation_queue.h"
#include "spate/coro/extend/ring.h"
#include "spate/coro/scope.h"
#include "spate/hooks.h"

namespace spate::coro {

template <class T>
class Mailbox {
 public:
  class Receive;

  // `capacity`: at least 1.
  Mailbox(Loop& loop, std::size_t capacity)
      : values_(capacity),
        wakeup_(loop, bind<&Mailbox::wake>(this)),
        cleanup_(loop, bind<&Mailbox::end_with_loop>(this)) {
    is_closed_ = !values_ || !cleanup_.start() || !wakeup_.start();
    if (wakeup_.is_active()) loop.unref();
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox() {
    SPATE_ASSERT(!receivers_.has_waiter(), "a task waits for this Mailbox");
    if (wakeup_.is_active()) loop().ref();
  }

  // Enqueues `value`. Returns false, and leaves `value` to the caller, if there is no room, if the
  // Mailbox is closed, or if its loop was destroyed. Makes a system call only if the loop sleeps.
  bool post(T&& value) {
    const std::lock_guard lock(mutex_);
    if (is_closed_ || values_.size() == values_.capacity()) return false;
    values_.put(std::move(value));
    wakeup_.send();
    return true;
  }
  // Closes the Mailbox: no value can be posted any more, and queued ones can still be received.
  // Calling it again has no effect.
  void close() {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_closed_, true)) return;
    wakeup_.send();
  }
  // co_await: returns the next value; nullopt if the Mailbox is closed and empty.
  Receive receive() { return Receive(*this); }

 private:
  Loop& loop() const { return wakeup_.loop(); }
  // Returns how many waiters may be resumed: all, if no more values can arrive.
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return is_closed_ && values_.size() == 0 ? SIZE_MAX : values_.size();
  }
  void wake() { receivers_.wake(count()); }
  // Wakes again after taking: the receiver of the last value of a closed Mailbox ends the wait of
  // the others.
  std::optional<T> take() {
    std::optional<T> value;
    {
      const std::lock_guard lock(mutex_);
      if (values_.size() > 0) value = values_.take();
    }
    wake();
    return value;
  }
  // Called when the loop is being destroyed: wakeup_ must not be used from then on. The Scope
  // cancels the waiters.
  void end_with_loop() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }

  std::mutex mutex_;  // Guards the next two.
  Ring<T> values_;
  bool is_closed_ = false;
  Async wakeup_;
  Cleanup cleanup_;
  ReservationQueue receivers_;
};

template <class T>
class Mailbox<T>::Receive : public Operation<Receive> {
 public:
  explicit Receive(Mailbox& mailbox) : mailbox_(mailbox) {}
  ~Receive() { cancel(); }

  bool await_ready() const { return mailbox_.receivers_.has_free(mailbox_.count()); }
  bool start(Promise&, Continuation continuation) {
    mailbox_.loop().ref();
    continuation_ = continuation;
    mailbox_.receivers_.push(continuation, mailbox_.count());
    return true;
  }
  void cancel() {
    unref_loop();
    if (mailbox_.receivers_.remove(continuation_)) mailbox_.wake();
  }
  std::optional<T> await_resume() {
    unref_loop();
    mailbox_.receivers_.claim(continuation_);
    return mailbox_.take();
  }

 private:
  void unref_loop() {
    if (continuation_) mailbox_.loop().unref();
  }

  Mailbox& mailbox_;
  Continuation continuation_;
};

}  // namespace spate::coro
