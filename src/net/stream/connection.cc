// Connection: its life, from start() to the closing of its descriptor, and its deadlines. Sending
// and receiving are in connection_send.cc and connection_receive.cc.
#include "net/stream/connection.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <utility>

#include "net/stream/callback_handler.h"
#include "net/stream/hub.h"
#include "net/stream/transport.h"
#include "spate/assert.h"
#include "spate/error.h"

namespace spate {

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
// How long a closed connection waits for its peer to read the last bytes and to end.
constexpr Nanos kLinger{10'000'000'000};

}  // namespace

Connection::BusyState::BusyState() = default;
Connection::BusyState::~BusyState() = default;

Connection* Connection::make(Transport& transport, int fd) {
  void* memory = transport.hub().slab().take();
  return memory == nullptr ? nullptr : new (memory) Connection(transport, fd);
}

Connection* Connection::adopt(Transport& transport, sys::Descriptor& socket) {
  Connection* connection = make(transport, socket.get());
  if (connection != nullptr) socket.release();
  return connection;
}

Connection::Connection(Transport& transport, int fd) : transport_(&transport) {
  node_.fd = fd;
  node_.events = kFdIsNew;
  node_.head.callback = [](void*, Node& head, Events events) { on_event(head, events); };
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
  if (this->handler() == nullptr) read_again();
  if (busy_ != nullptr) busy_->wanted = 0;
  set_handler(&handler);
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

void Connection::close() {
  if (!is_open()) return;
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

void Connection::set_idle_timeout(Nanos timeout) {
  const auto span = static_cast<std::uint64_t>(timeout < Nanos{0} ? 1 : timeout.count());
  const std::uint64_t rounded_up = (span + kNanosPerTick - 1) / kNanosPerTick;
  idle_ticks_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(rounded_up, INT32_MAX));
  if (!is_open() || is_discarding()) return;
  touch();
  note_deadline();
}

bool Connection::set_deadline(Nanos timeout) {
  BusyState* busy = make_busy();
  if (busy == nullptr) return false;
  if (!is_open()) return true;
  busy->deadline =
      timeout == Nanos{0} ? kNever : deadline_after(hub().loop().now(), timeout).count();
  note_deadline();
  return true;
}

bool Connection::set_read_timeout(Nanos timeout) {
  BusyState* busy = make_busy();
  if (busy == nullptr) return false;
  busy->read_timeout = timeout;
  read_again();
  return true;
}

bool Connection::set_write_timeout(Nanos timeout) {
  BusyState* busy = make_busy();
  if (busy == nullptr) return false;
  busy->write_timeout = timeout;
  if (!is_open()) return true;
  busy->last_sent = hub().loop().now().count();
  note_deadline();
  return true;
}

bool Connection::set_rate_limits(const RateLimits& limits) {
  Throttle* throttle = make_throttle();
  if (throttle == nullptr) return false;
  throttle->set_limits(limits);
  on_throttle_changed();
  return true;
}

bool Connection::join(RateGroup* group) {
  Throttle* throttle = make_throttle();
  if (throttle == nullptr) return false;
  throttle->join(group);
  on_throttle_changed();
  return true;
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

void Connection::end_our_side() {
  if (!transport_->shut_down(*this)) return;
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

// Waits until there is a handler.
void Connection::tell_closed() {
  if (has(kAbandoned)) {
    destroy();
  } else if (handler() != nullptr && take(Turn::told)) {
    call({}, [&](StreamHandler& handler) { handler.on_closed(error()); });
  }
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
  if (is_refused) return on_broken(sys::error_code(-static_cast<long>(node_.head.extra)));
  if (has(kInCallback)) return defer_past_callback(events);
  if (any(events & Events::custom) && !settle()) return;
  if (any(events & Events::write) && !send_queued()) return;
  if (any(events & (Events::read | Events::peer_closed | Events::error)) && wants_to_read())
    receive();
}

void Connection::on_connected(Transport& transport, int fd, bool is_ended) {
  transport_ = &transport;
  node_.fd = fd;
  touch();
  read_again();
  if (is_ended) transport_->shut_down(*this);
  update_wish();
  if (is_heard() && !call({}, [](StreamHandler& handler) { handler.on_connected(); })) return;
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

void Connection::on_deadline() {
  if (has(kInCallback)) return defer_past_callback(Events::none);
  const std::int64_t now = hub().loop().now().count();
  const bool may_send = wake_up(now);
  if (!settle() || (may_send && !send_queued())) return;
  if (next_deadline().when <= now && !catch_up()) return;
  if (is_cut_short() && !is_resting()) return;  // It is settled in its turn.
  if (const Deadline next = next_deadline(); next.when <= now) {
    finish(next.error);
  } else {
    note_deadline();
  }
}

// A loop that was held up has not yet seen what is ready: it looks before a deadline expires. False
// as of settle().
bool Connection::catch_up() {
  if (!send_queued()) return false;
  return !wants_to_read() || receive();
}

void Connection::on_loop_end() {
  if (has(kAbandoned)) destroy();
}

// Of all that may end it, as far as has been looked.
Connection::Deadline Connection::next_deadline() const {
  const Deadline all[] = {
      {busy_ == nullptr ? kNever : busy_->deadline, Error::deadline},
      {write_deadline(), Error::write_timeout},
      {read_deadline(), Error::read_timeout},
      {idle_deadline(), Error::idle_timeout},
      {linger_deadline(), has_queue() ? Error::write_timeout : std::error_code()},
  };
  return *std::ranges::min_element(all, {}, &Deadline::when);
}

// Waiting for a rate limit is not idle.
std::int64_t Connection::idle_deadline() const {
  if (idle_ticks_ == 0 || is_discarding() || has(kReadRests | kSendRests)) return kNever;
  return last_active() + idle_ticks_ * kNanosPerTick;
}

std::int64_t Connection::linger_deadline() const {
  return is_discarding() && !is_resting() ? last_active() + kLinger.count() : kNever;
}

std::int64_t Connection::read_deadline() const {
  if (busy_ == nullptr || busy_->read_timeout == Nanos{0} || !wants_to_read() || is_discarding())
    return kNever;
  return deadline_after(Nanos{busy_->last_arrival}, busy_->read_timeout).count();
}

std::int64_t Connection::write_deadline() const {
  if (!has_queue() || busy_->write_timeout == Nanos{0} || has(kSendRests)) return kNever;
  return deadline_after(Nanos{busy_->last_sent}, busy_->write_timeout).count();
}

std::int64_t Connection::throttle_deadline() const {
  std::int64_t when = kNever;
  if (has(kReadRests)) when = throttle()->opens_at(Throttle::kRead);
  if (has(kSendRests)) when = std::min(when, throttle()->opens_at(Throttle::kWrite));
  return when;
}

// Without memory to note it, it is looked at when something happens. While it rests, nothing would.
void Connection::note_next_deadline() {
  const std::int64_t opens_at = throttle_deadline();
  const std::int64_t when = std::min(opens_at, next_deadline().when);
  if (when == kNever || hub().note_deadline(*this, when)) return;
  if (opens_at != kNever) give_up(sys::error_code(-ENOMEM));
}

// Not before it was; so a deadline that is counted from it is not early.
std::int64_t Connection::last_active() const {
  const std::int64_t now = hub().loop().now().count() >> kTickBits;
  const std::uint32_t ago = static_cast<std::uint32_t>(now) - last_active_ticks_;
  return (now - ago + 1) * kNanosPerTick;
}

// How many bytes the throttle lets through. If none, that direction rests until it opens.
std::size_t Connection::allowance(Throttle::Direction direction) {
  Throttle* throttle = this->throttle();
  if (throttle == nullptr) return SIZE_MAX;
  const std::size_t max = throttle->allowance(direction, hub().loop().now().count());
  if (max == 0) {
    set(direction == Throttle::kRead ? kReadRests : kSendRests);
    update_wish();
    note_deadline();
  }
  return max;
}

// Those whose rest is over. True if that is sending.
bool Connection::wake_up(std::int64_t now) {
  const bool read = has(kReadRests) && throttle()->opens_at(Throttle::kRead) <= now;
  const bool send = has(kSendRests) && throttle()->opens_at(Throttle::kWrite) <= now;
  if (read) clear(kReadRests);
  if (send) {
    clear(kSendRests);
    busy_->last_sent = now;
  }
  if (read || send) {
    touch();
    read_again();
    update_wish();
  }
  return send;
}

// Whether it moves nothing for a rate's sake alone.
bool Connection::is_resting() const {
  return (has(kReadRests) && is_reading()) || (has(kSendRests) && has_queue());
}

// A connection that waits for a rate limit watches nothing, and must keep the loop alive.
void Connection::hold_loop() {
  if (has(kHoldsLoop)) return;
  set(kHoldsLoop);
  if (hub().is_alive()) hub().loop().ref();
}

void Connection::release_loop() {
  if (!has(kHoldsLoop)) return;
  clear(kHoldsLoop);
  if (hub().is_alive()) hub().loop().unref();
}

Throttle* Connection::make_throttle() {
  if (!is_open()) return nullptr;
  if (BusyState* busy = make_busy(); busy != nullptr && busy->throttle == nullptr)
    busy->throttle.reset(new (std::nothrow) Throttle(this));
  return throttle();
}

// Under the new limits, both directions are tried at once.
void Connection::on_throttle_changed() {
  if (has(kReadRests)) read_again();
  clear(kReadRests | kSendRests);
  if (!throttle()->has_limits()) busy_->throttle.reset();
  drop_busy_state();
  update_wish();
}

// The time for which nothing has come begins anew: we have not been listening.
void Connection::begin_read_timeout() {
  if (!is_open() || busy_->read_timeout == Nanos{0}) return;
  busy_->last_arrival = hub().loop().now().count();
  note_deadline();
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
