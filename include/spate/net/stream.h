// Stream: a connection that carries bytes in order, both ways: TCP, a unix socket, a pipe, or two
// ends in memory.
//
// Ownership: a Stream is the owner's handle; moving it moves the connection. Destroying it closes
// the connection in good order: what was written is still sent, unread input is thrown away, and
// nobody is called any more. abort() ends it at once. The loop may be destroyed first; the Stream
// is then closed.
// Threads: the loop's thread only.
// Callbacks: a StreamHandler's functions, called by the loop and never from inside a call to the
// Stream. In all of them everything is allowed, destroying the Stream and the handler included.
//
// Reading: bytes arrive in memory of the loop's, lent to the callback until it returns, whatever it
// does meanwhile; the handler says how many of them it has used, and what it leaves comes again
// with what follows. An idle Stream owns no buffer.
// Writing: outside of run() at once if nothing is queued; what the kernel does not take is queued.
// What is written inside the Stream's own callback is gathered and sent when the callback returns.
// Small writes to it in others' callbacks, up to 16 KiB together, are gathered until all that is
// due has been called, and sent before the loop waits: messages to many cost one call to the kernel
// a receiver and turn, however many they are.
// Back-pressure: is_full() and on_drained() tell who produces; a server that answers what it reads
// lets the Stream pause its own reading while its queue is full (QueueLimits::pause_reading), and
// stops answering at is_full(): what it leaves comes again when the queue has drained.
// Running the loop inside a callback: what was written so far is sent first, to whomever, and what
// is queued goes on being sent; this Stream calls nothing more until the callback has returned.
// The loop: run() does not return while a Stream reads (started, not paused, the peer has not
// ended), has something to send, rests for a rate's sake, or waits, closed or destroyed, for its
// peer. One that was not started, or is paused, with nothing to send does not keep it, and neither
// does a deadline. In memory only what is under way does.
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
struct ConnectOptions;

// Closes each. Any thread.
SPATE_EXPORT void close_descriptors(std::span<const int> descriptors);

// Every function is inline: the library, which is built without RTTI, must not be where its type
// information is looked for.
class SPATE_EXPORT StreamHandler {
 public:
  // Bytes from the peer, one at least. Returns how many were used, from the front; the others are
  // kept and come again, in one piece with what follows: once there are more, after start() or
  // resume(), and, if is_full() when they were left, after on_drained(); with Stream::want(), once
  // there are enough. The view ends with the call. If release() was called inside, all that was
  // shown is the caller's.
  virtual std::size_t on_data(Bytes bytes) = 0;
  // The peer sends no more. Unless the Stream was told to stay half open, it ends its own side,
  // too, once what is queued has been sent. Not called before what was left at a full queue has
  // come again. What on_data() has not used is Stream::unread() until this returns; then it is
  // gone.
  virtual void on_end() {}
  // Descriptors from the peer (Stream::send_descriptors()), just before the bytes that they came
  // with; the system may put bytes that were sent earlier in front of those, never later ones. They
  // are the handler's from now on: unless this is overridden, they are closed. With `some_lost`,
  // the process had no room for all of them.
  virtual void on_descriptors(std::span<const int> descriptors, [[maybe_unused]] bool some_lost) {
    close_descriptors(descriptors);
  }
  // What Stream::connect() has begun has succeeded. If it fails, on_closed() says why. Not called
  // after Stream::close().
  virtual void on_connected() {}
  // What was queued beyond `high` has been sent down to `low`: write on.
  virtual void on_drained() {}
  // The last call, once: with no error when both sides have ended, else with what went wrong:
  // ECONNRESET, EPIPE, ... of the system, or Error::idle_timeout, read_timeout, write_timeout,
  // deadline, queue_full, unread_full.
  virtual void on_closed(std::error_code error) = 0;

 protected:
  ~StreamHandler() = default;
};

// What happens to a write that would make the queue longer than it may be.
enum class WhenFull : std::uint8_t {
  close,  // The connection is reset, and closed with Error::queue_full.
  drop,   // The write is refused: write() returns false, and nothing of it is sent.
};

// Bytes that may wait to be sent; those of files count for `low` and `high` only. low <= high <=
// most.
struct QueueLimits {
  std::size_t low = 64 * 1024;
  std::size_t high = 256 * 1024;
  std::size_t max = 64 * 1024 * 1024;
  // The other way: what on_data() may leave unused. Beyond it the connection is reset, and closed
  // with Error::unread_full: a message has no end, or nobody takes it.
  std::size_t max_unread = 16 * 1024 * 1024;
  WhenFull when_full = WhenFull::close;
  // While more than `high` bytes are queued, down to `low`, nothing is read and on_data() is not
  // called: so a peer that sends and does not read cannot fill our memory with answers, if
  // on_data() stops at is_full() among many requests. Not for both ends of one connection:
  // each would wait for the other to read first.
  bool pause_reading = false;

  bool operator==(const QueueLimits&) const = default;
};

// What a Stream may be told at its start, all at once; each is what the function of its name says.
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

// A StreamHandler made of functions, each of which may be left out: without on_data, what comes is
// thrown away.
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
  // Belongs to nobody, as a closed one: writing is refused, ending does nothing, options answer
  // EBADF. start() and loop() need more.
  Stream() = default;
  Stream(Stream&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}
  // What it was the handle of is closed, as by the destructor.
  Stream& operator=(Stream&& other) noexcept {
    if (this == &other) return *this;
    reset();
    connection_ = std::exchange(other.connection_, nullptr);
    return *this;
  }
  ~Stream() { reset(); }

  // Takes over a connected socket, a pipe's end, or whatever else reads and writes like one, and
  // makes it non-blocking. Errors: EBADF, ENOMEM; `fd` is still the caller's then.
  [[nodiscard("a Stream that nobody keeps is closed at once")]]
  static Result<Stream> adopt(Loop& loop, int fd);
  // Two unix sockets connected to each other. Errors: EMFILE, ENFILE, ENOMEM.
  [[nodiscard("a Stream that nobody keeps is closed at once")]]
  static Result<std::pair<Stream, Stream>> socket_pair(Loop& loop);
  // Two ends in memory that behave alike: for tests. Errors: ENOMEM.
  [[nodiscard("a Stream that nobody keeps is closed at once")]]
  static Result<std::pair<Stream, Stream>> memory_pair(Loop& loop);

  // Names who is called, and begins to read. Once more: somebody else is called from now on.
  void start(StreamHandler& handler);
  // The same with options. Errors: ENOMEM, with which it is not started.
  std::error_code start(StreamHandler& handler, const StreamOptions& options);
  // The same with functions, which the connection owns as long as it is there: one allocation.
  std::error_code start(StreamCallbacks callbacks, const StreamOptions& options = {});
  // Takes the options that are not at their default. False when memory runs out.
  bool configure(const StreamOptions& options);

  // Begins to connect, as connect() of connect.h does, and starts it; what it was the handle of is
  // closed. From here on it is open and may be written to, which is sent after on_connected();
  // timeouts and deadlines hold, and closing or destroying it ends the attempt if nothing waits to
  // be sent. It has no socket, and takes no options of one, before on_connected(). What fails is
  // told by on_closed() with connect()'s errors, from the loop only. Errors: ENOMEM.
  std::error_code connect(Loop& loop, std::string_view host, std::uint16_t port,
                          StreamHandler& handler);
  std::error_code connect(Loop& loop, std::string_view host, std::uint16_t port,
                          StreamHandler& handler, const ConnectOptions& options);
  std::error_code connect(Loop& loop, const Address& address, StreamHandler& handler);
  std::error_code connect(Loop& loop, const Address& address, StreamHandler& handler,
                          const ConnectOptions& options);
  // Between connect() and on_connected() or on_closed().
  bool is_connecting() const;

  // Connected, or still sending: until on_closed(), abort(), or the loop's end.
  bool is_open() const;
  // May be written to: open, and neither end() nor close() has been called.
  bool is_writable() const;

  // ---- writing

  // All of it, in order, sooner or later. False, and nothing of it is sent: not writable, or it
  // does not fit into the queue (QueueLimits::max, however much the kernel would take). False also
  // when memory runs out; if a part of it has gone by then, the connection is reset, and closed
  // with ENOMEM.
  bool write(Bytes bytes);
  bool write(std::string_view text) { return write(bytes_of(text)); }
  // Pieces, one behind the other, as one write: all of them or none.
  bool write(std::span<const Bytes> pieces);
  // Takes the bytes over without copying them. If it returns false they are still there.
  bool write(Buffer&& buffer);
  // `size` bytes of a regular file from `offset` on, in order with what is written: its beginning
  // goes with the bytes in front of it that are still gathered or queued, the rest of a large one
  // without a copy where the system can do that. The file is the Stream's from now on, and closed
  // when sent. Errors, with which the file is still the caller's: EPIPE if not writable, EBADF,
  // EINVAL for what no file can hold, ENOMEM. If the file turns out to be shorter, the connection
  // is reset, and closed with ENODATA; if it cannot be read, with what the system says. Reading
  // from a disk keeps the loop waiting.
  std::error_code send_file(int file, std::uint64_t offset, std::uint64_t size);
  // Unix sockets: bytes, one at least, and with the first of them up to 253 descriptors. They are
  // duplicated: the caller's own may be closed at once. Errors, with which nothing is sent: EPIPE
  // if not writable, EOPNOTSUPP for what is no unix socket, EINVAL, EBADF, EMFILE, ENOMEM,
  // Error::queue_full.
  std::error_code send_descriptors(Bytes bytes, std::span<const int> descriptors);
  // How many bytes wait to be sent; those that are gathered do.
  std::size_t queued() const;
  // More than `high` has been queued, and `low` is not reached again: better wait for on_drained().
  bool is_full() const;
  // At once: reading may go on, or on_drained() be owed. False when memory runs out; the limits are
  // what they were.
  bool set_limits(const QueueLimits& limits);

  // ---- reading

  // Between the two, nothing is read, and on_data() is not called; the peer's end is not seen
  // either. If sending fails meanwhile, on_closed() tells so at once, and what has come and was not
  // shown is lost. Counts no calls: one resume() undoes any number of pauses.
  void pause();
  void resume();
  bool is_paused() const;

  // on_data() is not called again before `size` bytes are there, those that it leaves included, or
  // the peer has ended: for who has seen how long a message is, so as not to be shown its beginning
  // with each piece that arrives. Holds for one call, and not beyond start(). What is waited for is
  // unread: with more than QueueLimits::max_unread, it comes to Error::unread_full. False when
  // memory runs out.
  bool want(std::size_t size);
  // What on_data() has left, with want() also what has come behind it, until the next call to the
  // handler. Nothing inside on_data(), whose bytes are its own, and once it is closed or about to
  // be. For on_end(): what has come is no message, if it is not empty.
  Bytes unread() const;

  // Whether descriptors are taken that come with bytes; those of a peer that nobody has asked are
  // thrown away by the system. False at first. Unix sockets.
  void set_receive_descriptors(bool on);

  // ---- rates: rate_limit.h

  // Its own limits; anew each time. False when memory runs out, or if it is closed.
  bool set_rate_limits(const RateLimits& limits);
  // Shares `group`'s limits, too, and leaves the group that it was in; nullptr for none. False as
  // above.
  bool join(RateGroup* group);

  // ---- ending

  // Ends our side once what is queued has been sent: the peer sees an end of file, and we go on
  // reading until it ends its own.
  void end();
  // What the destructor does, except that on_closed() tells when it is done.
  void close();
  // Ends the connection now. The peer sees a reset, what is queued is lost, nobody is called: not
  // for what had ended it before, either.
  void abort();
  // Whether the peer's end leaves our side open until end() is called. False at first.
  void set_half_open(bool on);

  // ---- deadlines: zero is none; a negative one is over at once, and any length may be asked for.
  // Nobody is judged before a look at what is ready. A rest for a rate's sake is not idleness.

  // Closed with Error::deadline after so long, whatever moves: for a log-in, a request, a
  // handshake. Counted from the call; each call replaces the one before. Holds after close() and
  // after destruction, too. False when memory runs out.
  bool set_deadline(Nanos timeout);

  // Closed with Error::idle_timeout when no byte has moved either way for so long; not before, and
  // no more than about two milliseconds later. At most 26 days.
  void set_idle_timeout(Nanos timeout);
  // Closed with Error::read_timeout when for so long it has been reading, and nothing has come.
  // Costs some 200 bytes of memory, which the idle timeout does not. False when memory runs out.
  bool set_read_timeout(Nanos timeout);
  // Closed with Error::write_timeout when bytes wait to be sent and for so long none has been. A
  // rest for a rate's sake does not count. Memory as above.
  bool set_write_timeout(Nanos timeout);

  // ---- the socket; for pipes and memory, options are refused with ENOTSOCK

  Loop& loop() const;
  int fd() const;  // -1 in memory.
  Address local_address() const;
  Address peer_address() const;
  // TCP: no waiting for more before a small packet goes out. On at first.
  std::error_code set_no_delay(bool on);
  // TCP: probes after `idle` without traffic, every `interval`, `count` of them. Whole seconds.
  std::error_code set_keep_alive(Nanos idle, Nanos interval, int count);
  // TCP: how long sent data may stay unacknowledged. Whole milliseconds.
  std::error_code set_user_timeout(Nanos timeout);
  // TCP: acknowledges at once, until the kernel thinks otherwise.
  std::error_code set_quick_ack(bool on);
  // Bytes; 0 leaves one as it is. The kernel doubles and bounds them.
  std::error_code set_kernel_buffers(std::size_t send, std::size_t receive);
  // Gives the descriptor away, to another loop for instance. Only while nothing is queued and
  // nothing is left unread; what was gathered is sent first. Errors: EBUSY otherwise,
  // EBADF if closed, EOPNOTSUPP in memory, and what on_closed() will be told if sending has failed.
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
