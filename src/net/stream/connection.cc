// Connection: its states, from start() to the closing of its descriptor. Sending, receiving and
// timeouts are in connection_send.cc, connection_receive.cc and connection_deadlines.cc.
#include "net/stream/connection.h"

#include <cerrno>
#include <new>
#include <utility>

#include "net/stream/callback_handler.h"
#include "net/stream/loop_streams.h"
#include "net/stream/transport.h"
#include "spate/assert.h"
#include "spate/error.h"
#include "spate/net/stream_use.h"

namespace spate {

Connection::BusyState::BusyState() = default;
Connection::BusyState::~BusyState() = default;

Connection* Connection::make(Transport& transport, int fd) {
  SPATE_ASSERT(!transport.loop_state().is_showing(), "a Stream was made in for_each_stream()");
  void* memory = transport.loop_state().slab().take();
  return memory == nullptr ? nullptr : new (memory) Connection(transport, fd);
}

Connection::Connection(Transport& transport, int fd) : transport_(&transport) {
  node_.fd = fd;
  node_.events = kFdIsNew;
  choose_callback(false, StreamUse::general);
  node_.head.extra = age_now();
  touch();
  loop_state().enter();
}

Connection::~Connection() {
  if (!life_.is_closed()) transport_->close(*this, has_queue());
  if (busy_ != nullptr) drop_queue();
  loop_state().forget_deadline(*this);  // A closed connection may have one, to report its end.
  if (node_.head.pending != 0 && loop_state().has_loop())
    loop_state().loop().clear_pending(node_.head);
  transport_->leave(*this);
}

void Connection::destroy() {
  LoopStreams& loop_state = this->loop_state();
  SPATE_ASSERT(!loop_state.is_showing(), "a Stream was destroyed in for_each_stream()");
  this->~Connection();
  loop_state.slab().give_back(this);
  loop_state.leave();
}

Connection::BusyState* Connection::make_busy() {
  if (busy_ == nullptr) busy_.reset(new (std::nothrow) BusyState);
  return busy_.get();
}

void Connection::drop_busy_state() {
  if (busy_ != nullptr && !has(kFull) && !busy_->is_needed()) busy_.reset();
}

// ---- the functions of Stream

void Connection::start(StreamHandler& handler) {
  const bool is_first = this->handler() == nullptr;
  set_handler(&handler);
  if (!is_plain() || !loop_state().is_alive()) return start_slowly(is_first);
  note_deadline();
  wish_for(Events::read);
}

void Connection::start_slowly(bool is_first) {
  if (is_first) read_again();
  if (busy_ != nullptr) busy_->wanted = 0;
  if (is_open()) {
    offer_again();
    conclude();
  } else {
    settle_later();  // The handler came after the end: on_closed() is due.
  }
  if (busy_ != nullptr && busy_->callbacks.get() != this->handler()) drop_callbacks();
}

bool Connection::start(StreamCallbacks callbacks) {
  BusyState* busy = make_busy();
  OwnCallbacks made(
      busy == nullptr ? nullptr : new (std::nothrow) CallbackHandler(std::move(callbacks)));
  if (made == nullptr) return false;
  std::swap(busy->callbacks, made);
  start(*busy->callbacks);
  return true;  // Last, because destroying the replaced functions may destroy the Stream.
}

std::size_t Connection::queued() const {
  const WriteGather& gather = loop_state().gather();
  return (busy_ == nullptr ? 0 : busy_->queue.size()) +
         (gather.owner() == this ? gather.size() : 0);
}

bool Connection::set_limits(const QueueLimits& limits) {
  BusyState* busy = make_busy();
  if (busy == nullptr) return false;
  const bool was_reading = is_reading();
  busy->limits = limits;
  busy->limits_are_set = true;
  mark_full();
  if (!was_reading && is_reading()) read_again();
  conclude();
  return true;
}

// Passes unread bytes in again, to the same handler or a new one. Inside a callback the unread
// bytes are not known yet. Outside, no more bytes can arrive after the peer's end, so waiting for a
// number of them ends.
void Connection::offer_slowly() {
  if (has(kPeerEnded) && !has(kInCallback) && busy_ != nullptr) busy_->wanted = 0;
  if (has(kInCallback) || has_unread()) set(kOffer);
}

void Connection::pause() {
  set(kPaused);
  conclude();
}

void Connection::resume() {
  if (!has(kPaused)) return;
  clear(kPaused);
  offer_again();
  read_again();
  conclude();
}

bool Connection::is_quiet() {
  return is_open() && !has(kPeerEnded) && !has_unread() && transport_->is_quiet(*this);
}

// Bytes that are already there count.
bool Connection::want(std::size_t size) {
  BusyState* busy = make_busy();
  if (busy == nullptr) return false;
  busy->wanted = size;
  if (size != 0) offer_again();
  conclude();
  return true;
}

void Connection::end() {
  clear(kForked);
  if (is_open()) take(Turn::end);
}

void Connection::close(Linger wish) {
  if (!is_open()) return;
  clear(kForked);
  const bool ends_here = life_.is(State::open) || life_.is(State::ending);
  if (wish == Linger::no && ends_here && transport_->is_socket() && !has_unread()) set(kPeerEnded);
  discard();
}

// An earlier reason to end is not reported either.
void Connection::abort() {
  clear(kForked);
  if (is_open()) shut(true);
  life_.take(Turn::told);
  drop_callbacks();
}

void Connection::abandon() {
  set(kAbandoned);
  set_handler(nullptr);
  const bool may_linger = is_open() && !is_parents() && !has_nothing_to_lose();
  if (may_linger || (has(kInCallback) && !life_.is_closed())) discard();
  if (has(kInCallback)) return;
  // Without a deadline it would never be checked again.
  if (may_linger && deadline_place_ != 0 && !has_nothing_to_lose()) return;
  if (is_open()) shut();
  destroy();
}

// Discards all input, received and future, and lingers until the peer ends, too.
void Connection::discard() {
  clear(kEndDue);
  if (busy_ != nullptr) busy_->unread = Unread();
  if (is_open()) touch();
  if (!take(Turn::close)) conclude();  // Our end waited for a callback to return.
}

Result<int> Connection::release() {
  send_waiting();
  if (life_.is_cut_short()) return std::unexpected(life_.error());
  if (queued() != 0 || !life_.is(State::open) || has_unread())
    return std::unexpected(sys::error_code(-EBUSY));
  take(Turn::shut);
  life_.take(Turn::told);
  const Result<int> fd = transport_->release(*this);
  drop_callbacks();
  return fd;
}

// ---- changes of the state

bool Connection::take(Turn turn) {
  if (!life_.take(turn)) return false;
  enter();
  return true;
}

// Does what the state requires that was just entered. `over` requires nothing, so Turn::told is
// taken without this.
void Connection::enter() {
  if (life_.is_closed()) return leave_loop();
  if (life_.is_cut_short()) {
    drop_queue();
    if (has(kFull)) go_on_reading();
  }
  conclude();
}

// An earlier reason to end stays.
void Connection::fail(Turn turn, std::error_code error) {
  if (take(turn)) life_.set_error(error);
}

void Connection::conclude() {
  if (!is_open()) return;
  const bool may_end = life_.is_ending() && !has_queue() && !has(kInCallback);
  if (may_end && end_our_side()) return;
  update_wish();
  note_deadline();
  if (is_due()) settle_later();
}

// ---- the end

// If the peer has finished, close() alone sends the FIN; shutdown() is unnecessary. The peer may
// have been declared finished (Linger::no) but have sent more data. False: it is tried again later.
bool Connection::end_our_side() {
  const bool is_last = is_discarding() && has(kPeerEnded) && transport_->is_socket();
  if (is_last && sys::has_input(fd())) clear(kPeerEnded);
  const bool is_told = is_parents() || (is_last && has(kPeerEnded));
  return (is_told || transport_->shut_down(*this)) && take(Turn::sent);
}

// Both sides have ended, and all events were reported.
bool Connection::has_ended() const { return has(kPeerEnded) && !has(kEndDue) && life_.has_ended(); }

// Returns whether closing now loses nothing. Closing a socket with unread input resets the
// connection, which destroys bytes that the peer has not read. So the peer must have ended, or
// nothing was sent, or the connection has failed anyway.
bool Connection::has_nothing_to_lose() const {
  if (queued() != 0) return false;
  return life_.is_cut_short() || (!transport_->has_farewell() && (has(kPeerEnded) || !has(kWrote)));
}

// Returns whether only closing is left.
bool Connection::is_finished() const {
  return has_ended() || life_.is(State::failed) || (is_discarding() && has_nothing_to_lose());
}

// Returns whether settle() has work.
bool Connection::is_due() const {
  return is_drained() || may_offer() || life_.is_cut_short() || is_finished();
}

// Schedules settle(): user code must not be called from inside a call to the Stream. Inside a
// callback, after_call() does it.
void Connection::settle_later() {
  if (has(kInCallback) || !loop_state().is_alive()) return;
  // Without memory for the event, a timer does it a little later.
  if (!loop_state().loop().feed(node_.head, Events::custom))
    loop_state().note_deadline(*this, now());
}

void Connection::drop_queue() {
  if (is_held()) loop_state().forget_held(*this);
  if (!has_queue()) return;
  Buffer spent;
  busy_->queue.clear(spent);
  if (!spent.empty()) loop_state().release_later(std::move(spent));
}

// Ends the connection, from the loop. May destroy it.
bool Connection::finish(std::error_code error) {
  shut();
  if (error) life_.set_error(error);
  report_closed();
  return false;
}

// Unsent data is lost, so reset the connection: a FIN would make a truncated stream look complete.
void Connection::shut(bool is_aborted) {
  transport_->close(*this, is_aborted || has_queue() || life_.is_cut_short());
  take(Turn::shut);
}

// Takes it out of all that its loop has for open connections.
void Connection::leave_loop() {
  if (loop_state().gather().owner() == this) loop_state().gather().drop();
  loop_state().forget_deadline(*this);
  release_loop();
  clear(kReadRests | kSendRests);
  if (busy_ == nullptr) return;
  drop_queue();
  busy_->throttle.reset();
}

// Calls on_closed(), once there is a handler. Nothing can be written any more, and nothing is
// corked.
void Connection::report_closed() {
  if (handler() != nullptr && life_.take(Turn::told)) {
    set(kInCallback);
    call_user("StreamHandler", [&] { handler()->on_closed(life_.error()); });
    clear(kInCallback);
  }
  if (has(kAbandoned)) return destroy();
  if (life_.is(State::over) && !has(kInCallback)) drop_callbacks();
}

// Destroying them may destroy the Stream, so callers do nothing after this.
void Connection::drop_callbacks() { const OwnCallbacks gone = take_callbacks(); }

OwnCallbacks Connection::take_callbacks() {
  if (busy_ == nullptr || busy_->callbacks == nullptr) return nullptr;
  if (handler() == busy_->callbacks.get()) set_handler(nullptr);
  return std::move(busy_->callbacks);
}

void CallbackHandlerEnd::operator()(CallbackHandler* handler) const { handler->abandon(); }

// Handles events that a callback caused, or deferred by running the loop.
bool Connection::after_call() {
  clear(kNested);
  if (has(kAbandoned)) {
    abandon();
    return false;
  }
  if (!is_open()) return false;
  if (!has_unread()) clear(kOffer);
  conclude();
  return true;
}

// ---- called by the loop

void Connection::on_ready(Events events) {
  const bool is_refused = any(events & Events::error) && node_.head.active == 0;
  if (is_refused) {
    const auto error = static_cast<long>(std::exchange(node_.head.extra, age_now()));
    return on_unwatchable(sys::error_code(-error));
  }
  if (has(kInCallback)) return defer_past_callback(events);
  if (any(events & Events::custom) && !settle()) return;
  if (any(events & Events::write) && !send_queued()) return;
  if (any(events & (Events::read | Events::peer_closed | Events::error)) && wants_to_read())
    receive();
}

// The backend cannot watch the descriptor, so no event will follow. This event has replaced the one
// that a failed stream had queued.
void Connection::on_unwatchable(std::error_code error) {
  life_.is(State::ended) ? give_up(error) : on_broken(error);
  settle_later();
}

// Registers the interest of `other` with its new transport.
void Connection::exchange_transports(Connection& other) {
  loop_state().loop().clear_pending(other.node_.head);
  loop_state().loop().stop(other.node_);
  std::swap(transport_, other.transport_);
  std::swap(node_.fd, other.node_.fd);
  std::swap(node_.head.callback, other.node_.head.callback);
}

void Connection::on_connected(Stream made, bool is_ended) {
  if (life_.state() >= State::failed) return made.abort();  // on_closed() is due, in this turn.
  set(kForked, of(made)->has(kForked));  // The child of a fork may have connected by itself.
  exchange_transports(*of(made));
  made = Stream();
  touch();
  read_again();
  if (is_ended) transport_->shut_down(*this);
  update_wish();
  if (may_report() && !call([](StreamHandler& handler) { handler.on_connected(); })) return;
  send_queued();
}

// A callback of this connection is running the loop. The queue continues to be sent. No other event
// is reported until that callback returns and after_call() checks everything again.
void Connection::defer_past_callback(Events events) {
  set(kNested);
  if (any(events & Events::write) && has_queue()) flush();
  update_wish();
}

// Does the work that was not allowed inside a call to the Stream or inside its callback.
bool Connection::settle() {
  if (life_.is_closed()) {
    report_closed();
    return false;
  }
  if (life_.is(State::broken)) return drain_then_fail();
  if (!on_flushed()) return false;
  return !is_finished() || finish(life_.error());
}

// Sending has failed. Input that the peer sent before is still read, one piece per turn and within
// the rate limit; then the connection ends.
bool Connection::drain_then_fail() {
  if (!is_reading()) return finish(life_.error());
  if (has(kReadRests)) return true;
  // The handler may have closed or paused it.
  if (offer_unread() && (!is_reading() || receive())) settle_later();
  return false;
}

void Connection::on_loop_end() {
  if (has(kAbandoned)) destroy();
}

// Both processes have the descriptor, and the parent sends the queue. Two ends in memory are copies
// of the parent's. The socket of a connecting one belongs to the attempt.
bool Connection::on_fork() {
  if (fd() < 0 && transport_->is_connected()) {
    update_wish();
    return true;
  }
  set(kForked);
  transport_->on_fork();
  if (has_queue()) {
    drop_queue();
    conclude();
  }
  return !has(kAbandoned) || has(kInCallback);
}

// Ignores the rate limit.
bool Connection::is_reading() const {
  if (has(kPeerEnded)) return false;
  if (is_discarding()) return true;
  return life_.may_report() && handler() != nullptr && may_show();
}

bool Connection::wants_to_read() const {
  constexpr unsigned kReasonsNotTo = kPeerEnded | kPaused | kReadRests | kFull;
  if (life_.is(State::open) && handler() != nullptr && !has(kReasonsNotTo)) return true;
  return is_reading() && (!has(kReadRests) || is_discarding());
}

// Our end follows the queue. A transport that sends data for it (close_notify) may need several
// attempts.
bool Connection::wants_to_write() const {
  if (has_queue()) return !is_held() && !has(kSendRests) && !busy_->queue.is_waiting();
  return life_.is_ending() && !has(kInCallback);
}

void Connection::update_wish() {
  if (!is_open()) return;
  Events wish = wants_to_read() && !has(kNested) ? Events::read : Events::none;
  if (wants_to_write()) wish |= Events::write;
  wish_for(wish);
}

inline void Connection::wish_for(Events wish) {
  if (!transport_->want(*this, wish)) on_broken(sys::error_code(-ENOMEM));
  if (has(kReadRests | kSendRests | kHoldsLoop)) is_resting() ? hold_loop() : release_loop();
}

}  // namespace spate
