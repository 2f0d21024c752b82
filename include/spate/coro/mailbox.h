// Mailbox: values from any thread to the tasks of one loop, in order, at most so many on their way.
//
//   coro::Mailbox<Order> orders(loop, 1000);
//   ...
//   if (!orders.post(std::move(order))) refuse(order);              // any thread
//   ...
//   std::optional<Order> order = co_await orders.receive();         // none: closed, and empty
//
// Ownership: the program's; it must outlive those who wait, and all calls to post() and close(). Of
// the loop and it, either may be destroyed first. Its room is allocated when it is made, and
// nothing after that; without memory for it, it is closed from the start. Threads: post() and
// close() anywhere, but not in a signal handler; everything else on the loop's thread. Values are
// destroyed where they are received, or with the Mailbox. Any number of coroutines may wait, and
// are served in order; they keep the loop alive. Who is woken, and destroyed before he goes on, has
// taken nothing: the next one is woken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "spate/async.h"
#include "spate/coro/ring.h"
#include "spate/coro/scope.h"
#include "spate/coro/turns.h"
#include "spate/hooks.h"

namespace spate::coro {

template <class T>
class Mailbox {
 public:
  class Receive;

  // `capacity`: at least 1.
  Mailbox(Loop& loop, std::size_t capacity)
      : values_(capacity),
        bell_(loop, bind<&Mailbox::wake>(this)),
        cleanup_(loop, bind<&Mailbox::end_with_loop>(this)) {
    is_closed_ = !values_ || !cleanup_.start() || !bell_.start();
    if (bell_.is_active()) loop.unref();
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox() {
    SPATE_ASSERT(!receivers_.is_anybody_waiting(), "somebody waits for this Mailbox");
    if (bell_.is_active()) loop().ref();
  }

  // False, and `value` is still the caller's: there is no room, it is closed, or its loop has
  // ended. A system call only if the loop sleeps.
  bool post(T&& value) {
    const std::lock_guard lock(mutex_);
    if (is_closed_ || values_.size() == values_.capacity()) return false;
    values_.put(std::move(value));
    bell_.send();
    return true;
  }
  // Nothing more is put in; what is in it is still received. Twice does nothing.
  void close() {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_closed_, true)) return;
    bell_.send();
  }
  // co_await: the next value; none if the Mailbox is closed and empty.
  Receive receive() { return Receive(*this); }

 private:
  Loop& loop() const { return bell_.loop(); }
  // How many may go on: all, if nothing more comes.
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return is_closed_ && values_.size() == 0 ? SIZE_MAX : values_.size();
  }
  void wake() { receivers_.promise(count()); }
  // Whoever takes the last one ends the waiting of the others, if nothing more comes.
  std::optional<T> take() {
    std::optional<T> value;
    {
      const std::lock_guard lock(mutex_);
      if (values_.size() > 0) value = values_.take();
    }
    wake();
    return value;
  }
  // The bell must not be rung any more. Who waits is cancelled by his Scope.
  void end_with_loop() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }

  std::mutex mutex_;  // Of these two:
  Ring<T> values_;
  bool is_closed_ = false;
  Async bell_;
  Cleanup cleanup_;
  Turns receivers_;
};

template <class T>
class Mailbox<T>::Receive : public Operation<Receive> {
 public:
  explicit Receive(Mailbox& mailbox) : mailbox_(mailbox) {}
  ~Receive() { cancel(); }

  bool await_ready() const { return mailbox_.receivers_.leaves_one(mailbox_.count()); }
  bool start(Promise&, Then then) {
    mailbox_.loop().ref();
    then_ = then;
    mailbox_.receivers_.wait(then, mailbox_.count());
    return true;
  }
  void cancel() {
    let_go();
    if (mailbox_.receivers_.give_up(then_)) mailbox_.wake();
  }
  std::optional<T> await_resume() {
    let_go();
    mailbox_.receivers_.take(then_);
    return mailbox_.take();
  }

 private:
  void let_go() {
    if (then_) mailbox_.loop().unref();
  }

  Mailbox& mailbox_;
  Then then_;
};

}  // namespace spate::coro
