// Channel: a bounded queue of values between tasks of one loop, in order.
//
//   coro::Channel<std::string> lines(100);
//   ...
//   const bool is_sent = co_await lines.send(std::move(line));   // false: it is closed
//   ...
//   std::optional<std::string> line = co_await lines.receive();  // none: it is closed, and empty
//
// Ownership: the program's; it must outlive its waiters. The queue is allocated by the constructor,
// and nothing after that. If memory runs out there, the channel is closed from the start.
// Threads: the loop's thread only; from other threads use Mailbox (mailbox.h).
// Cancellation: a coroutine that was woken, and is destroyed before it is resumed, has neither
// received nor sent anything; the next waiter is woken.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "spate/coro/extend/ring.h"
#include "spate/coro/scope.h"

namespace spate::coro {

template <class T>
class Channel {
 public:
  class Send;
  class Receive;

  // `capacity`: at least 1.
  explicit Channel(std::size_t capacity) : values_(capacity), is_closed_(!values_) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // co_await: enqueues `value` when there is room. Returns false, and the value is destroyed, if
  // the channel is closed now or meanwhile.
  Send send(T value) { return Send(*this, std::move(value)); }
  // co_await: returns the next value; nullopt if the channel is closed and empty.
  Receive receive() { return Receive(*this); }
  // As above without waiting. try_send() returns false, and leaves `value` to the caller, if there
  // is no room or the channel is closed.
  bool try_send(T&& value) {
    if (!has_room()) return false;
    put(std::move(value));
    return true;
  }
  std::optional<T> try_receive() {
    if (!has_value()) return {};
    return take();
  }
  // Closes the channel: no value can be sent any more, and queued ones can still be received.
  // Calling it again has no effect.
  void close() {
    is_closed_ = true;
    for (; !senders_.empty(); ++reserved_room_) senders_.first()->as_continuation().wake();
    for (; !receivers_.empty(); ++reserved_values_) receivers_.first()->as_continuation().wake();
  }
  bool is_closed() const { return is_closed_; }
  std::size_t size() const { return values_.size(); }

 private:
  // How many operations in a row complete without waiting. The next one waits, so that other tasks
  // run.
  static constexpr int kBudget = 128;

  bool has_room() const {
    return !is_closed_ && size() + reserved_room_ < values_.capacity() && senders_.empty();
  }
  bool has_value() const { return size() > reserved_values_ && receivers_.empty(); }
  void put(T&& value) {
    values_.put(std::move(value));
    wake_receiver();
  }
  std::optional<T> take() {
    std::optional<T> value = values_.take();
    wake_sender();
    return value;
  }
  void wake_receiver() {
    if (receivers_.empty() || size() <= reserved_values_) return;
    ++reserved_values_;
    receivers_.first()->as_continuation().wake();
  }
  void wake_sender() {
    if (senders_.empty() || size() + reserved_room_ >= values_.capacity()) return;
    ++reserved_room_;
    senders_.first()->as_continuation().wake();
  }

  Ring<T> values_;
  std::size_t reserved_values_ = 0;  // Reserved for woken receivers.
  std::size_t reserved_room_ = 0;    // Reserved for woken senders.
  WaitList senders_;
  WaitList receivers_;
  int budget_ = kBudget;
  bool is_closed_;
};

template <class T>
class Channel<T>::Send : public Operation<Send> {
 public:
  Send(Channel& channel, T value) : channel_(channel), value_(std::move(value)) {}
  ~Send() { cancel(); }

  bool await_ready() {
    if (channel_.is_closed_) return true;
    if (!channel_.has_room() || --channel_.budget_ < 0) return false;
    put();
    return true;
  }
  bool start(Promise&, Continuation continuation) {
    channel_.budget_ = kBudget;
    continuation_ = continuation;
    channel_.senders_.push(continuation.node());
    channel_.wake_sender();
    return true;
  }
  void cancel() {
    if (!continuation_) return;
    const bool had_reservation = !continuation_.node().is_waiting();
    continuation_.cancel();
    if (!had_reservation) return;
    --channel_.reserved_room_;
    channel_.wake_sender();
  }
  bool await_resume() {
    if (!continuation_) return is_sent_;
    continuation_ = Continuation();
    --channel_.reserved_room_;
    if (!channel_.is_closed_) put();
    return is_sent_;
  }

 private:
  void put() {
    channel_.put(std::move(value_));
    is_sent_ = true;
  }

  Channel& channel_;
  T value_;
  Continuation continuation_;
  bool is_sent_ = false;
};

template <class T>
class Channel<T>::Receive : public Operation<Receive> {
 public:
  explicit Receive(Channel& channel) : channel_(channel) {}
  ~Receive() { cancel(); }

  bool await_ready() const {
    if (channel_.has_value()) return --channel_.budget_ >= 0;
    return channel_.is_closed_;
  }
  bool start(Promise&, Continuation continuation) {
    channel_.budget_ = kBudget;
    continuation_ = continuation;
    channel_.receivers_.push(continuation.node());
    channel_.wake_receiver();
    return true;
  }
  void cancel() {
    if (!continuation_) return;
    const bool had_reservation = !continuation_.node().is_waiting();
    continuation_.cancel();
    if (!had_reservation) return;
    --channel_.reserved_values_;
    channel_.wake_receiver();
  }
  std::optional<T> await_resume() {
    if (continuation_) {
      continuation_ = Continuation();
      --channel_.reserved_values_;
    } else if (!channel_.has_value()) {
      return {};
    }
    if (channel_.size() == 0) return {};
    return channel_.take();
  }

 private:
  Channel& channel_;
  Continuation continuation_;
};

}  // namespace spate::coro
