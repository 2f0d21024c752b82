// Connection's timeouts, and its rate limits, which delay its work.
#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "net/stream/connection.h"
#include "net/stream/loop_streams.h"
#include "spate/error.h"

namespace spate {

namespace {

// How long a closed connection waits for its peer to read the last bytes and to end.
constexpr Nanos kLinger{10'000'000'000};

}  // namespace

// ---- setting

bool Connection::set_idle_timeout(Nanos timeout) {
  idle_.set(timeout);
  if (!is_open() || is_discarding()) return true;
  touch();
  return note_deadline();
}

bool Connection::set_deadline(Nanos timeout) {
  BusyState* busy = make_busy();
  if (busy == nullptr) return false;
  if (!is_open()) return true;
  busy->deadline =
      timeout == Nanos{0} ? kNever : deadline_after(loop_state().loop().now(), timeout).count();
  return note_deadline();
}

bool Connection::set_read_timeout(Nanos timeout) {
  BusyState* busy = make_busy();
  if (busy == nullptr) return false;
  busy->read_timeout.set(timeout);
  read_again();
  return true;
}

bool Connection::set_write_timeout(Nanos timeout) {
  BusyState* busy = make_busy();
  if (busy == nullptr) return false;
  busy->write_timeout.set(timeout);
  if (!is_open()) return true;
  busy->write_timeout.restart(now());
  return note_deadline();
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

// ---- expiry

void Connection::on_deadline() {
  if (has(kInCallback)) return defer_past_callback(Events::none);
  const std::int64_t now = this->now();
  const bool may_send = wake_up(now);
  if (!settle() || (may_send && !send_queued())) return;
  if (next_deadline().when <= now && !catch_up()) return;
  if (life_.is_cut_short() && !is_resting()) return;  // settle() will handle it.
  if (const Deadline next = next_deadline(); next.when <= now) {
    finish(next.error);
  } else {
    note_deadline();
  }
}

// If the loop was delayed, there may be input that was not seen yet: reads and sends before a
// timeout expires. False as for settle().
bool Connection::catch_up() {
  if (!send_queued()) return false;
  return !wants_to_read() || receive();
}

// Returns the earliest of all timeouts.
Connection::Deadline Connection::next_deadline() const {
  Deadline next{busy_ == nullptr ? kNever : busy_->deadline, Error::deadline};
  const auto consider = [&next](std::int64_t when, Error error) {
    if (when < next.when) next = {when, error};
  };
  consider(write_deadline(), Error::write_timeout);
  consider(read_deadline(), Error::read_timeout);
  consider(idle_deadline(), Error::idle_timeout);
  consider(linger_deadline(), has_queue() ? Error::write_timeout : Error{});
  return next;
}

// Waiting for a rate limit is not idle.
std::int64_t Connection::idle_deadline() const {
  return is_discarding() || has(kReadRests | kSendRests) ? kNever : idle_.due(now());
}

std::int64_t Connection::linger_deadline() const {
  return is_discarding() && !is_resting() ? idle_.since(now()) + kLinger.count() : kNever;
}

std::int64_t Connection::read_deadline() const {
  const bool counts = busy_ != nullptr && wants_to_read() && !is_discarding();
  return counts ? busy_->read_timeout.due() : kNever;
}

std::int64_t Connection::write_deadline() const {
  return has_queue() && !has(kSendRests) ? busy_->write_timeout.due() : kNever;
}

std::int64_t Connection::throttle_deadline() const {
  std::int64_t when = kNever;
  if (has(kReadRests)) when = throttle()->opens_at(Throttle::kRead);
  if (has(kSendRests)) when = std::min(when, throttle()->opens_at(Throttle::kWrite));
  return when;
}

// Registers the next deadline. Without memory for it, it is checked at the next event. A
// rate-limited connection would get no event, so it is handled here.
bool Connection::note_next_deadline() {
  const std::int64_t opens_at = throttle_deadline();
  const std::int64_t when = std::min(opens_at, next_deadline().when);
  if (when == kNever || loop_state().note_deadline(*this, when)) return true;
  if (opens_at != kNever) give_up(sys::error_code(-ENOMEM));
  return false;
}

// Returns how many bytes the throttle allows. If none, the direction waits until the throttle
// opens.
std::size_t Connection::allowance(Throttle::Direction direction) {
  Throttle* throttle = this->throttle();
  if (throttle == nullptr) return SIZE_MAX;
  const std::size_t max = throttle->allowance(direction, now());
  if (max == 0) {
    set(direction == Throttle::kRead ? kReadRests : kSendRests);
    conclude();
  }
  return max;
}

// Resumes directions whose throttle has opened. True if sending was resumed.
bool Connection::wake_up(std::int64_t now) {
  const bool read = has(kReadRests) && throttle()->opens_at(Throttle::kRead) <= now;
  const bool send = has(kSendRests) && throttle()->opens_at(Throttle::kWrite) <= now;
  if (read) clear(kReadRests);
  if (send) {
    clear(kSendRests);
    busy_->write_timeout.restart(now);
  }
  if (read || send) {
    touch();
    read_again();
    conclude();
  }
  return send;
}

// Returns whether only a rate limit prevents progress.
bool Connection::is_resting() const {
  return (has(kReadRests) && is_reading()) || (has(kSendRests) && has_queue());
}

// A connection that waits for a rate limit watches nothing, and must keep the loop alive.
void Connection::hold_loop() {
  if (has(kHoldsLoop)) return;
  set(kHoldsLoop);
  if (loop_state().is_alive()) loop_state().loop().ref();
}

void Connection::release_loop() {
  if (!has(kHoldsLoop)) return;
  clear(kHoldsLoop);
  if (loop_state().is_alive()) loop_state().loop().unref();
}

Throttle* Connection::make_throttle() {
  if (!is_open()) return nullptr;
  if (BusyState* busy = make_busy(); busy != nullptr && busy->throttle == nullptr)
    busy->throttle.reset(new (std::nothrow) Throttle(this));
  return throttle();
}

// Tries both directions under the new limits.
void Connection::on_throttle_changed() {
  if (has(kReadRests)) read_again();
  clear(kReadRests | kSendRests);
  if (!throttle()->has_limits()) busy_->throttle.reset();
  drop_busy_state();
  conclude();
}

// Restarts the read timeout after a pause, during which nothing could be received.
void Connection::begin_read_timeout() {
  if (!is_open() || !busy_->read_timeout.is_set()) return;
  busy_->read_timeout.restart(now());
  note_deadline();
}

}  // namespace spate
