// Stream: a connection that is read and written by coroutines. It owns the spate::Stream and is its
// handler.
//
//   coro::Task<void> echo(spate::Stream accepted) {
//     coro::Stream stream(std::move(accepted));
//     for (;;) {
//       const Result<Bytes> some = co_await stream.read_some();
//       if (!some || some->empty()) co_return;
//       stream.write(*some);
//     }
//   }
//
// Ownership: it does not move. Destroying it closes the connection as a spate::Stream does.
// Threads: the loop's thread only.
// One coroutine may read, and one may wait to send, at a time. What is read is valid until the
// coroutine waits for anything: copy what has to last. A read that is given up has taken nothing;
// what was written stays queued.
// Back-pressure: send() waits while the queue is full. When nobody reads, what has come is kept, at
// most one arrival of it, and the peer waits.
// Deadlines, limits, rates and options are those of stream().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "spate/coro/scope.h"
#include "spate/net/framing.h"
#include "spate/net/stream.h"

namespace spate::coro {

class SPATE_EXPORT Stream final : StreamHandler {
 public:
  class Read;
  template <class Framing>
  class ReadFramed;
  class Wait;

  explicit Stream(spate::Stream stream);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // co_await: bytes that have come, at least one; none at the end of file. Errors: what has closed
  // the connection.
  inline Read read_some();
  // co_await: the next message, in one piece. Errors: Error::ended, the peer has ended before it;
  // Error::truncated, inside it; EBADMSG, the framing is broken; what has closed the connection.
  // A message that is longer than QueueLimits::max_unread closes it. `framing` is of framing.h, or
  // has its next().
  template <class Framing>
  ReadFramed<Framing> read(Framing framing);
  // The same of `count` bytes, at least 1.
  inline ReadFramed<FixedSize> read_exactly(std::size_t count);

  // As Stream::write(): never waits.
  bool write(Bytes bytes) { return stream_.write(bytes); }
  bool write(std::string_view text) { return stream_.write(text); }
  bool write(Buffer&& buffer) { return stream_.write(std::move(buffer)); }
  // co_await: write(), and if the queue is full after that, until it has drained. Errors: EPIPE,
  // nothing was written; what has closed the connection.
  inline Wait send(Bytes bytes);
  inline Wait send(std::string_view text);
  // co_await: until the queue has drained, if it is full.
  inline Wait drained();
  // co_await: Stream::end(), and until both sides have ended.
  inline Wait finish();

  spate::Stream& stream() { return stream_; }

 private:
  // What on_data() was given, and is not yet read. The Stream may be destroyed by who reads.
  struct Arrival {
    Bytes left;
    bool is_gone = false;
  };
  enum class Over : std::uint8_t { nothing, input, all };
  class Retry;

  std::size_t on_data(Bytes bytes) override;
  void on_end() override;
  void on_drained() override;
  void on_closed(std::error_code error) override;

  // Bytes, or their end: not when a reader has just been given all that came.
  bool may_have_more() const {
    if (arrival_ != nullptr && !arrival_->left.empty()) return true;
    return over_ != Over::nothing;
  }
  bool give(Read& read);
  bool give_framed(Read& read);
  void keep_for_later(Then then);
  void end_read();
  std::error_code reason(bool is_inside) const;

  spate::Stream stream_;
  Read* reading_ = nullptr;
  Wait* waiting_ = nullptr;
  Arrival* arrival_ = nullptr;  // In on_data().
  std::unique_ptr<Retry> retry_;
  std::error_code error_;
  Over over_ = Over::nothing;
};

// What read_some() gives to co_await.
class SPATE_EXPORT Stream::Read : public Operation<Read> {
 public:
  using Next = Frame (*)(Read& self, Bytes bytes);

  explicit Read(Stream& stream) : Read(stream, nullptr) {}
  ~Read() {
    if (then_) cancel();
  }

  bool await_ready() {
    SPATE_ASSERT(stream_.reading_ == nullptr, "one coroutine reads at a time");
    return stream_.may_have_more() && try_now();
  }
  bool start(Promise&, Then then) {
    then_ = then;
    stream_.reading_ = this;
    if (stream_.arrival_ == nullptr) stream_.stream_.resume();
    return true;
  }
  void cancel();
  Result<Bytes> await_resume() {
    then_ = Then();
    return outcome_;
  }

 protected:
  Read(Stream& stream, Next next) : stream_(stream), next_(next) {}

 private:
  friend class Stream;

  bool try_now();
  void end(bool is_inside);

  Stream& stream_;
  Next next_;  // nullptr: all that is there.
  Then then_;
  Result<Bytes> outcome_{};
};

// What read() gives to co_await.
template <class Framing>
class Stream::ReadFramed : public Read {
 public:
  ReadFramed(Stream& stream, Framing framing) : Read(stream, next), framing_(std::move(framing)) {}

 private:
  static Frame next(Read& self, Bytes bytes) {
    return static_cast<ReadFramed&>(self).framing_.next(bytes);
  }

  Framing framing_;
};

// What send(), drained() and finish() give to co_await.
class SPATE_EXPORT Stream::Wait : public Operation<Wait> {
 public:
  enum class For : bool { room, end };

  Wait(Stream& stream, For what, std::error_code error = {})
      : stream_(stream), error_(error), what_(what) {}
  ~Wait() { cancel(); }

  bool await_ready() const;
  bool start(Promise& chain, Then then);
  void cancel();
  Result<void> await_resume();

 private:
  friend class Stream;

  void end();

  Stream& stream_;
  Then then_;
  std::error_code error_;
  For what_;
};

inline Stream::Read Stream::read_some() { return Read(*this); }

template <class Framing>
Stream::ReadFramed<Framing> Stream::read(Framing framing) {
  return ReadFramed<Framing>(*this, std::move(framing));
}

inline Stream::ReadFramed<FixedSize> Stream::read_exactly(std::size_t count) {
  return read(FixedSize{count});
}

inline Stream::Wait Stream::send(Bytes bytes) {
  if (stream_.write(bytes)) return Wait(*this, Wait::For::room);
  return Wait(*this, Wait::For::room, error_ ? error_ : make_error_code(std::errc::broken_pipe));
}
inline Stream::Wait Stream::send(std::string_view text) { return send(bytes_of(text)); }
inline Stream::Wait Stream::drained() { return Wait(*this, Wait::For::room); }
inline Stream::Wait Stream::finish() {
  stream_.end();
  return Wait(*this, Wait::For::end);
}

}  // namespace spate::coro
