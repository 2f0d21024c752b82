// Stream: a connection that coroutines read and write. It owns the spate::Stream and is its
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
// At most one coroutine reads, and one waits to send, at a time. Bytes that were read are valid
// until the coroutine next waits: copy them to keep them. A cancelled read consumes nothing; bytes
// that were written stay queued.
// Back-pressure: send() waits while the queue is full. While no coroutine reads, at most one
// arrival is kept, and the peer waits.
// Deadlines, limits, rates and options are those of stream().
#pragma once

#include <cstddef>
#include <cstdint>
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
  class Framed;
  template <class Framing>
  class ReadFramed;
  class Wait;

  explicit Stream(spate::Stream stream);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // co_await: returns bytes that have arrived, at least one; empty at end of file. Errors: the
  // error that closed the connection; Error::truncated if EOF arrived inside a message, and the
  // read that was waiting for the rest had been cancelled.
  inline Read read_some();
  // co_await: returns the next message, in one piece. `framing` is one of framing.h, or has a
  // next() like theirs. Errors: Error::ended if the peer ended before the message; Error::truncated
  // if it ended inside; EBADMSG if the framing is broken; the error that closed the connection. A
  // message longer than QueueLimits::max_unread closes it.
  template <class Framing>
  ReadFramed<Framing> read(Framing framing);
  // co_await: returns the next `count` bytes, at least 1. Errors: as above.
  inline ReadFramed<FixedSize> read_exactly(std::size_t count);

  // Writes as Stream::write(). Never waits.
  bool write(Bytes bytes) { return stream_.write(bytes); }
  bool write(std::string_view text) { return stream_.write(text); }
  bool write(Buffer&& buffer) { return stream_.write(std::move(buffer)); }
  // co_await: writes as write(), and waits for the queue to drain if it is then full. Errors: EPIPE
  // if nothing was written; the error that closed the connection.
  inline Wait send(Bytes bytes);
  inline Wait send(std::string_view text);
  // co_await: waits until the queue has drained, if it is full.
  inline Wait drained();
  // co_await: calls Stream::end(), and waits until both sides have ended.
  inline Wait finish();

  spate::Stream& stream() { return stream_; }
  // Returns the connection, for relay() (relay.h), start_tls() (tls.h) or a handler. Unread bytes
  // are passed to the handler that starts it. No coroutine may be waiting on this object, which is
  // closed afterwards.
  spate::Stream release();

 private:
  class Reading;
  class Retry;

  // The bytes passed to on_data() that were not yet read. `is_detached` is set if the reader
  // destroys or releases the Stream.
  struct Arrival {
    explicit Arrival(Bytes bytes) : left(bytes) {}
    Bytes take() { return std::exchange(left, left.first(0)); }

    Bytes left;
    bool is_detached = false;
    bool is_broken = false;
    union {
      Bytes message;  // The message that was requested.
    };
  };
  // The state of the input, in one word: no input yet; an Arrival, inside on_data(); a Retry, if
  // the input must be offered again; or the end.
  class Input {
   public:
    bool is_nothing_yet() const { return bits_ == 0; }
    Arrival* arrival() const {
      return (bits_ & kTags) == 0 ? reinterpret_cast<Arrival*>(bits_) : nullptr;
    }
    // As arrival(), for a resumed reader: there is an Arrival unless is_over().
    Arrival& current_arrival() const { return *reinterpret_cast<Arrival*>(bits_); }
    Retry* retry() const {
      return (bits_ & kRetry) != 0 ? reinterpret_cast<Retry*>(bits_ - kRetry) : nullptr;
    }
    bool is_over() const { return (bits_ & kOver) != 0; }
    bool is_closed() const { return (bits_ & kClosed) == kClosed; }
    // Returns whether EOF arrived inside a message whose reader had been cancelled, and no read has
    // reported it yet.
    bool is_truncated() const { return (bits_ & kTruncated) == kTruncated; }

    void clear() { bits_ = 0; }
    void set(Arrival& arrival) { bits_ = reinterpret_cast<std::uintptr_t>(&arrival); }
    void set(Retry& retry) { bits_ = reinterpret_cast<std::uintptr_t>(&retry) | kRetry; }
    void end() { bits_ = kOver; }
    void close() { bits_ = is_truncated() ? kClosed | kTruncated : kClosed; }
    void truncate() { bits_ |= kTruncated; }
    void clear_truncated() { bits_ &= ~(kTruncated & ~kOver); }

   private:
    static constexpr std::uintptr_t kRetry = 1;
    static constexpr std::uintptr_t kOver = 2;
    static constexpr std::uintptr_t kTags = kRetry | kOver;
    static constexpr std::uintptr_t kClosed = kOver | 4;
    static constexpr std::uintptr_t kTruncated = kOver | 8;

    std::uintptr_t bits_ = 0;
  };
  // The waiting reader, in one word.
  class Reader {
   public:
    Reader() = default;
    inline Reader(Read& read, const Promise& self);
    inline Reader(Framed& framed, const Promise& self);
    inline Reader(Read& read, Continuation continuation);
    inline Reader(Framed& framed, Continuation continuation);
    explicit operator bool() const { return bits_ != kNone; }
    // Returns whether `reading` is the reader.
    bool is(const Reading& reading) const { return address() == &reading; }
    Reading& operator*() const { return *address(); }
    // Returns whether it is a coroutine that reads with read_some() and no Selector.
    bool is_plain() const { return (bits_ & kTags) == 0; }
    inline Promise& plain() const;
    inline Framed* framed() const;
    // Marks it as retried; it is no longer plain.
    void retry() { bits_ |= kRetried; }

   private:
    static std::uintptr_t tag_of(Continuation continuation) {
      return continuation.is_selector() ? kSelector : 0;
    }
    inline Reader(Reading& reading, std::uintptr_t tags);
    // Returns nullptr without a reader.
    Reading* address() const { return reinterpret_cast<Reading*>(bits_ & ~kTags); }

    static constexpr std::uintptr_t kFramed = 1;
    static constexpr std::uintptr_t kSelector = 2;
    static constexpr std::uintptr_t kRetried = 4;
    static constexpr std::uintptr_t kTags = kFramed | kSelector | kRetried;
    static constexpr std::uintptr_t kNone = kTags;

    std::uintptr_t bits_ = kNone;
  };
  struct Waiting {
    Reader reader;
    Wait* wait = nullptr;
  };

  std::size_t on_data(Bytes bytes) override;
  void on_end() override;
  void on_drained() override;
  void on_closed(std::error_code error) override;

  // True for bytes, or their end. False after a reader has just been given all bytes.
  bool may_have_more() const {
    if (const Arrival* const arrival = input_.arrival()) return !arrival->left.empty();
    return input_.is_over();
  }
  void offer(Arrival& arrival);
  bool deliver(Arrival& arrival);
  bool deliver_framed(Framed& framed, Arrival& arrival);
  void retry_later(Continuation continuation);
  void drop_retry();
  bool has_waiter() const;
  void close(std::error_code error);
  void end_read(Reader reader);
  std::error_code error() const { return input_.is_closed() ? error_ : std::error_code(); }
  std::error_code error_of_read();

  spate::Stream stream_;
  Input input_;
  union {
    Waiting waiting_;        // Valid until it is closed.
    std::error_code error_;  // Valid after that; there are no waiters then.
  };
};

// The base of operations that wait for bytes. A fiber that is being cancelled begins to wait, too:
// the wait is abandoned when the fiber suspends, without effect.
class SPATE_EXPORT Stream::Reading {
 public:
  void cancel();

 protected:
  explicit Reading(Stream& stream) : stream_(stream) {}
  ~Reading() {
    if (continuation_) cancel();
  }

  // Starts to wait. Returns false if the result is there at once.
  bool begin(Reader self, Continuation continuation) {
    SPATE_ASSERT(!stream_.waiting_.reader, "one coroutine reads at a time");
    continuation_ = continuation;
    stream_.waiting_.reader = self;
    if (stream_.input_.is_nothing_yet()) stream_.stream_.resume();
    return true;
  }

  Stream& stream_;
  Continuation continuation_;

 private:
  friend class Stream;
};

// The awaitable of read_some().
class SPATE_EXPORT Stream::Read : public Operation<Read>, public Reading {
 public:
  explicit Read(Stream& stream) : Reading(stream) {}

  bool await_ready() const { return stream_.may_have_more(); }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> handle) {
    Promise& self = handle.promise();
    return begin(Reader(*this, self), Continuation(self));
  }
  bool start(Promise&, Continuation continuation) {
    return begin(Reader(*this, continuation), continuation);
  }
  Result<Bytes> await_resume() {
    Result<Bytes> some = stream_.input_.is_over()
                             ? end_of_file()
                             : Result<Bytes>(stream_.input_.current_arrival().take());
    continuation_ = Continuation();  // Last, so that the compiler can see that the destructor has
                                     // nothing to do.
    return some;
  }

 private:
  Result<Bytes> end_of_file();
};

// The base of the awaitables of read().
class SPATE_EXPORT Stream::Framed : public Operation<Framed>, public Reading {
 public:
  using Next = Frame (*)(Framed& self, Bytes bytes);

  bool await_ready();
  template <class P>
  bool await_suspend(std::coroutine_handle<P> handle) {
    Promise& self = handle.promise();
    return begin(Reader(*this, self), Continuation(self));
  }
  bool start(Promise&, Continuation continuation) {
    return begin(Reader(*this, continuation), continuation);
  }
  Result<Bytes> await_resume();

 protected:
  Framed(Stream& stream, Next next) : Reading(stream), next_(next) {}

 private:
  friend class Stream;

  Next next_;
};

template <class Framing>
class Stream::ReadFramed : public Framed {
 public:
  ReadFramed(Stream& stream, Framing framing)
      : Framed(stream, next), framing_(std::move(framing)) {}

 private:
  static Frame next(Framed& self, Bytes bytes) {
    return static_cast<ReadFramed&>(self).framing_.next(bytes);
  }

  Framing framing_;
};

inline Stream::Reader::Reader(Reading& reading, std::uintptr_t tags)
    : bits_(reinterpret_cast<std::uintptr_t>(&reading) | tags) {}
inline Stream::Reader::Reader(Read& read, const Promise&) : Reader(read, 0) {}
inline Stream::Reader::Reader(Framed& framed, const Promise&) : Reader(framed, kFramed) {}
inline Stream::Reader::Reader(Read& read, Continuation continuation)
    : Reader(read, tag_of(continuation)) {}
inline Stream::Reader::Reader(Framed& framed, Continuation continuation)
    : Reader(framed, kFramed | tag_of(continuation)) {}
inline Promise& Stream::Reader::plain() const {
  return reinterpret_cast<Reading*>(bits_)->continuation_.promise();
}
inline Stream::Framed* Stream::Reader::framed() const {
  return (bits_ & kFramed) != 0 ? static_cast<Framed*>(&**this) : nullptr;
}

// The awaitable of send(), drained() and finish().
class SPATE_EXPORT Stream::Wait : public Operation<Wait> {
 public:
  enum class For : std::uint8_t { room, end, nothing };  // nothing: the write was refused.

  Wait(Stream& stream, For what)
      : bits_(reinterpret_cast<std::uintptr_t>(&stream) | static_cast<std::uintptr_t>(what)) {}
  ~Wait() {
    if (continuation_) cancel();
  }

  bool await_ready() const;
  bool start(Promise& fiber, Continuation continuation);
  void cancel();
  Result<void> await_resume();

 private:
  friend class Stream;

  static constexpr std::uintptr_t kFor = 3;

  Stream& stream() const { return *reinterpret_cast<Stream*>(bits_ & ~kFor); }
  For what() const { return static_cast<For>(bits_ & kFor); }

  std::uintptr_t bits_;
  Continuation continuation_;
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
  return Wait(*this, stream_.write(bytes) ? Wait::For::room : Wait::For::nothing);
}
inline Stream::Wait Stream::send(std::string_view text) { return send(bytes_of(text)); }
inline Stream::Wait Stream::drained() { return Wait(*this, Wait::For::room); }
inline Stream::Wait Stream::finish() {
  stream_.end();
  return Wait(*this, Wait::For::end);
}

}  // namespace spate::coro
