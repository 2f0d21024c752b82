// Connection: the state behind a Stream. Queue, watermarks, endings and timeouts are implemented
// here once for all transports.
//
// It belongs to its Stream, and to itself after the Stream was destroyed while bytes are still to
// be sent. User code is called by call(), and for the last time by report_closed(), never while a
// function of the Stream is running.
//
// Functions that are needed for every message and use LoopStreams are inline in loop_streams.h.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <system_error>
#include <utility>

#include "base/array.h"
#include "core/kept_memory.h"
#include "core/user_code.h"
#include "net/stream/connection_state.h"
#include "net/stream/deadlines.h"
#include "net/stream/send_queue.h"
#include "net/stream/throttle.h"
#include "net/stream/timeouts.h"
#include "net/stream/unread.h"
#include "spate/loop.h"
#include "spate/net/stream.h"
#include "spate/net/stream_use.h"
#include "sys/descriptor.h"

namespace spate {

class ActiveList;
class CallbackHandler;
class LoopStreams;
class Transport;
struct ActiveInfo;
struct ArrivedDescriptors;
struct StreamInfo;
enum class StreamState : std::uint8_t;

// Destroys it when none of its functions is running.
struct CallbackHandlerEnd {
  void operator()(CallbackHandler* handler) const;
};
using OwnCallbacks = std::unique_ptr<CallbackHandler, CallbackHandlerEnd>;

class Connection {
 public:
  // Makes a connection of a transport, which owns `fd` on success. nullptr when memory runs out.
  static Connection* make(Transport& transport, int fd = -1);
  // As above; `socket` is still the caller's when memory runs out.
  static Connection* adopt(Transport& transport, sys::Descriptor& socket) {
    Connection* connection = make(transport, socket.get());
    if (connection != nullptr) socket.release();
    return connection;
  }
  // Names the event callbacks of Connections for for_each_active(). Called before the first use.
  static void name_callbacks();
  void list_active(ActiveList& list) const;
  void set_use(StreamUse use);
  static Stream stream_of(Connection* connection) { return Stream(connection); }
  static Connection* of(const Stream& stream) { return stream.connection_; }
  // Detaches a temporary handle.
  static void take_back(Stream& stream) { stream.connection_ = nullptr; }

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // ---- the functions of Stream

  void start(StreamHandler& handler);
  // Owns the functions. False when memory runs out.
  bool start(StreamCallbacks callbacks);
  bool is_open() const;
  bool is_writable() const { return life_.is(State::open) && is_open(); }
  bool write(Bytes bytes);
  bool write(std::span<const Bytes> pieces);
  bool write(Buffer&& buffer);
  std::error_code send_file(int file, std::uint64_t offset, std::uint64_t size, ThreadPool& pool);
  std::error_code send_descriptors(Bytes bytes, std::span<const int> descriptors);
  std::size_t queued() const;
  bool is_full() const { return has(kFull); }
  bool is_drained() const { return has(kFull) && busy_->queue.size() <= busy_->limits.low; }
  bool set_limits(const QueueLimits& limits);
  void pause();
  void resume();
  bool is_paused() const { return has(kPaused); }
  bool want(std::size_t size);
  bool is_quiet();
  Bytes unread() const { return has_unread() ? busy_->unread.bytes() : Bytes(); }
  void end();
  void close(Linger wish = Linger::yes);
  void abort();
  void abandon();  // Called by the Stream's destructor.
  void set_half_open(bool on) { set(kHalfOpen, on); }
  bool set_idle_timeout(Nanos timeout);
  bool set_deadline(Nanos timeout);
  bool set_read_timeout(Nanos timeout);
  bool set_write_timeout(Nanos timeout);
  bool set_rate_limits(const RateLimits& limits);
  bool join(RateGroup* group);
  void set_receive_descriptors(bool on) { set(kTakesDescriptors, on); }
  Result<int> release();
  LoopStreams& loop_state() const;
  Transport& transport() const { return *transport_; }
  int fd() const { return node_.fd; }
  // stream_info.h
  StreamInfo info() const;
  Nanos stalled() const;

  // ---- called by transports and LoopStreams

  // Puts `transport` on top of the current one: bytes go through it, and events to its on_event().
  void put_transport(Transport& transport);
  // Detaches the handler; start() sets the next one.
  void forget_handler();
  // Removes its functions, if any, and returns them.
  OwnCallbacks take_callbacks();
  // Sends corked bytes, as many as the kernel takes.
  void send_waiting();
  // True if input is discarded.
  bool is_discarding() const { return life_.is_discarding(); }
  // Returns whether everything was sent, and it only waits for the peer's end.
  bool is_lingering() const { return life_.is(State::lingering); }

  // Handles events. Called by the loop.
  void on_ready(Events events);
  void on_deadline();
  void on_loop_end();
  // Called in the child of a fork. False if no Stream owns it: the parent finishes it.
  bool on_fork();
  // Returns whether the parent uses it, and this process only has a copy of its descriptor. A child
  // that calls end(), close() or abort() takes it over.
  bool is_parents() const;
  // Ends connecting: takes the transport of `made`, a new connection without a handler, which is
  // destroyed with the transport that this had. `is_ended`: end() was called before. Not while
  // is_calling().
  void on_connected(Stream made, bool is_ended);
  void on_refused(std::error_code error) { finish(error); }
  // Returns whether a callback of its handler is running.
  bool is_calling() const { return has(kInCallback); }
  // Sends the bytes that its own callback has written.
  void send_gathered();
  // Sends the bytes that other callbacks have written to it. Calls no user code.
  void send_held();
  // Called when the limits of its throttle have changed.
  void on_throttle_changed();
  // Called when the peer, whose end was reported, has reset the connection.
  void on_reset();
  // Called if the transport has no input: our end is then the whole end.
  void set_one_way() { set(kPeerEnded); }
  // As set_one_way(), while receiving.
  void read_no_more() {
    set_one_way();
    conclude();
  }
  FdNode& node() { return node_; }
  static Connection& from(FdNode& node) { return reinterpret_cast<Connection&>(node); }
  Deadlines::Place deadline_place() const { return deadline_place_; }
  void set_deadline_place(Deadlines::Place place) { deadline_place_ = place; }
  // Returns 1 + its index in the list of corked connections, 0 if not in it. Nonzero requires
  // a BusyState.
  std::uint32_t held_place() const { return busy_ == nullptr ? 0 : busy_->held_place; }
  void set_held_place(std::uint32_t place) { busy_->held_place = place; }

 private:
  // Conditions that are independent of the state.
  enum Flag : std::uint16_t {
    kPaused = 1 << 0,            // pause() was called.
    kHalfOpen = 1 << 1,          // The peer's end does not end our side.
    kTakesDescriptors = 1 << 2,  //
    kAbandoned = 1 << 3,         // The Stream was destroyed.
    kInCallback = 1 << 4,        // User code is running; must not be deleted.
    kNested = 1 << 5,            // Events were deferred while user code was running the loop.
    kFull = 1 << 6,              // More than `high` bytes were queued.
    kOffer = 1 << 7,             // Unread bytes must be offered again as soon as possible.
    kLeftWhileFull = 1 << 8,     // As kOffer, once the queue has drained.
    kPeerEnded = 1 << 9,         // The peer sends nothing more.
    kEndDue = 1 << 10,           // on_end() is due, after unread bytes were offered.
    kWrote = 1 << 11,            // Bytes were sent that a reset could still destroy.
    kReadRests = 1 << 12,        // Rate-limited, until the throttle opens.
    kSendRests = 1 << 13,        //
    kHoldsLoop = 1 << 14,        // Rate-limited, and keeps the loop alive meanwhile.
    kForked = 1 << 15,           // It existed at a fork, and this is the child.
  };

  // Flags that require the slow path for input.
  static constexpr unsigned kUnusual =
      static_cast<std::uint16_t>(~(kHalfOpen | kWrote | kHoldsLoop | kForked));

  static constexpr int kAgeBits = 30;  // The resolution of ages: about a second.

  // State that only a busy connection needs. An idle one has no other memory than itself, unless
  // unusual options were set.
  struct BusyState {
    BusyState();
    ~BusyState();
    static void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
      return take_memory(size);
    }
    static void operator delete(void* memory, std::size_t size) noexcept {
      give_memory(memory, size);
    }
    bool is_needed() const {
      return !queue.empty() || held_place != 0 || !unread.empty() || wanted != 0 ||
             limits_are_set || read_timeout.is_set() || write_timeout.is_set() ||
             deadline != kNever || throttle != nullptr || callbacks != nullptr;
    }

    SendQueue queue;
    std::uint32_t held_place = 0;
    bool limits_are_set = false;
    QueueLimits limits;
    Unread unread;
    std::size_t wanted = 0;  // Bytes that must be there before the handler is called.
    Timeout read_timeout;
    Timeout write_timeout;  // Progress is that of the queue.
    std::int64_t deadline = kNever;
    std::unique_ptr<Throttle> throttle;
    OwnCallbacks callbacks;
  };

  // Called by the loop: the callback of the node.
  struct EventCallbacks;
  static void describe(const Node& node, ActiveInfo& info);
  void choose_callback(bool is_layered, StreamUse use);
  static void on_event(Node& head, Events events) {
    auto& connection = reinterpret_cast<Connection&>(head);
    if (events == Events::read && connection.is_plain()) return connection.receive_plainly();
    connection.on_ready(events);
  }

  // When the connection is closed without further activity, and the error.
  struct Deadline {
    std::int64_t when;
    Error error;  // Error{}: no error.
  };

  Connection(Transport& transport, int fd);
  ~Connection();
  void destroy();

  bool has(unsigned flags) const { return (flags_ & flags) != 0; }
  void set(Flag flag) { flags_ = static_cast<std::uint16_t>(flags_ | flag); }
  void clear(unsigned flags) { flags_ = static_cast<std::uint16_t>(flags_ & ~flags); }
  void set(Flag flag, bool on) { on ? set(flag) : clear(flag); }
  StreamHandler* handler() const { return static_cast<StreamHandler*>(node_.head.context); }
  void set_handler(StreamHandler* handler) { node_.head.context = handler; }
  bool has_queue() const { return busy_ != nullptr && !busy_->queue.empty(); }
  // Returns whether it is corked: the queue has not been tried yet, and is sent before the loop
  // waits.
  bool is_held() const { return held_place() != 0; }
  bool has_unread() const { return busy_ != nullptr && !busy_->unread.empty(); }
  void start_slowly(bool is_first);
  BusyState* make_busy();
  void drop_busy_state();
  void exchange_transports(Connection& other);
  Throttle* throttle() const { return busy_ == nullptr ? nullptr : busy_->throttle.get(); }
  Throttle* make_throttle();

  // ---- states

  // Fast path: input is read, passed to the handler and used up, without any special condition.
  bool is_plain() const {
    return life_.is(State::open) && !has(kUnusual) && busy_ == nullptr && handler() != nullptr;
  }

  // Changes the state, and does all that the new one requires. False if it stays the same.
  bool take(Turn turn);
  void enter();
  void fail(Turn turn, std::error_code error);
  // Called after a change of the state, of a condition or of an option: derives from them the
  // interest in events, the next deadline, and whether settle() has work.
  void conclude();
  // As Lifecycle::may_report(), while there is a loop.
  bool may_report() const { return life_.may_report() && is_open(); }

  template <class Function>
  bool call(Function function) {
    return call(loop_state(), {}, function);
  }
  template <class Function>
  bool call(LoopStreams& loop_state, Bytes arrived, Function function);
  void begin_call(LoopStreams& loop_state, Bytes arrived);
  [[gnu::always_inline]] bool end_call(LoopStreams& loop_state);
  bool after_call();
  void defer_past_callback(Events events);
  void on_unwatchable(std::error_code error);

  [[gnu::noinline]] bool write_slowly(Bytes bytes);
  [[gnu::noinline]] bool write_behind(Bytes bytes);
  [[gnu::noinline]] void send_what_waits();
  bool send_now(std::span<const Bytes> pieces, std::size_t size);
  [[gnu::always_inline]] void send_one_now(Bytes bytes);
  bool may_hold(std::size_t size) const;
  bool hold(Bytes bytes);
  bool add_to_held(Bytes bytes);
  void queue_gathered();
  bool enqueue(Bytes bytes);
  void on_queue_begun();
  bool on_sent_in_part(long sent, std::span<const Bytes> pieces);
  [[gnu::noinline]] void on_one_sent_in_part(long sent, Bytes bytes) {
    on_sent_in_part(sent, {&bytes, 1});
  }
  bool send_slowly(std::span<const Bytes> pieces);
  bool lose_rest();
  void send_soon();
  bool fits(std::size_t size) const;
  bool has_room_for(std::size_t size);
  void mark_full();
  void flush();
  bool send_queued();
  bool on_flushed();
  void on_broken(std::error_code error);
  void give_up(std::error_code error);
  void drop_queue();
  void go_on_reading();

  bool is_reading() const;
  bool wants_to_read() const;
  bool wants_to_write() const;
  void read_again() {
    if (busy_ != nullptr) begin_read_timeout();
  }
  void begin_read_timeout();
  void receive_plainly();
  bool receive();
  bool receive_arrival(LoopStreams& loop_state, std::span<std::byte> room, bool& is_full);
  bool receive_more(std::span<std::byte> room);
  std::size_t room_behind() const;
  bool receive_slowly(std::span<std::byte> arrivals, bool& is_full);
  bool on_received_nothing(long count);
  [[gnu::noinline]] bool on_receiving_failed(long count);
  void note_arrival(std::size_t size);
  bool hand_over(LoopStreams& loop_state, Bytes bytes);
  bool hand_over(ArrivedDescriptors& arrived, Bytes bytes);
  bool show_unread();
  bool keeps_what_is_left();
  void discard();
  bool keep(Bytes left);
  bool keep(Unread&& shown, std::size_t used);
  bool has_wanted(std::size_t size) const { return busy_ == nullptr || size >= busy_->wanted; }
  bool may_offer() const { return has(kOffer | kEndDue) && may_tell(); }
  bool has_offer() const;
  bool may_tell() const;
  bool may_show() const;
  bool offer_unread();
  void offer_again() {
    if (has(kInCallback | kOffer | kEndDue) || has_unread()) offer_slowly();
  }
  void offer_slowly();
  bool on_peer_end();
  bool on_peer_end_slowly();
  bool report_end();
  bool ends_by_closing() const;

  bool end_our_side();
  bool has_ended() const;
  bool has_nothing_to_lose() const;
  bool is_finished() const;
  bool is_due() const;
  void settle_later();
  bool settle();
  bool drain_then_fail();
  bool finish(std::error_code error);
  void shut(bool is_aborted = false);
  void leave_loop();
  void report_closed();
  void drop_callbacks();

  std::int64_t now() const;
  std::uint32_t age_now() const;
  Nanos age() const;
  StreamState public_state() const;
  void touch();
  void note_activity();
  std::size_t allowance(Throttle::Direction direction);
  bool wake_up(std::int64_t now);
  bool is_resting() const;
  void hold_loop();
  void release_loop();
  void update_wish();
  void wish_for(Events wish);
  bool catch_up();
  // False when memory runs out.
  bool note_deadline() { return !has_deadline() || note_next_deadline(); }
  bool note_next_deadline();
  std::int64_t idle_deadline() const;
  std::int64_t linger_deadline() const;
  std::int64_t read_deadline() const;
  std::int64_t write_deadline() const;
  std::int64_t throttle_deadline() const;
  // Fast path: most connections have none.
  bool has_deadline() const { return busy_ != nullptr || idle_.is_set() || is_discarding(); }
  Deadline next_deadline() const;

  FdNode node_{};  // Its context is the handler; `extra` is the time when it was made, as
                   // age_now().
  Transport* transport_;
  std::unique_ptr<BusyState> busy_;
  IdleTimeout idle_;
  Deadlines::Place deadline_place_ = 0;
  std::uint16_t flags_ = 0;
  Lifecycle life_;
};
static_assert(sizeof(Connection) <= 80);

}  // namespace spate
