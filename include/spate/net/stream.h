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
// the loop. The handler returns how many it has used. The rest is passed in again, together with
// the bytes that follow. An idle Stream has no buffer.
//
// Writing: outside of run(), bytes are sent at once if nothing is queued; bytes that the kernel
// does not take are queued. Writes inside the Stream's own callback are corked and sent when the
// callback returns. Small writes in other callbacks (up to 4 KiB each, 16 KiB in all) are corked
// and sent before the loop waits. So a broadcast costs one system call per receiver and turn,
// however many messages it has. If several Streams are given the same memory in succession, it is
// copied once for all of them, and up to 64 KiB of it are corked.
//
// Back-pressure: producers use is_full() and on_drained(). A server that responds to its input sets
// QueueLimits::pause_reading, and stops responding at is_full(). The input that it leaves unused is
// passed in again when the queue has drained.
//
// Running the loop inside a callback: the bytes already written, to any Stream, are sent first, and
// the queue continues to be sent. This Stream makes no calls until the callback has returned.
//
// The loop: run() does not return while a Stream reads (started, not paused, no end of file), has
// bytes to send, waits for its rate limit, or, closed or destroyed, waits for its peer. A Stream
// that was not started, or is paused, with nothing to send does not keep the loop alive; neither
// does a deadline. A pair in memory keeps it alive only while bytes are in flight.
//
// Endings: docs/special-problems.md has the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/net/address.h"
#include "spate/net/buffer.h"
#include "spate/net/rate_limit.h"
#include "spate/offload.h"
#include "spate/time.h"

namespace spate {

class Connection;
class Loop;
class Session;
class TlsContext;
struct ConnectOptions;

// Closes each descriptor. Any thread.
SPATE_EXPORT void close_descriptors(std::span<const int> descriptors);

// Every function is inline: the library is built without RTTI and must not provide the type
// information.
class SPATE_EXPORT StreamHandler {
 public:
  // Receives bytes from the peer, at least one. Returns how many were used, from the front. The
  // rest is kept and passed in again, in one piece with the bytes that follow:
  // - when more has arrived, or, after Stream::want(), when enough has;
  // - after start() or resume();
  // - after on_drained(), if is_full() when they were left.
  //
  // The view is valid until the call returns. If release() was called inside, all the bytes are the
  // caller's.
  virtual std::size_t on_data(Bytes bytes) = 0;
  // Called at the end of file. Unless half open (Stream::set_half_open()), our side also ends, once
  // the queue is sent. Input that was left at a full queue is passed in again first.
  // Stream::unread() has the bytes that on_data() did not use, until this returns; then they are
  // discarded.
  virtual void on_end() {}
  // Receives descriptors from the peer (Stream::send_descriptors()), just before the bytes they
  // were sent with. The kernel may deliver earlier bytes together with those, never later ones. The
  // handler owns the descriptors; the default closes them. `some_lost` means that the process was
  // out of descriptors for the others.
  virtual void on_descriptors(std::span<const int> descriptors, [[maybe_unused]] bool some_lost) {
    close_descriptors(descriptors);
  }
  // Called when Stream::connect() has succeeded. If it fails, on_closed() gets the error. Not
  // called after Stream::close().
  virtual void on_connected() {}
  // Called when the queue exceeded `high` and has fallen to `low`: resume writing.
  virtual void on_drained() {}
  // Called last, exactly once. No error if both sides ended, otherwise the reason: ECONNRESET,
  // EPIPE, ... or Error::idle_timeout, read_timeout, write_timeout, deadline, queue_full,
  // unread_full.
  virtual void on_closed(std::error_code error) = 0;

 protected:
  ~StreamHandler() = default;
};

// The treatment of a write that would exceed QueueLimits::max.
enum class WhenFull : std::uint8_t {
  close,  // Resets the connection, and closes with Error::queue_full.
  drop,   // write() returns false, and sends nothing.
};

// Whether Stream::close() waits for the peer's end.
enum class Linger : std::uint8_t {
  yes,
  // The protocol guarantees that the peer sends nothing more (for example after "Connection:
  // close"). A bare socket then does not wait for the peer's end of file, unless unexpected input
  // is there, unused, when the queue has been sent. If input arrives even later, a reset may
  // discard bytes that the peer has not read.
  no,
};

// Limits of the send queue, in bytes. low <= high <= max. Bytes of files count for `low` and `high`
// only.
struct QueueLimits {
  std::size_t low = 64 * 1024;
  std::size_t high = 256 * 1024;
  std::size_t max = 64 * 1024 * 1024;
  // How many bytes on_data() may leave unused, checked when more data or the peer's end arrives. If
  // it leaves more, the message is too long: the connection is reset, and closed with
  // Error::unread_full. Since one read brings up to 64 KiB, the unused bytes may exceed the limit
  // between two checks.
  std::size_t max_unread = 16 * 1024 * 1024;
  WhenFull when_full = WhenFull::close;
  // While more than `high` bytes are queued, until `low`, nothing is read and on_data() is not
  // called. A peer that sends and does not read then cannot fill our memory with responses,
  // provided that on_data() stops at is_full(). Do not use it at both ends of one connection: each
  // would wait for the other to read first.
  bool pause_reading = false;

  bool operator==(const QueueLimits&) const = default;
};

// Options for start(). Each is passed to the function of its name.
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
  Function<std::size_t(Bytes bytes)> on_data{};
  Function<void()> on_end{};
  Function<void(std::span<const int> descriptors, bool some_lost)> on_descriptors{};
  Function<void()> on_connected{};
  Function<void()> on_drained{};
  Function<void(std::error_code error)> on_closed{};
};

class SPATE_EXPORT Stream {
 public:
  // Behaves as a closed Stream: writing fails, ending does nothing, options return EBADF. start()
  // and loop() assert.
  Stream() = default;
  Stream(Stream&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}
  // Closes the connection that this one had, as the destructor does.
  Stream& operator=(Stream&& other) noexcept {
    Stream moved(std::move(other));
    std::swap(connection_, moved.connection_);  // Destroys the old one here, not with `other`.
    return *this;
  }
  ~Stream() {
    if (connection_ != nullptr) reset();
  }

  // Takes ownership of a connected socket, a pipe's end, or any other descriptor that reads and
  // writes like one, and makes it non-blocking. On an error `fd` stays the caller's. Errors: EBADF,
  // ENOMEM.
  [[nodiscard("a discarded Stream is closed at once")]]
  static Result<Stream> adopt(Loop& loop, int fd);
  // Returns two unix sockets connected to each other. Errors: EMFILE, ENFILE, ENOMEM.
  [[nodiscard("a discarded Stream is closed at once")]]
  static Result<std::pair<Stream, Stream>> socket_pair(Loop& loop);
  // Returns a connected pair in memory, for tests. Errors: ENOMEM.
  [[nodiscard("a discarded Stream is closed at once")]]
  static Result<std::pair<Stream, Stream>> memory_pair(Loop& loop);

  // Sets the handler and starts reading. Calling again replaces the handler.
  void start(StreamHandler& handler);
  // As above with options. On an error it is not started. Errors: ENOMEM.
  std::error_code start(StreamHandler& handler, const StreamOptions& options);
  // As above with functions, which the connection owns: one allocation.
  std::error_code start(StreamCallbacks callbacks, const StreamOptions& options = {});
  // Applies the options that are not at their default. False when memory runs out.
  bool configure(const StreamOptions& options);

  // Closes the previous connection, connects as connect() in connect.h does, and starts. The Stream
  // is open at once: writes are sent after on_connected(); timeouts and deadlines apply; closing or
  // destroying it cancels the attempt unless bytes are queued. Before on_connected() there is no
  // socket, and there are no socket options. If the attempt fails, the loop calls on_closed() with
  // connect()'s error. Errors: ENOMEM.
  std::error_code connect(Loop& loop, std::string_view host, std::uint16_t port,
                          StreamHandler& handler);
  std::error_code connect(Loop& loop, std::string_view host, std::uint16_t port,
                          StreamHandler& handler, const ConnectOptions& options);
  std::error_code connect(Loop& loop, const Address& address, StreamHandler& handler);
  std::error_code connect(Loop& loop, const Address& address, StreamHandler& handler,
                          const ConnectOptions& options);
  // As above, over TLS, with a client context (tls.h). The server's certificate must be valid for
  // `host`. on_connected() is called after the handshake. Further errors of on_closed(): those of
  // start_tls().
  std::error_code connect(Loop& loop, std::string_view host, std::uint16_t port,
                          const TlsContext& context, StreamHandler& handler);
  std::error_code connect(Loop& loop, std::string_view host, std::uint16_t port,
                          const TlsContext& context, StreamHandler& handler,
                          const ConnectOptions& options);
  // True between connect() and on_connected() or on_closed().
  bool is_connecting() const;

  // True until on_closed(), abort(), or the loop's end.
  bool is_open() const;
  // True if open, and neither end() nor close() was called.
  bool is_writable() const;

  // ---- writing

  // Sends all bytes, in order, or none. Returns false and sends nothing if the Stream is not
  // writable, or if the bytes do not fit into the queue (QueueLimits::max, however much the kernel
  // would take). Also returns false when memory runs out; if a part was sent by then, the
  // connection is reset, and closed with ENOMEM.
  bool write(Bytes bytes);
  bool write(std::string_view text) { return write(bytes_of(text)); }
  // Sends the pieces in order, as one write: all or none.
  bool write(std::span<const Bytes> pieces);
  // Takes the bytes without copying them. If it returns false, they are still in `buffer`. For
  // large messages to many Streams see Buffer::append_shared().
  bool write(Buffer&& buffer);
  // Sends `size` bytes of a regular file from `offset`, in order with other writes; without a copy
  // where the kernel can. The Stream takes ownership of the descriptor, and closes it when sent. On
  // an error `file` stays the caller's. Errors: EPIPE if not writable, EBADF, EINVAL for a range
  // that no file can have, ENOMEM. If the file is too short, the connection is reset, and closed
  // with ENODATA; if it cannot be read, with the system's error. Bytes that are not in memory are
  // read by a thread of `pool`, which must outlive the Stream; the loop does not wait for a disk.
  // If the pool refuses that work, the connection is reset, and closed with its error.
  std::error_code send_file(int file, std::uint64_t offset, std::uint64_t size,
                            ThreadPool& pool = ThreadPool::shared());
  // Sends bytes over a unix socket, at least one, and with the first of them up to 253 descriptors.
  // They are duplicated: the caller may close its own at once. On an error nothing is sent. Errors:
  // EPIPE if not writable, EOPNOTSUPP if not a bare unix socket, EINVAL, EBADF, EMFILE, ENOMEM,
  // Error::queue_full.
  std::error_code send_descriptors(Bytes bytes, std::span<const int> descriptors);
  // Returns the number of bytes that wait to be sent, corked ones included.
  std::size_t queued() const;
  // True from the time when more than `high` bytes were queued until the queue is down to `low`.
  bool is_full() const;
  // Replaces the limits. Takes effect at once: reading may resume, or on_drained() become due.
  // False when memory runs out; the limits are then unchanged.
  bool set_limits(const QueueLimits& limits);

  // ---- reading

  // Undoes start(): stops reading and detaches the handler, which is not called again. A later
  // start() continues with the next unread byte. Use it to hand the Stream to another owner.
  void stop();
  // While paused, nothing is read, on_data() is not called, and an end of file is not noticed. If
  // sending fails, on_closed() is called at once, and unread input is lost. pause() does not nest.
  void pause();
  void resume();
  bool is_paused() const;

  // Calls on_data() again when at least `size` bytes are there, including the bytes it leaves
  // unused, or at end of file. For long messages, so that the beginning is not passed in with each
  // arrival. Applies once; start() cancels it. Bytes that are waited for are unread: with more than
  // QueueLimits::max_unread the connection ends with Error::unread_full. False when memory runs
  // out.
  bool want(std::size_t size);
  // Returns the bytes that on_data() left unused, and after want() the bytes that arrived since.
  // Valid until the next call to the handler. Empty inside on_data(), and once the stream is closed
  // or about to be. In on_end() it is the incomplete message, if not empty.
  Bytes unread() const;

  // Returns true if all input was read, and the peer has not ended. Queries the kernel, whose state
  // may be newer than the last event. Call it before using a connection again.
  bool is_quiet() const;

  // Accepts descriptors that are sent with bytes over a unix socket (SCM_RIGHTS). Initially off:
  // the kernel then discards them.
  void set_receive_descriptors(bool on);

  // ---- rates: rate_limit.h

  // Replaces this Stream's own limits. False when memory runs out, or if closed.
  bool set_rate_limits(const RateLimits& limits);
  // Adds the limits of `group`, and leaves the previous group; nullptr for none. False when memory
  // runs out, or if closed.
  bool join(RateGroup* group);

  // ---- ending

  // Ends our side once the queue is sent: the peer reads an end of file. Reading continues until
  // the peer ends its side.
  void end();
  // Closes as the destructor does, and calls on_closed() when done. The first call decides whether
  // it lingers.
  void close(Linger linger = Linger::yes);
  // Resets the connection. The queue is lost, and no callback follows, even if the connection had
  // already ended otherwise.
  void abort();
  // Keeps our side open after the peer's end of file, until end(). Initially off.
  void set_half_open(bool on);

  // ---- deadlines: zero is none; a negative one expires at once; any duration is valid. Before one
  // expires, the Stream reads and writes once more. Waiting for a rate limit is not idle.

  // Closes with Error::deadline, however much is transferred: for a log-in, a request, a handshake.
  // Counts from the call; each call replaces the one before. Also applies after close() and after
  // destruction. False when memory runs out.
  bool set_deadline(Nanos timeout);

  // Closes with Error::idle_timeout when no byte moved in either direction for `timeout`; never
  // early, and at most about two milliseconds late. At most 26 days. False when memory runs out.
  bool set_idle_timeout(Nanos timeout);
  // Closes with Error::read_timeout when it has been reading for `timeout` and nothing arrived.
  // Takes some 200 bytes of memory; the idle timeout takes none. False when memory runs out.
  bool set_read_timeout(Nanos timeout);
  // Closes with Error::write_timeout when bytes were queued for `timeout` and none was sent.
  // Waiting for a rate limit does not count. Memory as above.
  bool set_write_timeout(Nanos timeout);

  // ---- socket options; ENOTSOCK for pipes and in memory

  Loop& loop() const;
  int fd() const;  // -1 in memory.
  Address local_address() const;
  Address peer_address() const;
  // TCP: disables Nagle's algorithm. Initially on.
  std::error_code set_no_delay(bool on);
  // TCP: sends `count` probes after `idle` without traffic, one every `interval`. Whole seconds.
  std::error_code set_keep_alive(Nanos idle, Nanos interval, int count);
  // TCP: limits how long sent data may stay unacknowledged. Whole milliseconds.
  std::error_code set_user_timeout(Nanos timeout);
  // TCP: acknowledges at once, until the kernel turns it off again.
  std::error_code set_quick_ack(bool on);
  // Sets the sizes in bytes; 0 leaves one unchanged. The kernel doubles and bounds them.
  std::error_code set_kernel_buffers(std::size_t send, std::size_t receive);
  // Returns the descriptor, for instance for another loop; the Stream is then closed. Corked bytes
  // are sent first. Errors: EBUSY if anything is queued or unread, EBADF if closed, EOPNOTSUPP in
  // memory and with TLS, and the error that on_closed() will get if sending has failed.
  [[nodiscard("the caller owns the descriptor and must close it")]]
  Result<int> release();

 private:
  friend class Connection;
  friend class Session;
  explicit Stream(Connection* connection) : connection_(connection) {}
  Connection* connection() const;
  void reset();
  std::error_code set_option(int level, int name, int value);

  Connection* connection_ = nullptr;
};

}  // namespace spate
