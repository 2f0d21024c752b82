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

  // co_await: bytes that have come, at least one; none at the end of file. Errors: what has closed
  // the connection; Error::truncated, the peer has ended inside a message for which somebody
  // waited who was given up before he could be told.
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
  // Gives the connection back, for relay() (relay.h), start_tls() (tls.h) or a handler. What came
  // and was not read is passed to whoever starts it. Nobody waits for this one, which is closed
  // now.
  spate::Stream release();

 private:
  class Reading;
  class Retry;

  // What on_data() was given, and is not yet read. The Stream may be destroyed, or released, by who
  // reads.
  struct Arrival {
    explicit Arrival(Bytes bytes) : left(bytes) {}
    Bytes take() { return std::exchange(left, left.first(0)); }

    Bytes left;
    bool is_gone = false;
    bool is_broken = false;
    union {
      Bytes message;  // The one that was asked for.
    };
  };
  // In one word, what there is for who reads: nothing yet; inside on_data(), an Arrival; if it is
  // to be offered once more, the Retry; or nothing any more.
  class Input {
   public:
    bool is_nothing_yet() const { return bits_ == 0; }
    Arrival* arrival() const {
      return (bits_ & kTags) == 0 ? reinterpret_cast<Arrival*>(bits_) : nullptr;
    }
    // The same of one who goes on, for whom there is an Arrival if it is not over.
    Arrival& given() const { return *reinterpret_cast<Arrival*>(bits_); }
    Retry* retry() const {
      return (bits_ & kRetry) != 0 ? reinterpret_cast<Retry*>(bits_ - kRetry) : nullptr;
    }
    bool is_over() const { return (bits_ & kOver) != 0; }
    bool is_closed() const { return (bits_ & kClosed) == kClosed; }
    // The end has come in the middle of a message for which somebody waited, and nobody has been
    // told.
    bool is_cut() const { return (bits_ & kCut) == kCut; }

    void clear() { bits_ = 0; }
    void set(Arrival& arrival) { bits_ = reinterpret_cast<std::uintptr_t>(&arrival); }
    void set(Retry& retry) { bits_ = reinterpret_cast<std::uintptr_t>(&retry) | kRetry; }
    void end() { bits_ = kOver; }
    void close() { bits_ = is_cut() ? kClosed | kCut : kClosed; }
    void cut() { bits_ |= kCut; }
    void forget_cut() { bits_ &= ~(kCut & ~kOver); }

   private:
    static constexpr std::uintptr_t kRetry = 1;
    static constexpr std::uintptr_t kOver = 2;
    static constexpr std::uintptr_t kTags = kRetry | kOver;
    static constexpr std::uintptr_t kClosed = kOver | 4;
    static constexpr std::uintptr_t kCut = kOver | 8;

    std::uintptr_t bits_ = 0;
  };
  // Who reads, in a word.
  class Reader {
   public:
    Reader() = default;
    inline Reader(Read& read, const Promise& self);
    inline Reader(Framed& framed, const Promise& self);
    inline Reader(Read& read, Then then);
    inline Reader(Framed& framed, Then then);
    explicit operator bool() const { return bits_ != kNobody; }
    bool is(const Reading& reading) const { return address() == &reading; }
    Reading& operator*() const { return *address(); }
    // A coroutine that takes all that comes, and no more than that.
    bool is_plain() const { return (bits_ & kTags) == 0; }
    inline Promise& plain() const;
    inline Framed* framed() const;
    // It is no longer plain.
    void retry() { bits_ |= kRetried; }

   private:
    static std::uintptr_t tag_of(Then then) { return then.is_chooser() ? kChooser : 0; }
    inline Reader(Reading& reading, std::uintptr_t tags);
    // Null if it is nobody.
    Reading* address() const { return reinterpret_cast<Reading*>(bits_ & ~kTags); }

    static constexpr std::uintptr_t kFramed = 1;
    static constexpr std::uintptr_t kChooser = 2;
    static constexpr std::uintptr_t kRetried = 4;
    static constexpr std::uintptr_t kTags = kFramed | kChooser | kRetried;
    static constexpr std::uintptr_t kNobody = kTags;

    std::uintptr_t bits_ = kNobody;
  };
  struct Waiting {
    Reader reader;
    Wait* wait = nullptr;
  };

  std::size_t on_data(Bytes bytes) override;
  void on_end() override;
  void on_drained() override;
  void on_closed(std::error_code error) override;

  // Bytes, or their end: not when a reader has just been given all that came.
  bool may_have_more() const {
    if (const Arrival* const arrival = input_.arrival()) return !arrival->left.empty();
    return input_.is_over();
  }
  void offer(Arrival& arrival);
  bool give(Arrival& arrival);
  bool give_framed(Framed& framed, Arrival& arrival);
  void keep_for_later(Then then);
  void drop_retry();
  bool is_anybody_waiting() const;
  void close(std::error_code error);
  void end_read(Reader reader);
  std::error_code error() const { return input_.is_closed() ? error_ : std::error_code(); }
  std::error_code error_of_read();

  spate::Stream stream_;
  Input input_;
  union {
    Waiting waiting_;        // Until it is closed:
    std::error_code error_;  // Then nobody waits.
  };
};

// Part of what waits for bytes. A chain that is doomed begins, too: it is given up when the chain
// is left, and nothing has come of it.
class SPATE_EXPORT Stream::Reading {
 public:
  void cancel();

 protected:
  explicit Reading(Stream& stream) : stream_(stream) {}
  ~Reading() {
    if (then_) cancel();
  }

  bool begin(Reader self, Then then) {
    SPATE_ASSERT(!stream_.waiting_.reader, "one coroutine reads at a time");
    then_ = then;
    stream_.waiting_.reader = self;
    if (stream_.input_.is_nothing_yet()) stream_.stream_.resume();
    return true;
  }

  Stream& stream_;
  Then then_;

 private:
  friend class Stream;
};

// What read_some() gives to co_await.
class SPATE_EXPORT Stream::Read : public Operation<Read>, public Reading {
 public:
  explicit Read(Stream& stream) : Reading(stream) {}

  bool await_ready() const { return stream_.may_have_more(); }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> handle) {
    Promise& self = handle.promise();
    return begin(Reader(*this, self), Then(self));
  }
  bool start(Promise&, Then then) { return begin(Reader(*this, then), then); }
  Result<Bytes> await_resume() {
    Result<Bytes> some =
        stream_.input_.is_over() ? end_of_file() : Result<Bytes>(stream_.input_.given().take());
    then_ = Then();  // Last, where the compiler sees that the destructor has nothing to do.
    return some;
  }

 private:
  Result<Bytes> end_of_file();
};

// What read() gives to co_await is one of these.
class SPATE_EXPORT Stream::Framed : public Operation<Framed>, public Reading {
 public:
  using Next = Frame (*)(Framed& self, Bytes bytes);

  bool await_ready();
  template <class P>
  bool await_suspend(std::coroutine_handle<P> handle) {
    Promise& self = handle.promise();
    return begin(Reader(*this, self), Then(self));
  }
  bool start(Promise&, Then then) { return begin(Reader(*this, then), then); }
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
inline Stream::Reader::Reader(Read& read, Then then) : Reader(read, tag_of(then)) {}
inline Stream::Reader::Reader(Framed& framed, Then then) : Reader(framed, kFramed | tag_of(then)) {}
inline Promise& Stream::Reader::plain() const {
  return reinterpret_cast<Reading*>(bits_)->then_.promise();
}
inline Stream::Framed* Stream::Reader::framed() const {
  return (bits_ & kFramed) != 0 ? static_cast<Framed*>(&**this) : nullptr;
}

// What send(), drained() and finish() give to co_await.
class SPATE_EXPORT Stream::Wait : public Operation<Wait> {
 public:
  enum class For : std::uint8_t { room, end, nothing };  // Nothing: it was refused.

  Wait(Stream& stream, For what)
      : bits_(reinterpret_cast<std::uintptr_t>(&stream) | static_cast<std::uintptr_t>(what)) {}
  ~Wait() {
    if (then_) cancel();
  }

  bool await_ready() const;
  bool start(Promise& chain, Then then);
  void cancel();
  Result<void> await_resume();

 private:
  friend class Stream;

  static constexpr std::uintptr_t kFor = 3;

  Stream& stream() const { return *reinterpret_cast<Stream*>(bits_ & ~kFor); }
  For what() const { return static_cast<For>(bits_ & kFor); }

  std::uintptr_t bits_;
  Then then_;
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
