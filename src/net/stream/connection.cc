#include "net/stream/connection.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <utility>

#include "net/stream/hub.h"
#include "net/stream/transport.h"
#include "spate/assert.h"
#include "spate/error.h"

namespace spate {

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
// How long a connection that nobody holds waits for its peer to take the last bytes and to end.
constexpr Nanos kLinger{10'000'000'000};

}  // namespace

Connection* Connection::make(Transport& transport, int fd) {
  void* memory = transport.hub().slab().take();
  return memory == nullptr ? nullptr : new (memory) Connection(transport, fd);
}

Connection::Connection(Transport& transport, int fd) : transport_(&transport) {
  node_.fd = fd;
  node_.events = kFdIsNew;
  node_.head.callback = [](void*, Node& head, Events events) {
    reinterpret_cast<Connection&>(head).on_ready(events);
  };
  touch();
  hub().enter();
}

Connection::~Connection() {
  if (!has(kClosed)) transport_->close(*this, has_queue());
  drop_queue();
  hub().forget_deadline(*this);  // One that is closed may have noted when to tell so.
  if (hub().has_loop()) hub().loop().clear_pending(node_.head);
  transport_->leave(*this);
}

void Connection::destroy() {
  Hub& hub = this->hub();
  this->~Connection();
  hub.slab().give_back(this);
  hub.leave();
}

Connection::Extra* Connection::extra() {
  if (extra_ == nullptr) extra_.reset(new (std::nothrow) Extra);
  return extra_.get();
}

// An idle connection owns no memory but itself, unless it was told something out of the ordinary.
void Connection::drop_extra() {
  if (extra_ != nullptr && !has(kFull) && extra_->queue.empty() && extra_->unread.empty() &&
      !extra_->limits_are_set && extra_->read_timeout == Nanos{0} &&
      extra_->write_timeout == Nanos{0} && extra_->deadline == kNever &&
      extra_->throttle == nullptr) {
    extra_.reset();
  }
}

// ---- the owner's calls

void Connection::start(StreamHandler& handler) {
  set_handler(&handler);
  if (!has(kStarted)) read_again();
  set(kStarted);
  if (is_open()) {
    offer_again();
    note_deadline();
    update_wish();
  } else {
    settle_later();  // It is told that it is too late.
  }
}

std::size_t Connection::queued() const {
  const WriteGather& gather = hub().gather();
  return (extra_ == nullptr ? 0 : extra_->queue.size()) +
         (gather.owner() == this ? gather.size() : 0);
}

bool Connection::set_limits(const QueueLimits& limits) {
  Extra* extra = this->extra();
  if (extra == nullptr) return false;
  const bool was_reading = is_reading();
  extra->limits = limits;
  extra->limits_are_set = true;
  mark_full();
  if (!was_reading && is_reading()) read_again();
  update_wish();
  if (is_drained() || may_offer()) settle_later();
  return true;
}

// Somebody else is to see what was left, or the same one once more. Inside a callback it is not
// known yet what is left.
void Connection::offer_again() {
  if (has(kInCallback) || (extra_ != nullptr && !extra_->unread.empty())) set(kOffer);
  if (may_offer()) settle_later();
}

void Connection::pause() {
  set(kPaused);
  update_wish();
}

void Connection::resume() {
  if (!has(kPaused)) return;
  set(kPaused, false);
  offer_again();
  read_again();
  update_wish();
}

void Connection::end() {
  if (!is_open() || has(kEnding)) return;
  set(kEnding);
  if (!has_queue() && !has(kInCallback)) shut_down();
}

// What the peer sends, and what it has sent, is of no interest any more.
void Connection::discard() {
  set(kDiscarding);
  if (extra_ != nullptr) extra_->unread = Unread();
}

void Connection::close() {
  if (!is_open()) return;
  discard();
  linger();
  if (has_nothing_to_lose()) settle_later();
}

void Connection::abort() {
  if (!is_open()) return;
  set(kReported);
  shut(true);
}

void Connection::abandon() {
  set(kAbandoned);
  discard();
  set_handler(nullptr);
  if (has(kInCallback)) return;
  if (!is_open()) {
    destroy();
  } else if (hub().is_foreign() || has_nothing_to_lose()) {
    shut(false);
    destroy();
  } else {
    linger();
    if (deadline_place_ != 0) return;
    shut(false);  // Without memory for a deadline nobody would ever look at it again.
    destroy();
  }
}

void Connection::set_idle_timeout(Nanos timeout) {
  const auto span = static_cast<std::uint64_t>(timeout < Nanos{0} ? 1 : timeout.count());
  const std::uint64_t rounded_up = (span + kNanosPerTick - 1) / kNanosPerTick;
  idle_ticks_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(rounded_up, INT32_MAX));
  if (!is_open() || has(kDiscarding)) return;
  touch();
  note_deadline();
}

bool Connection::set_deadline(Nanos timeout) {
  Extra* extra = this->extra();
  if (extra == nullptr) return false;
  if (!is_open()) return true;
  extra->deadline =
      timeout == Nanos{0} ? kNever : deadline_after(hub().loop().now(), timeout).count();
  note_deadline();
  return true;
}

bool Connection::set_read_timeout(Nanos timeout) {
  Extra* extra = this->extra();
  if (extra == nullptr) return false;
  extra->read_timeout = timeout;
  read_again();
  return true;
}

bool Connection::set_write_timeout(Nanos timeout) {
  Extra* extra = this->extra();
  if (extra == nullptr) return false;
  extra->write_timeout = timeout;
  if (!is_open()) return true;
  extra->last_sent = hub().loop().now().count();
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
  send_gathered();
  if (has(kBroken)) return std::unexpected(error());
  if (queued() != 0 || has(kEnding) || (extra_ != nullptr && !extra_->unread.empty()))
    return std::unexpected(sys::error_code(-EBUSY));
  hub().forget_deadline(*this);
  hold_loop(false);
  extra_.reset();
  set(kClosed);
  set(kReported);
  return transport_->release(*this);
}

// ---- ending

// Not after a failure: what was cut short must not look whole.
void Connection::shut_down() {
  if (has(kBroken)) return;
  transport_->shut_down(*this);
  set(kEnded);
  if (is_done()) settle_later();
}

// Not before all that is to be told has been told.
bool Connection::is_done() const {
  return has(kPeerEnded) && has(kEnded) && (!has(kEndDue) || has(kDiscarding));
}

// A reset, which closing a socket with unread input is, destroys what the peer has not read yet.
bool Connection::has_nothing_to_lose() const {
  return queued() == 0 && (has(kPeerEnded | kBroken) || !has(kWrote));
}

// Sends what is queued, ends our side, and throws away what still comes until the peer ends, too.
void Connection::linger() {
  end();
  set(kStarted);
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
  if (extra_ == nullptr || extra_->queue.empty()) return;
  Buffer spent;
  extra_->queue.clear(spent);
  if (!spent.empty()) hub().release_later(std::move(spent));
}

// The end, in the loop's own time. The connection may be gone afterwards.
void Connection::finish(std::error_code error, bool reset) {
  shut(reset);
  set_error(error);
  report();
}

// What was written and not sent dies with the connection; then the peer must not take what it has
// for the whole.
void Connection::shut(bool reset) {
  const bool is_cut_short = has_queue() || has(kBroken);
  if (hub().gather().owner() == this) hub().gather().drop();
  hub().forget_deadline(*this);
  hold_loop(false);
  transport_->close(*this, reset || is_cut_short);
  set(kClosed);
  set(kReadRests, false);
  set(kSendRests, false);
  drop_queue();
  if (extra_ != nullptr) extra_->throttle.reset();
}

void Connection::report() {
  if (has(kAbandoned)) {
    destroy();
  } else if (!has(kReported) && handler() != nullptr) {
    set(kReported);
    call({}, [&](StreamHandler& handler) { handler.on_closed(error()); });
  }
}

bool Connection::after_call() {
  if (has(kNested)) look_again();
  if (is_open() && has(kEnding) && !has(kEnded) && !has_queue()) shut_down();
  if (has(kAbandoned)) return abandon(), false;
  if (!is_open()) return false;
  if (has(kOffer) && (extra_ == nullptr || extra_->unread.empty())) set(kOffer, false);
  if (may_offer() || has(kBroken) || is_done() || (has(kDiscarding) && has_nothing_to_lose()))
    settle_later();
  return true;
}

// After a callback that has run the loop.
void Connection::look_again() {
  set(kNested, false);
  if (!is_open()) return;
  update_wish();
  note_deadline();
  settle_later();
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

// A callback of this connection's is running the loop. What is queued goes on being sent; nothing
// more is told until that callback has returned, which looks at everything again.
void Connection::defer_past_callback(Events events) {
  set(kNested);
  if (any(events & Events::write) && has_queue()) flush();
  update_wish();
}

// What is owed, and could not be done inside a call to the Stream or inside its callback.
bool Connection::settle() {
  if (has(kClosed)) return report(), false;
  if (has(kBroken)) return bury(), false;
  if (!on_flushed()) return false;
  if (is_done() || (has(kDiscarding) && has_nothing_to_lose())) return finish({}), false;
  return true;
}

// Sending has failed. Whatever the peer sent before that is read, a piece a turn, then it is over.
void Connection::bury() {
  const bool was_dropped = has(kOwnError);  // The peer knows of nothing.
  if (was_dropped || !wants_to_read()) return finish(error());
  if (offer_unread() && receive() && !has(kPeerEnded)) settle_later();
}

void Connection::on_deadline() {
  if (has(kInCallback)) return defer_past_callback(Events::none);
  if (!settle()) return;
  const std::int64_t now = hub().loop().now().count();
  if (!wake_up(now) || (is_overdue(now) && !catch_up())) return;
  if (has(kBroken)) return;  // It is settled in its turn.
  if (const std::error_code error = expired(now)) return finish(error);
  if (has(kDiscarding) && now >= linger_deadline())
    return finish(has_queue() ? Error::write_timeout : std::error_code());
  note_deadline();
}

// A loop that was held up has not seen yet what it is waiting for: nobody is judged before a look.
// False as of settle().
bool Connection::catch_up() {
  if (!send_queued()) return false;
  return !wants_to_read() || receive();
}

void Connection::on_loop_end() {
  if (has(kAbandoned)) destroy();
}

std::error_code Connection::expired(std::int64_t now) const {
  if (extra_ != nullptr && extra_->deadline <= now) return Error::deadline;
  if (write_deadline() <= now) return Error::write_timeout;
  if (read_deadline() <= now) return Error::read_timeout;
  if (idle_deadline() <= now) return Error::idle_timeout;
  return {};
}

// Whether nothing has moved for too long, as far as has been looked.
bool Connection::is_overdue(std::int64_t now) const {
  return std::min({idle_deadline(), linger_deadline(), read_deadline(), write_deadline()}) <= now;
}

// Who is not let through is not idle.
std::int64_t Connection::idle_deadline() const {
  if (idle_ticks_ == 0 || has(kDiscarding | kReadRests | kSendRests)) return kNever;
  return last_active() + idle_ticks_ * kNanosPerTick;
}

std::int64_t Connection::linger_deadline() const {
  return has(kDiscarding) && !is_resting() ? last_active() + kLinger.count() : kNever;
}

std::int64_t Connection::read_deadline() const {
  if (extra_ == nullptr || extra_->read_timeout == Nanos{0} || !wants_to_read() || has(kDiscarding))
    return kNever;
  return deadline_after(Nanos{extra_->last_arrival}, extra_->read_timeout).count();
}

std::int64_t Connection::write_deadline() const {
  if (!has_queue() || extra_->write_timeout == Nanos{0} || has(kSendRests)) return kNever;
  return deadline_after(Nanos{extra_->last_sent}, extra_->write_timeout).count();
}

std::int64_t Connection::throttle_deadline() const {
  std::int64_t when = kNever;
  if (has(kReadRests)) when = throttle()->opens_at(Throttle::kRead);
  if (has(kSendRests)) when = std::min(when, throttle()->opens_at(Throttle::kWrite));
  return when;
}

// Without memory to note it, it is looked at when something happens.
void Connection::note_deadline() {
  std::int64_t when = std::min(
      {throttle_deadline(), linger_deadline(), idle_deadline(), read_deadline(), write_deadline()});
  if (extra_ != nullptr) when = std::min(when, extra_->deadline);
  if (when != kNever) hub().note_deadline(*this, when);
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

// Those whose rest is over. False as of settle().
bool Connection::wake_up(std::int64_t now) {
  const bool read = has(kReadRests) && throttle()->opens_at(Throttle::kRead) <= now;
  const bool send = has(kSendRests) && throttle()->opens_at(Throttle::kWrite) <= now;
  if (read) set(kReadRests, false);
  if (send) {
    set(kSendRests, false);
    extra_->last_sent = now;
  }
  if (!read && !send) return true;
  touch();
  read_again();
  update_wish();
  return !send || send_queued();
}

// Whether it moves nothing for a rate's sake alone.
bool Connection::is_resting() const {
  return (has(kReadRests) && is_reading()) || (has(kSendRests) && has_queue());
}

// Who rests has nothing that the loop watches, and is still at work.
void Connection::hold_loop(bool on) {
  if (on == has(kHoldsLoop)) return;
  set(kHoldsLoop, on);
  if (!hub().is_alive()) return;
  on ? hub().loop().ref() : hub().loop().unref();
}

Throttle* Connection::make_throttle() {
  if (!is_open()) return nullptr;
  if (Extra* extra = this->extra(); extra != nullptr && extra->throttle == nullptr)
    extra->throttle.reset(new (std::nothrow) Throttle(this));
  return throttle();
}

// Under the new limits, both directions are tried at once.
void Connection::on_throttle_changed() {
  if (has(kReadRests)) read_again();
  set(kReadRests, false);
  set(kSendRests, false);
  if (!throttle()->has_limits()) extra_->throttle.reset();
  drop_extra();
  update_wish();
}

// The time for which nothing has come begins anew: we have not been listening.
void Connection::read_again() {
  if (!is_open() || extra_ == nullptr || extra_->read_timeout == Nanos{0}) return;
  extra_->last_arrival = hub().loop().now().count();
  note_deadline();
}

// But for the rate.
bool Connection::is_reading() const {
  if (!has(kStarted) || has(kPeerEnded | kClosed)) return false;
  if (has(kDiscarding)) return true;
  return !has(kPaused) && !(has(kFull) && extra_->limits.pause_reading);
}

bool Connection::wants_to_read() const {
  constexpr std::uint32_t kReasonsNotTo = kPeerEnded | kClosed | kPaused | kReadRests | kFull;
  if ((flags_ & (kStarted | kReasonsNotTo)) == kStarted) return true;
  return is_reading() && (!has(kReadRests) || has(kDiscarding));
}

void Connection::update_wish() {
  if (!is_open()) return;
  Events wish = wants_to_read() && !has(kNested) ? Events::read : Events::none;
  if (has_queue() && !has(kSendRests)) wish |= Events::write;
  if (!transport_->want(*this, wish)) on_broken(sys::error_code(-ENOMEM));
  if (has(kReadRests | kSendRests | kHoldsLoop)) hold_loop(is_resting());
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
