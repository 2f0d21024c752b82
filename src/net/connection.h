// Connection: what a Stream is the handle of. The queue, the marks, the endings and the deadlines
// are here, once for all transports.
//
// It belongs to its Stream, and to itself once the Stream has gone and something is still to be
// sent. User code is called by call() only, and never while a function of the Stream's is running.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <system_error>

#include "core/array.h"
#include "net/deadlines.h"
#include "net/unread.h"
#include "spate/loop.h"
#include "spate/net/stream.h"

namespace spate {

class Net;
class Transport;

class Connection {
 public:
  // For a transport: it takes over `fd` when it has returned something. nullptr: out of memory.
  static Connection* make(Transport& transport, int fd);
  static Stream stream_of(Connection* connection) { return Stream(connection); }
  static Connection* of(const Stream& stream) { return stream.connection_; }

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // ---- what Stream's functions of the same name do

  void start(StreamHandler& handler);
  bool is_open() const;
  bool is_writable() const { return is_open() && !has(kEnding | kBroken); }
  bool write(Bytes bytes);
  bool write(Buffer&& buffer);
  std::size_t queued() const;
  bool is_full() const { return has(kFull); }
  bool set_limits(const QueueLimits& limits);
  void pause();
  void resume();
  bool is_paused() const { return has(kPaused); }
  void end();
  void close();
  void abort();
  void abandon();  // The Stream is being destroyed.
  void set_half_open(bool on) { set(kHalfOpen, on); }
  void set_idle_timeout(Nanos timeout);
  void set_write_timeout(Nanos timeout);
  bool may_be_released() const;
  int release();
  Net& net() const;
  Transport& transport() const { return *transport_; }
  int fd() const { return node_.fd; }

  // ---- what transports and Net use

  // Something may be done now. Called by the loop.
  void on_ready(Events events);
  void on_deadline();
  void on_loop_end();
  // Nothing can ever come from the peer: our end is the whole end.
  void set_one_way() { set(kPeerEnded); }
  FdNode& node() { return node_; }
  static Connection& from(FdNode& node) { return reinterpret_cast<Connection&>(node); }
  Deadlines::Place deadline_place() const { return deadline_place_; }
  void set_deadline_place(Deadlines::Place place) { deadline_place_ = place; }

 private:
  enum Flag : std::uint32_t {
    kStarted = 1 << 0,     // There is a handler, or there was one.
    kPaused = 1 << 1,      // By the owner.
    kFull = 1 << 2,        // More than `high` is queued.
    kPeerEnded = 1 << 3,   // The peer sends no more.
    kEnding = 1 << 4,      // We end once the queue is empty.
    kEnded = 1 << 5,       // We have ended our side.
    kHalfOpen = 1 << 6,    //
    kDiscarding = 1 << 7,  // What the peer sends is thrown away.
    kAbandoned = 1 << 8,   // No Stream belongs to it any more.
    kInCallback = 1 << 9,  // User code is running; not to be deleted.
    kBroken = 1 << 10,     // Sending has failed with error_; reading may still bring something.
    kClosed = 1 << 11,     //
    kReported = 1 << 12,   // on_closed() has been called.
    kOffer = 1 << 13,      // What is unread is to be offered again.
    kWrote = 1 << 14,      // Something has been sent that a reset could still destroy.
    kNested = 1 << 15,     // Something came up while user code was running the loop.
  };

  // What only a busy connection needs.
  struct Extra {
    Buffer queue;
    Unread unread;
    QueueLimits limits;
    bool limits_are_set = false;
    Nanos write_timeout{0};
    std::int64_t last_sent = 0;  // Loop time of the last progress of the queue.
  };

  Connection(Transport& transport, int fd);
  ~Connection();

  bool has(std::uint32_t flags) const { return (flags_ & flags) != 0; }
  void set(Flag flag, bool on = true) {
    flags_ = on ? flags_ | flag : flags_ & ~std::uint32_t{flag};
  }
  StreamHandler* handler() const { return static_cast<StreamHandler*>(node_.head.context); }
  void set_handler(StreamHandler* handler) { node_.head.context = handler; }
  bool has_queue() const { return extra_ != nullptr && !extra_->queue.empty(); }
  Extra* extra();
  void drop_extra();

  template <class Function>
  bool call(Bytes arrived, Function function);
  bool is_in_callback();
  void look_again();

  void send_gathered();
  bool send_now(std::span<const Bytes> pieces);
  bool enqueue(Bytes bytes);
  bool drops() const { return extra_ != nullptr && extra_->limits.when_full == WhenFull::drop; }
  bool has_room_for(std::size_t size);
  void mark_full();
  void flush();
  bool on_flushed();
  void on_broken(int error);

  bool wants_to_read() const;
  bool receive();
  bool hand_over(Bytes bytes);
  bool offer_unread();
  bool on_peer_end();

  void shut_down();
  bool is_done() const { return has(kPeerEnded) && has(kEnded); }
  bool has_nothing_to_lose() const;
  void linger();
  void settle_later();
  bool settle();
  void bury();
  void finish(std::error_code error, bool reset = false);
  void shut(bool reset);
  void report();
  std::error_code broken_error() const;

  void touch();
  void update_wish();
  void note_deadline();
  std::int64_t idle_deadline() const;
  std::int64_t write_deadline() const;
  std::error_code expired(std::int64_t now) const;

  FdNode node_{};  // Its context is the handler.
  Transport* transport_;
  std::unique_ptr<Extra> extra_;
  std::int64_t last_active_ = 0;  // Loop time; while lingering, when that ends.
  std::uint32_t idle_ms_ = 0;
  Deadlines::Place deadline_place_ = 0;
  std::uint32_t flags_ = 0;
  std::int32_t error_ = 0;  // An errno, or a negated Error.
};

}  // namespace spate
