// Connection's input: passing it to the handler, keeping unread bytes, and the peer's end.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/memory.h"
#include "net/stream/connection.h"
#include "net/stream/loop_streams.h"
#include "net/stream/transport.h"
#include "spate/assert.h"
#include "spate/error.h"
#include "sys/datagram.h"

namespace spate {

namespace {

// How often one connection reads before others are served.
constexpr int kReadsPerTurn = 16;
// Room for one more arrival after the unread bytes.
constexpr std::size_t kArrival = 16 * 1024;

}  // namespace

// If the handler stopped because the queue is full, the rest is offered when the queue has drained.
bool Connection::keeps_what_is_left() {
  if (is_discarding()) clear(kPeerEnded);  // It was declared finished, but had sent this.
  if (!may_report()) return false;
  if (has(kFull)) set(kLeftWhileFull);
  return true;
}

[[gnu::always_inline]] inline bool Connection::hand_over(LoopStreams& loop_state, Bytes bytes) {
  bool is_lost = false;
  const bool goes_on = call(loop_state, bytes, [&](StreamHandler& handler) {
    const std::size_t used = handler.on_data(bytes);
    SPATE_ASSERT(used <= bytes.size(), "on_data() returns how many bytes it has used");
    if (used < bytes.size() && keeps_what_is_left()) is_lost = !keep(bytes.subspan(used));
  });
  spoil(bytes);
  if (goes_on && is_lost) return finish(sys::error_code(-ENOMEM));
  return goes_on;
}

// Fast path for most messages.
void Connection::receive_plainly() {
  LoopStreams& loop_state = this->loop_state();
  const Loans<Arrivals>::Loan arrivals = loop_state.lend_arrivals();
  if (!arrivals) {
    finish(sys::error_code(-ENOMEM));
    return;
  }
  bool is_full = false;
  const bool goes_on = receive_arrival(loop_state, arrivals->room(), is_full);
  if (goes_on && is_full && wants_to_read()) receive_more(arrivals->room());
}

// This and the following functions return false if the connection was closed or destroyed.
bool Connection::receive() {
  const Loans<Arrivals>::Loan arrivals = loop_state().lend_arrivals();
  return arrivals ? receive_more(arrivals->room()) : finish(sys::error_code(-ENOMEM));
}

// Fast path for a connection without special conditions.
[[gnu::always_inline]] inline bool Connection::receive_arrival(LoopStreams& loop_state,
                                                               std::span<std::byte> room,
                                                               bool& is_full) {
  const long count = transport_->receive(*this, room);
  if (count <= 0) return on_received_nothing(count);
  note_activity();
  const auto size = static_cast<std::size_t>(count);
  is_full = transport_->may_have_more(count, room.size());
  return hand_over(loop_state, room.first(size));
}

// Reads again while reads fill the buffer: a shorter read means that there is no more.
bool Connection::receive_more(std::span<std::byte> room) {
  for (int reads = 1;; ++reads) {
    bool is_full = false;
    const bool is_special = busy_ != nullptr || has(kTakesDescriptors) || is_discarding();
    if (!(is_special ? receive_slowly(room, is_full)
                     : receive_arrival(loop_state(), room, is_full)))
      return false;
    if (!is_full || reads == kReadsPerTurn || !wants_to_read()) return true;
  }
}

bool Connection::receive_slowly(std::span<std::byte> arrivals, bool& is_full) {
  const bool is_behind = has_unread();
  if (is_behind && busy_->unread.size() > busy_->limits.max_unread) {
    take(Turn::give_up);
    return finish(Error::unread_full);
  }
  // Reads after the unread bytes, so that the handler gets all of them in one piece.
  const std::span<std::byte> room = is_behind ? busy_->unread.reserve(room_behind()) : arrivals;
  if (room.empty()) return finish(sys::error_code(-ENOMEM));
  const std::size_t max = is_discarding() ? SIZE_MAX : allowance(Throttle::kRead);
  if (max == 0) return true;
  const std::span<std::byte> part = room.first(std::min(room.size(), max));
  ArrivedDescriptors arrived;
  const long count = has(kTakesDescriptors) ? transport_->receive_descriptors(*this, part, arrived)
                                            : transport_->receive(*this, part);
  is_full = transport_->may_have_more(count, part.size());
  if (count <= 0 || is_discarding()) return on_received_nothing(count);
  note_activity();
  const Bytes bytes = part.first(static_cast<std::size_t>(count));
  if (busy_ != nullptr) note_arrival(bytes.size());
  if (is_behind) busy_->unread.commit(bytes.size());
  if (!arrived.is_empty()) return hand_over(arrived, is_behind ? Bytes() : bytes);
  if (!is_behind && has_wanted(bytes.size())) {
    if (busy_ != nullptr) busy_->wanted = 0;
    return hand_over(loop_state(), bytes);
  }
  if (!is_behind && !keep(bytes)) return finish(sys::error_code(-ENOMEM));
  set(kOffer);
  return offer_unread();
}

// Returns the room after the unread bytes: for one more arrival, or for the wanted bytes, a part at
// a time.
std::size_t Connection::room_behind() const {
  const std::size_t there = busy_->unread.size();
  const std::size_t missing = busy_->wanted > there ? busy_->wanted - there : 0;
  return std::clamp(missing, kArrival, Arrivals::kSize);
}

// Handles a read without bytes for the handler: no byte, the peer's end, an error, or discarded
// input.
bool Connection::on_received_nothing(long count) {
  if (count == 0 && !life_.is(State::broken)) return on_peer_end();
  return count > 0 || on_receiving_failed(count);
}

bool Connection::on_receiving_failed(long count) {
  if (life_.is(State::broken)) return finish(life_.error());
  if (count == -EAGAIN && transport_->is_socket()) sys::discard_queued_errors(fd());
  if (count == -EAGAIN || count == -EINTR) return true;
  return finish(error_of(count));
}

void Connection::note_arrival(std::size_t size) {
  busy_->read_timeout.restart(now());
  Throttle* throttle = this->throttle();
  if (throttle == nullptr) return;
  throttle->used(Throttle::kRead, size);
  allowance(Throttle::kRead);
}

// ---- passing bytes to the handler

void Connection::forget_handler() {
  if (busy_ != nullptr) busy_->wanted = 0;
  set_handler(nullptr);
  conclude();
  drop_callbacks();
}

// Descriptors are reported before the bytes they came with, and the handler may pause then.
bool Connection::hand_over(ArrivedDescriptors& arrived, Bytes bytes) {
  if (!bytes.empty() && !keep(bytes)) return finish(sys::error_code(-ENOMEM));
  set(kOffer);
  const bool goes_on = call([&](StreamHandler& handler) {
    const std::size_t descriptors = std::exchange(arrived.count, 0);
    handler.on_descriptors({arrived.fds, descriptors}, arrived.is_cut);
  });
  return goes_on && offer_unread();
}

// Moves the bytes to the stack during the call, so that they stay valid if the connection is
// changed or destroyed.
bool Connection::show_unread() {
  clear(kOffer | kLeftWhileFull);
  busy_->wanted = 0;
  Unread shown = std::exchange(busy_->unread, Unread());
  const Bytes bytes = shown.bytes();
  bool is_lost = false;
  const bool goes_on = call(loop_state(), bytes, [&](StreamHandler& handler) {
    const std::size_t used = handler.on_data(bytes);
    SPATE_ASSERT(used <= bytes.size(), "on_data() returns how many bytes it has used");
    if (used < bytes.size() && keeps_what_is_left()) is_lost = !keep(std::move(shown), used);
  });
  if (goes_on && is_lost) return finish(sys::error_code(-ENOMEM));
  if (goes_on) drop_busy_state();
  return goes_on;
}

// This and the next return false when memory runs out.
bool Connection::keep(Bytes left) {
  BusyState* busy = make_busy();
  return busy != nullptr && busy->unread.append(left);
}

bool Connection::keep(Unread&& shown, std::size_t used) {
  BusyState* busy = make_busy();
  if (busy == nullptr) return false;
  busy->unread = std::move(shown);
  busy->unread.consume(used);
  return true;
}

// Returns whether there are unread bytes to offer, as many as are wanted.
bool Connection::has_offer() const { return has(kOffer) && has_wanted(unread().size()); }

// Returns whether unread bytes or the peer's end may be reported now. Without a handler (the Stream
// may be detached for TLS) they must be kept.
bool Connection::may_tell() const {
  if (!has_offer() && (!has(kEndDue) || has(kLeftWhileFull))) return false;
  return may_report() && handler() != nullptr && may_show();
}

bool Connection::may_show() const {
  return !has(kPaused) && !(has(kFull) && busy_->limits.pause_reading);
}

bool Connection::offer_unread() {
  if (!may_offer()) return true;
  if (has_offer()) {
    if (!show_unread()) return false;
    if (!may_offer() || has_offer()) return true;
  }
  return report_end();
}

// ---- the peer's end

bool Connection::on_peer_end() {
  const bool was_plain = is_plain();
  set(kPeerEnded);
  const bool goes_on = was_plain ? report_end() : on_peer_end_slowly();
  if (goes_on) conclude();  // Most connections do not continue.
  return goes_on;
}

// Unread bytes are reported before the end.
bool Connection::on_peer_end_slowly() {
  if (busy_ != nullptr) busy_->wanted = 0;
  if (is_discarding()) return !has_ended() || finish({});
  set(kEndDue);
  return offer_unread();
}

bool Connection::report_end() {
  clear(kEndDue);
  if (!call([](StreamHandler& handler) { handler.on_end(); })) return false;
  clear(kOffer);
  if (busy_ != nullptr) busy_->unread = Unread();
  if (!has(kHalfOpen) && !life_.is_cut_short()) {
    if (ends_by_closing()) return finish({});
    end();
  }
  return !has_ended() || finish({});
}

// Returns whether close() alone sends our end, so that shutdown() is unnecessary.
bool Connection::ends_by_closing() const {
  return !has_queue() && (!transport_->has_farewell() || is_parents());
}

}  // namespace spate
