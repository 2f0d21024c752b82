// Connection: its life, from start() to the closing of its descriptor. Sending, receiving and
// deadlines are in connection_send.cc, connection_receive.cc and connection_deadlines.cc.
#include "net/stream/connection.h"

#include <cerrno>
#include <new>
#include <utility>

#include "net/stream/callback_handler.h"
#include "net/stream/hub.h"
#include "net/stream/transport.h"
#include "spate/assert.h"
#include "spate/error.h"

namespace spate {

Connection::BusyState::BusyState() = default;
Connection::BusyState::~BusyState() = default;

Connection* Connection::make(Transport& transport, int fd) {
  SPATE_ASSERT(!transport.hub().is_showing(), "a Stream was made in for_each_stream()");
  void* memory = transport.hub().slab().take();
  return memory == nullptr ? nullptr : new (memory) Connection(transport, fd);
}

Connection::Connection(Transport& transport, int fd) : transport_(&transport) {
  node_.fd = fd;
  node_.events = kFdIsNew;
  node_.head.callback = [](void*, Node& head, Events events) { on_event(head, events); };
  node_.head.extra = age_now();
  touch();
  hub().enter();
}

Connection::~Connection() {
  if (state_ < State::closed) transport_->close(*this, has_queue());
  if (busy_ != nullptr) drop_queue();
  hub().forget_deadline(*this);  // One that is closed may have noted when to tell so.
  if (node_.head.pending != 0 && hub().has_loop()) hub().loop().clear_pending(node_.head);
  transport_->leave(*this);
}

// An event that nothing is left of is none.
void Connection::put_transport(Transport& transport) {
  transport_ = &transport;
  node_.head.callback = [](void*, Node& head, Events events) {
    auto& connection = reinterpret_cast<Connection&>(head);
    const Events left = connection.transport_->on_event(connection, events);
    if (any(left)) on_event(head, left);
  };
}

void Connection::destroy() {
  Hub& hub = this->hub();
  SPATE_ASSERT(!hub.is_showing(), "a Stream was destroyed in for_each_stream()");
  this->~Connection();
  hub.slab().give_back(this);
  hub.leave();
}

Connection::BusyState* Connection::make_busy() {
  if (busy_ == nullptr) busy_.reset(new (std::nothrow) BusyState);
  return busy_.get();
}

void Connection::drop_busy_state() {
  if (busy_ != nullptr && !has(kFull) && !busy_->is_needed()) busy_.reset();
}

// ---- the owner's calls

void Connection::start(StreamHandler& handler) {
  const bool is_first = this->handler() == nullptr;
  set_handler(&handler);
  if (!is_plain() || !hub().is_alive()) return start_with_care(is_first);
  note_deadline();
  wish_for(Events::read);
}

void Connection::start_with_care(bool is_first) {
  if (is_first) read_again();
  if (busy_ != nullptr) busy_->wanted = 0;
  if (is_open()) {
    offer_again();
    note_deadline();
    update_wish();
  } else {
    settle_later();  // It is told that it is too late.
  }
}

bool Connection::start(StreamCallbacks callbacks) {
  BusyState* busy = make_busy();
  std::unique_ptr<CallbackHandler> made(
      busy == nullptr ? nullptr : new (std::nothrow) CallbackHandler(std::move(callbacks)));
  if (made == nullptr) return false;
  made->keep(std::move(busy->callbacks));
  busy->callbacks = std::move(made);
  start(*busy->callbacks);
  return true;
}

std::size_t Connection::queued() const {
  const WriteGather& gather = hub().gather();
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
  update_wish();
  if (is_drained() || may_offer()) settle_later();
  return true;
}

// Passes in again what was left, to the same handler or a new one. Inside a callback it is not yet
// known what is left.
void Connection::offer_with_care() {
  if (has(kInCallback) || has_unread()) set(kOffer);
  if (may_offer()) settle_later();
}

void Connection::pause() {
  set(kPaused);
  update_wish();
}

void Connection::resume() {
  if (!has(kPaused)) return;
  clear(kPaused);
  offer_again();
  read_again();
  update_wish();
}

// Of a peer that has ended, nothing more is to come.
bool Connection::want(std::size_t size) {
  BusyState* busy = make_busy();
  if (busy == nullptr) return false;
  busy->wanted = has(kPeerEnded) ? 0 : size;
  if (may_offer()) settle_later();
  return true;
}

void Connection::end() {
  if (!is_open() || !take(Turn::end)) return;
  if (!has_queue() && !has(kInCallback)) end_our_side();
}

void Connection::close(Linger wish) {
  if (!is_open()) return;
  const bool ends_here = state_ == State::open || state_ == State::ending;
  if (wish == Linger::no && ends_here && transport_->is_socket() && !has_unread()) set(kPeerEnded);
  discard();
  linger();
  if (is_finished()) settle_later();
}

// An earlier reason to end is not reported either.
void Connection::abort() {
  if (is_open()) {
    take(Turn::give_up);
    shut();
  }
  take(Turn::told);
}

void Connection::abandon() {
  set(kAbandoned);
  set_handler(nullptr);
  if (state_ < State::closed) discard();
  if (has(kInCallback)) return;
  if (is_open() && !hub().is_foreign() && !has_nothing_to_lose()) {
    linger();                                                    // A farewell may have been all.
    if (deadline_place_ != 0 && !has_nothing_to_lose()) return;  // Without, nobody looks again.
  }
  if (is_open()) shut();
  destroy();
}

// What the peer sends, and what it has sent, is of no interest any more.
void Connection::discard() {
  take(Turn::close);
  clear(kEndDue);
  if (busy_ != nullptr) busy_->unread = Unread();
}

Result<int> Connection::release() {
  send_waiting();
  if (is_cut_short()) return std::unexpected(error());
  if (queued() != 0 || state_ != State::open || has_unread())
    return std::unexpected(sys::error_code(-EBUSY));
  hub().forget_deadline(*this);
  release_loop();
  if (busy_ != nullptr) busy_->throttle.reset();
  take(Turn::shut);
  take(Turn::told);
  return transport_->release(*this);
}

// ---- ending

// It was said to send no more, and has.
void Connection::listen_again() {
  clear(kPeerEnded);
  update_wish();
}

// To a peer that sends no more, closing says as much.
void Connection::end_our_side() {
  const bool is_last = is_discarding() && has(kPeerEnded) && transport_->is_socket();
  if (is_last && sys::has_input(fd())) listen_again();
  if ((!is_last || !has(kPeerEnded)) && !transport_->shut_down(*this)) return;
  take(Turn::sent);
  if (has_ended()) settle_later();
}

// Both sides, and all that is to be told has been told.
bool Connection::has_ended() const {
  return has(kPeerEnded) && !has(kEndDue) && (state_ == State::ended || state_ == State::lingering);
}

// A reset, which closing a socket with unread input is, destroys what the peer has not read yet.
bool Connection::has_nothing_to_lose() const {
  if (queued() != 0) return false;
  return is_cut_short() || (!transport_->has_farewell() && (has(kPeerEnded) || !has(kWrote)));
}

// Whether nothing is left but to close it.
bool Connection::is_finished() const {
  return has_ended() || state_ == State::failed || (is_discarding() && has_nothing_to_lose());
}

// Sends what is queued, ends our side, and throws away what still comes until the peer ends, too.
void Connection::linger() {
  if (is_ending() && !has_queue() && !has(kInCallback)) end_our_side();
  touch();
  update_wish();
  note_deadline();
}

// User code must not be called from inside a call to the Stream. Inside a callback, after_call()
// sees to it.
void Connection::settle_later() {
  if (has(kInCallback) || !hub().is_alive()) return;
  if (!hub().loop().feed(node_.head, Events::custom))
    hub().note_deadline(*this, hub().loop().now().count());  // Without memory for it, a bit later.
}

void Connection::drop_queue() {
  if (is_held()) hub().forget_held(*this);
  if (!has_queue()) return;
  Buffer spent;
  busy_->queue.clear(spent);
  if (!spent.empty()) hub().release_later(std::move(spent));
}

// The end, in the loop's own time. The connection may be gone afterwards.
bool Connection::finish(std::error_code error) {
  shut();
  if (error) set_error(error);
  tell_closed();
  return false;
}

// What was written and not sent dies with the connection; then the peer must not take what it has
// for the whole.
void Connection::shut() {
  const bool reset = has_queue() || is_cut_short();
  if (hub().gather().owner() == this) hub().gather().drop();
  hub().forget_deadline(*this);
  release_loop();
  transport_->close(*this, reset);
  take(Turn::shut);
  clear(kReadRests | kSendRests);
  if (busy_ == nullptr) return;
  drop_queue();
  busy_->throttle.reset();
}

// Waits until there is a handler. Nothing can be written any more, and nothing gathered.
void Connection::tell_closed() {
  if (handler() != nullptr && take(Turn::told)) {
    set(kInCallback);
    call_user("StreamHandler", [&] { handler()->on_closed(error()); });
    clear(kInCallback);
  }
  if (has(kAbandoned)) destroy();
}

// What a callback has made possible, or put off by running the loop.
bool Connection::after_call() {
  const bool was_nested = has(kNested);
  clear(kNested);
  if (has(kAbandoned)) {
    abandon();
    return false;
  }
  if (!is_open()) return false;
  if (is_ending() && !has_queue()) end_our_side();
  if (!has_unread()) clear(kOffer);
  if (was_nested) {
    update_wish();
    note_deadline();
  }
  if (was_nested || may_offer() || is_cut_short() || is_finished()) settle_later();
  return true;
}

// ---- the loop's calls

void Connection::on_ready(Events events) {
  const bool is_refused = any(events & Events::error) && node_.head.active == 0;
  if (is_refused) {
    const auto error = static_cast<long>(std::exchange(node_.head.extra, age_now()));
    return on_broken(sys::error_code(-error));
  }
  if (has(kInCallback)) return defer_past_callback(events);
  if (any(events & Events::custom) && !settle()) return;
  if (any(events & Events::write) && !send_queued()) return;
  if (any(events & (Events::read | Events::peer_closed | Events::error)) && wants_to_read())
    receive();
}

// What `other` waits for, its transport is asked for anew.
void Connection::exchange_transports(Connection& other) {
  hub().loop().clear_pending(other.node_.head);
  hub().loop().stop(other.node_);
  std::swap(transport_, other.transport_);
  std::swap(node_.fd, other.node_.fd);
  std::swap(node_.head.callback, other.node_.head.callback);
}

void Connection::on_connected(Stream made, bool is_ended) {
  exchange_transports(*of(made));
  made = Stream();
  touch();
  read_again();
  if (is_ended) transport_->shut_down(*this);
  update_wish();
  if (is_heard() && !call([](StreamHandler& handler) { handler.on_connected(); })) return;
  send_queued();
}

// A callback of this connection's is running the loop. What is queued goes on being sent; nothing
// more is told until that callback has returned, which looks at everything again.
void Connection::defer_past_callback(Events events) {
  set(kNested);
  if (any(events & Events::write) && has_queue()) flush();
  update_wish();
}

// What is owed, and could not be done inside a call to the Stream or inside its callback.
bool Connection::settle() {
  if (state_ >= State::closed) {
    tell_closed();
    return false;
  }
  if (state_ == State::broken) return drain_then_fail();
  if (!on_flushed()) return false;
  return !is_finished() || finish(error());
}

// Sending has failed. Whatever the peer sent before that is read, a piece a turn and as fast as the
// rate lets it, then it is over.
bool Connection::drain_then_fail() {
  if (!is_reading()) return finish(error());
  if (has(kReadRests)) return true;
  if (offer_unread() && receive()) settle_later();
  return false;
}

void Connection::on_loop_end() {
  if (has(kAbandoned)) destroy();
}

// But for the rate.
bool Connection::is_reading() const {
  if (has(kPeerEnded)) return false;
  if (is_discarding()) return true;
  return state_ <= State::broken && handler() != nullptr && may_show();
}

bool Connection::wants_to_read() const {
  constexpr unsigned kReasonsNotTo = kPeerEnded | kPaused | kReadRests | kFull;
  if (state_ == State::open && handler() != nullptr && !has(kReasonsNotTo)) return true;
  return is_reading() && (!has(kReadRests) || is_discarding());
}

void Connection::update_wish() {
  if (!is_open()) return;
  Events wish = wants_to_read() && !has(kNested) ? Events::read : Events::none;
  if (has_queue() && !is_held() && !has(kSendRests)) wish |= Events::write;
  wish_for(wish);
}

inline void Connection::wish_for(Events wish) {
  if (!transport_->want(*this, wish)) on_broken(sys::error_code(-ENOMEM));
  if (has(kReadRests | kSendRests | kHoldsLoop)) is_resting() ? hold_loop() : release_loop();
}

void Connection::set_error(std::error_code error) {
  set(kOwnError, error.category() == error_category());
  error_ = static_cast<std::uint8_t>(error.value());
}

std::error_code Connection::error() const {
  return has(kOwnError) ? make_error_code(static_cast<Error>(error_))
                        : std::error_code(static_cast<int>(error_), std::system_category());
}

}  // namespace spate
