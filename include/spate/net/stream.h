// Stream: a connection that carries bytes in order, both ways: TCP, a unix socket, a pipe, or a
// pair in memory.
//
// Ownership: a Stream is the handle of its connection; moving it moves the connection. Destroying
// it closes gracefully: queued bytes are still sent, unread input is discarded, and no callback
// follows. abort() resets the connection. The loop may be destroyed first; the Stream is then
// closed.
// Threads: the loop's thread only.
// Callbacks: a StreamHandler's functions, called by the loop and never from inside a call to the
// Stream. Inside them everything is allowed, destroying the Stream and the handler included.
//
// Reading: bytes arrive in memory of the loop, valid until the callback returns, even if it runs
// the loop. The handler returns how many it has used; the rest is passed in again, together with
// what follows. An idle Stream has no buffer.
// Writing: outside of run(), at once if nothing is queued; what the kernel does not take is queued.
// Writes inside the Stream's own callback are gathered and sent when the callback returns. Small
// writes in other callbacks, of 4 KiB and 16 KiB together, are gathered and sent before the loop
// waits: a broadcast costs one system call per receiver and turn, however many messages it has.
// What is written to one Stream after another, from the same memory, is copied once for all of
// them, and up to 64 KiB of it are gathered.
// Back-pressure: producers use is_full() and on_drained(). A server that answers what it reads sets
// QueueLimits::pause_reading, and stops answering at is_full(): the input that it leaves is passed
// in again when the queue has drained.
// Running the loop inside a callback: what was written so far, to any Stream, is sent first, and
// the queue goes on being sent; this Stream makes no calls until the callback has returned.
// The loop: run() does not return while a Stream reads (started, not paused, no end of file), has
// bytes to send, waits for its rate limit, or, closed or destroyed, waits for its peer. A Stream
// that was not started, or is paused, with nothing to send does not keep the loop alive; neither
// does a deadline. A pair in memory keeps it alive only while bytes are in flight.
// Endings: docs/special-problems.md has the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/net/address.h"
#include "spate/net/buffer.h"
#include "spate/net/rate_limit.h"
#include "spate/time.h"

namespace spate {

class Connection;
class Loop;
class TlsContext;
struct ConnectOptions;

// Closes each. Any thread.
SPATE_EXPORT void close_descriptors(std::span<const int> descriptors);

// Every function is inline: the library is built without RTTI and must not provide the type
// information.
class SPATE_EXPORT StreamHandler {
 public:
  // Bytes from the peer, at least one. Returns how many were used, from the front; the rest is kept
  // and passed in again, in one piece with what follows: when more has arrived, after start() or
  // resume(), and, if is_full() when they were left, after on_drained(); with Stream::want(), when
  // there are enough. The view is valid until the call returns. If release() was called inside, all
  // the bytes are the caller's.
  virtual std::size_t on_data(Bytes bytes) = 0;
  // End of file. Unless half open (Stream::set_half_open()), our side ends too, once the queue is
  // sent. Input that was left at a full queue is passed in again first. What on_data() has not used
  // is in Stream::unread() until this returns, and is then discarded.
  virtual void on_end() {}
  // Descriptors from the peer (Stream::send_descriptors()), just before the bytes that they came
  // with; the kernel may put bytes that were sent earlier in front of those, never later ones. The
  // handler owns them; the default closes them. With `some_lost`, the process had no descriptors
  // left for the others.
  virtual void on_descriptors(std::span<const int> descriptors, [[maybe_unused]] bool some_lost) {
    close_descriptors(descriptors);
  }
  // Stream::connect() has succeeded. If it fails, on_closed() gets the error. Not called after
  // Stream::close().
  virtual void on_connected() {}
  // The queue exceeded `high` and is down to `low`: go on writing.
  virtual void on_drained() {}
  // The last call, once: without an error when both sides have ended, else with the reason:
  // ECONNRESET, EPIPE, ... or Error::idle_timeout, read_timeout, write_timeout, deadline,
  // queue_full, unread_full.
  virtual void on_closed(std::error_code error) = 0;

 protected:
  ~StreamHandler() = default;
};

// What happens to a write that would exceed QueueLimits::max.
enum class WhenFull : std::uint8_t {
  close,  // The connection is reset, and closed with Error::queue_full.
  drop,   // write() returns false, and nothing of it is sent.
};

// Whether Stream::close() waits for the peer's end.
enum class Linger : std::uint8_t {
  yes,
  // The peer has said, in the words of its protocol, that it sends no more: a client that asks for
  // one answer and the end. Over a bare socket its end is not waited for then, unless something
  // that it has sent nevertheless is there, unused, when the queue has been sent. If it comes even
  // later, a reset may take from the peer what it has not read.
  no,
};

// Limits of the send queue, in bytes; those of files count for `low` and `high` only.
// low <= high <= max.
struct QueueLimits {
  std::size_t low = 64 * 1024;
  std::size_t high = 256 * 1024;
  std::size_t max = 64 * 1024 * 1024;
  // How much on_data() may leave unused when more arrives, or the peer's end. Beyond it the
  // connection is reset, and closed with Error::unread_full: the message is too long. What it
  // leaves of one arrival (64 KiB at most) may be more until then: who pauses, or stops at a full
  // queue, has not chosen how much has come.
  std::size_t max_unread = 16 * 1024 * 1024;
  WhenFull when_full = WhenFull::close;
  // From more than `high` queued bytes until `low`, nothing is read and on_data() is not called.
  // Then a peer that sends and does not read cannot fill our memory with answers, provided that
  // on_data() stops at is_full(). Not for both ends of one connection: each would wait for the
  // other to read first.
  bool pause_reading = false;

  bool operator==(const QueueLimits&) const = default;
};

// Options for start(); each does what the function of its name does.
struct StreamOptions {
  QueueLimits limits{};
  Nanos idle_timeout{0};
  Nanos read_timeout{0};
  Nanos write_timeout{0};
  Nanos deadline{0};
  RateLimits rate_limits{};
  RateGroup* rate_group = nullptr;
  bool half_open = false;
  bool receive_descriptors = false;
};

// A StreamHandler made of functions. Each is optional; without on_data, input is discarded.
struct StreamCallbacks {
  std::move_only_function<std::size_t(Bytes bytes)> on_data{};
  std::move_only_function<void()> on_end{};
  std::move_only_function<void(std::span<const int> descriptors, bool some_lost)> on_descriptors{};
  std::move_only_function<void()> on_connected{};
  std::move_only_function<void()> on_drained{};
  std::move_only_function<void(std::error_code error)> on_closed{};
};

class SPATE_EXPORT Stream {
 public:
  // Behaves as a closed Stream: writing is refused, ending does nothing, options return EBADF.
  // start() and loop() assert.
  Stream() = default;
  Stream(Stream&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}
  // Closes the connection that this one had, as the destructor does.
  Stream& operator=(Stream&& other) noexcept {
    if (this == &other) return *this;
    reset();
    connection_ = std::exchange(other.connection_, nullptr);
    return *this;
  }
  ~Stream() {
    if (connection_ != nullptr) reset();
  }

  // Takes over a connected socket, a pipe's end, or anything else that reads and writes like one,
  // and makes it non-blocking. Errors, with which `fd` stays the caller's: EBADF, ENOMEM.
  [[nodiscard("a Stream that nobody keeps is closed at once")]]
  static Result<Stream> adopt(Loop& loop, int fd);
  // Two unix sockets connected to each other. Errors: EMFILE, ENFILE, ENOMEM.
  [[nodiscard("a Stream that nobody keeps is closed at once")]]
  static Result<std::pair<Stream, Stream>> socket_pair(Loop& loop);
  // The same in memory, for tests. Errors: ENOMEM.
  [[nodiscard("a Stream that nobody keeps is closed at once")]]
  static Result<std::pair<Stream, Stream>> memory_pair(Loop& loop);

  // Sets the handler and starts reading; calling again replaces the handler.
  void start(StreamHandler& handler);
  // The same with options. Errors, with which it is not started: ENOMEM.
  std::error_code start(StreamHandler& handler, const StreamOptions& options);
  // The same with functions, which the connection owns: one allocation.
  std::error_code start(StreamCallbacks callbacks, const StreamOptions& options = {});
  // Applies the options that are not at their default. False when memory runs out.
  bool configure(const StreamOptions& options);

  // Closes what it had, connects as connect() in connect.h does, and starts. The Stream is open at
  // once: writes are sent after on_connected(); timeouts and deadlines apply; closing or destroying
  // it cancels the attempt unless bytes are queued. Before on_connected() there is no socket, and
  // no socket options. If it fails, the loop calls on_closed() with connect()'s error.
  // Errors: ENOMEM.
  std::error_code connect(Loop& loop, std::string_view host, std::uint16_t port,
                          StreamHandler& handler);
  std::error_code connect(Loop& loop, std::string_view host, std::uint16_t port,
                          StreamHandler& handler, const ConnectOptions& options);
  std::error_code connect(Loop& loop, const Address& address, StreamHandler& handler);
  std::error_code connect(Loop& loop, const Address& address, StreamHandler& handler,
                          const ConnectOptions& options);
  // The same over TLS, with a client's context (tls.h) and to one who can show that he is `host`:
  // on_connected() comes when the two have shaken hands. Further errors of on_closed(): those of
  // start_tls().
  std::error_code connect(Loop& loop, std::string_view host, std::uint16_t port,
                          const TlsContext& context, StreamHandler& handler);
  std::error_code connect(Loop& loop, std::string_view host, std::uint16_t port,
                          const TlsContext& context, StreamHandler& handler,
                          const ConnectOptions& options);
  // Between connect() and on_connected() or on_closed().
  bool is_connecting() const;

  // Until on_closed(), abort(), or the loop's end.
  bool is_open() const;
  // Open, and neither end() nor close() has been called.
  bool is_writable() const;

  // ---- writing

  // Sends all of it, in order, or nothing. False, and nothing is sent: not writable, or it does not
  // fit into the queue (QueueLimits::max, however much the kernel would take). Also false when
  // memory runs out; if a part has been sent by then, the connection is reset, and closed with
  // ENOMEM.
  bool write(Bytes bytes);
  bool write(std::string_view text) { return write(bytes_of(text)); }
  // The pieces in order, as one write: all or none.
  bool write(std::span<const Bytes> pieces);
  // Takes the bytes without copying them. If it returns false, they are still in `buffer`. For
  // large messages to many Streams see Buffer::append_shared().
  bool write(Buffer&& buffer);
  // Sends `size` bytes of a regular file from `offset`, in order with what is written; without a
  // copy where the kernel can. The Stream takes the descriptor, and closes it when sent. Errors,
  // with which `file` stays the caller's: EPIPE if not writable, EBADF, EINVAL for a range that no
  // file can have, ENOMEM. If the file is too short, the connection is reset, and closed with
  // ENODATA; if it cannot be read, with the system's error. Reading from a disk blocks the loop.
  std::error_code send_file(int file, std::uint64_t offset, std::uint64_t size);
  // Unix sockets: sends bytes, at least one, and with the first of them up to 253 descriptors. They
  // are duplicated: the caller may close its own at once. Errors, with which nothing is sent: EPIPE
  // if not writable, EOPNOTSUPP if not a bare unix socket, EINVAL, EBADF, EMFILE, ENOMEM,
  // Error::queue_full.
  std::error_code send_descriptors(Bytes bytes, std::span<const int> descriptors);
  // Bytes that wait to be sent, gathered ones included.
  std::size_t queued() const;
  // From more than `high` queued bytes until `low`.
  bool is_full() const;
  // Takes effect at once: reading may resume, or on_drained() become due. False when memory runs
  // out; the limits are then unchanged.
  bool set_limits(const QueueLimits& limits);

  // ---- reading

  // Back to before start(): nothing is read, and nobody is told anything, until the next start(),
  // which goes on where this was. For who gives the Stream to somebody else: no call reaches the
  // handler any more.
  void stop();
  // While paused, nothing is read, on_data() is not called, and an end of file is not seen. If
  // sending fails, on_closed() is called at once, and unread input is lost. pause() does not nest.
  void pause();
  void resume();
  bool is_paused() const;

  // Calls on_data() again when at least `size` bytes are there, those that it leaves included, or
  // at end of file: for long messages, so that the beginning is not passed in with each piece.
  // Applies once; start() cancels it. Bytes that are waited for are unread: with more than
  // QueueLimits::max_unread the connection ends with Error::unread_full. False when memory runs
  // out.
  bool want(std::size_t size);
  // What on_data() has left, and after want() what has arrived behind it, until the next call to
  // the handler. Empty inside on_data(), and once the stream is closed or about to be. In on_end():
  // the incomplete message, if not empty.
  Bytes unread() const;

  // Unix sockets: accept descriptors sent with bytes (SCM_RIGHTS). Off at first: the kernel then
  // discards them.
  void set_receive_descriptors(bool on);

  // ---- rates: rate_limit.h

  // Replaces its own limits. False when memory runs out, or if closed.
  bool set_rate_limits(const RateLimits& limits);
  // Adds the limits of `group`, and leaves the group it was in; nullptr for none. False as above.
  bool join(RateGroup* group);

  // ---- ending

  // Ends our side once the queue is sent: the peer sees an end of file; reading goes on until the
  // peer ends its side.
  void end();
  // As the destructor, but on_closed() is called when it is done. The first call decides whether it
  // lingers.
  void close(Linger linger = Linger::yes);
  // Resets the connection. The queue is lost, and no callback follows, whatever had ended it
  // before.
  void abort();
  // Keep our side open after the peer's end of file, until end(). Off at first.
  void set_half_open(bool on);

  // ---- deadlines: zero is none; a negative one expires at once; any duration is valid.
  // Before one expires, what is ready is read and written. Waiting for a rate limit is not idle.

  // Closes with Error::deadline, however much is transferred: for a log-in, a request, a handshake.
  // Counts from the call; each call replaces the one before. Also applies after close() and after
  // destruction. False when memory runs out.
  bool set_deadline(Nanos timeout);

  // Closes with Error::idle_timeout when no byte has moved in either direction for `timeout`; never
  // early, and at most about two milliseconds late. At most 26 days. False when memory runs out.
  bool set_idle_timeout(Nanos timeout);
  // Closes with Error::read_timeout when it has been reading for `timeout` and nothing has arrived.
  // Costs some 200 bytes of memory; the idle timeout costs none. False when memory runs out.
  bool set_read_timeout(Nanos timeout);
  // Closes with Error::write_timeout when bytes have been queued for `timeout` and none was sent.
  // Waiting for a rate limit does not count. Memory as above.
  bool set_write_timeout(Nanos timeout);

  // ---- socket options; ENOTSOCK for pipes and in memory

  Loop& loop() const;
  int fd() const;  // -1 in memory.
  Address local_address() const;
  Address peer_address() const;
  // TCP: disables Nagle's algorithm. On at first.
  std::error_code set_no_delay(bool on);
  // TCP: probes after `idle` without traffic, every `interval`, `count` of them. Whole seconds.
  std::error_code set_keep_alive(Nanos idle, Nanos interval, int count);
  // TCP: how long sent data may stay unacknowledged. Whole milliseconds.
  std::error_code set_user_timeout(Nanos timeout);
  // TCP: acknowledges at once, until the kernel turns it off again.
  std::error_code set_quick_ack(bool on);
  // Bytes; 0 leaves one as it is. The kernel doubles and bounds them.
  std::error_code set_kernel_buffers(std::size_t send, std::size_t receive);
  // Gives the descriptor away, for instance to another loop. What was gathered is sent first; then
  // nothing may be queued or unread. Errors: EBUSY otherwise, EBADF if closed, EOPNOTSUPP in
  // memory and of TLS, and what on_closed() will get if sending has failed.
  [[nodiscard("the descriptor is yours now, and yours to close")]]
  Result<int> release();

 private:
  friend class Connection;
  explicit Stream(Connection* connection) : connection_(connection) {}
  Connection* connection() const;
  void reset();
  std::error_code set_option(int level, int name, int value);

  Connection* connection_ = nullptr;
};

}  // namespace spate
