// Channel: values from some tasks of a loop to others, in order, at most so many on their way.
//
//   coro::Channel<std::string> lines(100);
//   ...
//   const bool is_sent = co_await lines.send(std::move(line));   // false: it is closed
//   ...
//   std::optional<std::string> line = co_await lines.receive();  // none: it is closed, and empty
//
// Ownership: the program's; it must outlive those who wait. Its room is allocated when it is made,
// and nothing after that; without memory for it, it is closed from the start.
// Threads: the loop's thread only; from other threads use Mailbox (mailbox.h).
// Who is woken, and destroyed before he goes on, has taken nothing, or sent nothing: the next one
// is woken.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "spate/coro/ring.h"
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

  // co_await: puts `value` in when there is room. False if the channel is closed, or is closed
  // meanwhile; the value is destroyed then.
  Send send(T value) { return Send(*this, std::move(value)); }
  // co_await: the next value; none if the channel is closed and empty.
  Receive receive() { return Receive(*this); }
  // The same if nobody has to wait. False, and `value` is still the caller's: there is no room, or
  // it is closed.
  bool try_send(T&& value) {
    if (!has_room()) return false;
    put(std::move(value));
    return true;
  }
  std::optional<T> try_receive() {
    if (!has_value()) return {};
    return take();
  }
  // Nothing more is put in; what is in it is still received. Twice does nothing.
  void close() {
    is_closed_ = true;
    for (; !senders_.empty(); ++promised_room_) senders_.first()->then().wake();
    for (; !receivers_.empty(); ++promised_values_) receivers_.first()->then().wake();
  }
  bool is_closed() const { return is_closed_; }
  std::size_t size() const { return values_.size(); }

 private:
  // So many in a row need not wait; then others have their turn.
  static constexpr int kPatience = 128;

  bool has_room() const {
    return !is_closed_ && size() + promised_room_ < values_.capacity() && senders_.empty();
  }
  bool has_value() const { return size() > promised_values_ && receivers_.empty(); }
  void put(T&& value) {
    values_.put(std::move(value));
    promise_value();
  }
  std::optional<T> take() {
    std::optional<T> value = values_.take();
    promise_room();
    return value;
  }
  void promise_value() {
    if (receivers_.empty() || size() <= promised_values_) return;
    ++promised_values_;
    receivers_.first()->then().wake();
  }
  void promise_room() {
    if (senders_.empty() || size() + promised_room_ >= values_.capacity()) return;
    ++promised_room_;
    senders_.first()->then().wake();
  }

  Ring<T> values_;
  std::size_t promised_values_ = 0;  // To the receivers who are woken.
  std::size_t promised_room_ = 0;    // To the senders who are woken.
  Line senders_;
  Line receivers_;
  int patience_ = kPatience;
  bool is_closed_;
};

template <class T>
class Channel<T>::Send : public Operation<Send> {
 public:
  Send(Channel& channel, T value) : channel_(channel), value_(std::move(value)) {}
  ~Send() { cancel(); }

  bool await_ready() {
    if (channel_.is_closed_) return true;
    if (!channel_.has_room() || --channel_.patience_ < 0) return false;
    put();
    return true;
  }
  bool start(Promise&, Then then) {
    channel_.patience_ = kPatience;
    then_ = then;
    channel_.senders_.push(then.place());
    channel_.promise_room();
    return true;
  }
  void cancel() {
    if (!then_) return;
    const bool was_promised = !then_.place().is_waiting();
    then_.leave();
    if (!was_promised) return;
    --channel_.promised_room_;
    channel_.promise_room();
  }
  bool await_resume() {
    if (!then_) return is_sent_;
    then_ = Then();
    --channel_.promised_room_;
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
  Then then_;
  bool is_sent_ = false;
};

template <class T>
class Channel<T>::Receive : public Operation<Receive> {
 public:
  explicit Receive(Channel& channel) : channel_(channel) {}
  ~Receive() { cancel(); }

  bool await_ready() const {
    if (channel_.has_value()) return --channel_.patience_ >= 0;
    return channel_.is_closed_;
  }
  bool start(Promise&, Then then) {
    channel_.patience_ = kPatience;
    then_ = then;
    channel_.receivers_.push(then.place());
    channel_.promise_value();
    return true;
  }
  void cancel() {
    if (!then_) return;
    const bool was_promised = !then_.place().is_waiting();
    then_.leave();
    if (!was_promised) return;
    --channel_.promised_values_;
    channel_.promise_value();
  }
  std::optional<T> await_resume() {
    if (then_) {
      then_ = Then();
      --channel_.promised_values_;
    } else if (!channel_.has_value()) {
      return {};
    }
    if (channel_.size() == 0) return {};
    return channel_.take();
  }

 private:
  Channel& channel_;
  Then then_;
};

}  // namespace spate::coro
