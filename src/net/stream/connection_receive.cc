// Connection's way in: what arrives is handed over, what is left is kept, and the peer's end.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/memory.h"
#include "net/stream/connection.h"
#include "net/stream/hub.h"
#include "net/stream/transport.h"
#include "spate/assert.h"
#include "spate/error.h"

namespace spate {

namespace {

// How often one connection reads before the others have their turn.
constexpr int kReadsPerTurn = 16;
// Room for one more arrival behind what is unread.
constexpr std::size_t kArrival = 16 * 1024;

}  // namespace

// False, as of all that follow: the connection is closed, or gone.
bool Connection::receive() {
  const Loans<Arrivals>::Loan arrivals = hub().lend_arrivals();
  if (!arrivals) return finish(sys::error_code(-ENOMEM)), false;
  const std::span<std::byte> room = arrivals->room();
  for (int reads = 1;; ++reads) {
    bool is_full = false;
    // Most have nothing out of the ordinary about them.
    if (extra_ != nullptr || has(kTakesDescriptors)) {
      if (!receive_with_care(room, is_full)) return false;
    } else {
      const long count = transport_->receive(*this, room);
      if (count <= 0 || has(kDiscarding)) return on_received_nothing(count);
      touch();
      const auto size = static_cast<std::size_t>(count);
      is_full = size == room.size();
      if (!hand_over(room.first(size))) return false;
    }
    // Less than there was room for is all there was.
    if (!is_full || reads == kReadsPerTurn || !wants_to_read()) return true;
  }
}

bool Connection::receive_with_care(std::span<std::byte> arrivals, bool& is_full) {
  const bool is_behind = extra_ != nullptr && !extra_->unread.empty();
  if (is_behind && extra_->unread.size() > extra_->limits.max_unread)
    return finish(Error::unread_full, true), false;
  // Behind what the handler has left, so that it sees all of it in one piece.
  const std::span<std::byte> room = is_behind ? extra_->unread.reserve(kArrival) : arrivals;
  if (room.empty()) return finish(sys::error_code(-ENOMEM)), false;
  const std::size_t max = has(kDiscarding) ? SIZE_MAX : allowance(Throttle::kRead);
  if (max == 0) return true;
  const std::span<std::byte> part = room.first(std::min(room.size(), max));
  ArrivedDescriptors arrived;
  const long count = has(kTakesDescriptors) ? transport_->receive_descriptors(*this, part, arrived)
                                            : transport_->receive(*this, part);
  is_full = count == static_cast<long>(part.size());
  if (count <= 0 || has(kDiscarding)) return on_received_nothing(count);
  touch();
  const Bytes bytes = part.first(static_cast<std::size_t>(count));
  if (extra_ != nullptr) note_arrival(bytes.size());
  if (is_behind) extra_->unread.commit(bytes.size());
  if (!arrived.is_empty()) return hand_over(arrived, is_behind ? Bytes() : bytes);
  if (!is_behind) return hand_over(bytes);
  set(kOffer);
  return offer_unread();
}

// Nothing for the handler: no byte, the peer's end, an error, or what is thrown away.
bool Connection::on_received_nothing(long count) {
  if (count == -EAGAIN || count == -EINTR) return !has(kBroken) || (finish(error()), false);
  if (count < 0) return finish(has(kBroken) ? error() : sys::error_code(count)), false;
  return count > 0 || on_peer_end();
}

void Connection::note_arrival(std::size_t size) {
  extra_->last_arrival = hub().loop().now().count();
  Throttle* throttle = this->throttle();
  if (throttle == nullptr) return;
  throttle->used(Throttle::kRead, size);
  allowance(Throttle::kRead);
}

// ---- what is shown to the handler, and what it leaves

bool Connection::hand_over(Bytes bytes) {
  bool is_lost = false;
  const bool goes_on = call(bytes, [&](StreamHandler& handler) {
    const std::size_t used = handler.on_data(bytes);
    SPATE_ASSERT(used <= bytes.size(), "on_data() returns how many bytes it has used");
    if (used < bytes.size() && keeps_what_is_left()) is_lost = !keep(bytes.subspan(used));
  });
  spoil(bytes);
  if (goes_on && is_lost) return finish(sys::error_code(-ENOMEM)), false;
  return goes_on;
}

// Descriptors come before the bytes that came with them, and may make the handler pause.
bool Connection::hand_over(ArrivedDescriptors& arrived, Bytes bytes) {
  if (!bytes.empty() && !keep(bytes)) return finish(sys::error_code(-ENOMEM)), false;
  set(kOffer);
  const bool goes_on = call({}, [&](StreamHandler& handler) {
    const std::size_t descriptors = std::exchange(arrived.count, 0);
    handler.on_descriptors({arrived.fds, descriptors}, arrived.is_cut);
  });
  return goes_on && offer_unread();
}

// The bytes belong to this call while they are shown, so that it does not matter what becomes of
// the connection meanwhile.
bool Connection::show_unread() {
  set(kOffer, false);
  set(kLeftWhileFull, false);
  if (extra_ == nullptr || extra_->unread.empty()) return true;
  Unread shown = std::exchange(extra_->unread, Unread());
  const Bytes bytes = shown.bytes();
  bool is_lost = false;
  const bool goes_on = call(bytes, [&](StreamHandler& handler) {
    const std::size_t used = handler.on_data(bytes);
    SPATE_ASSERT(used <= bytes.size(), "on_data() returns how many bytes it has used");
    if (used < bytes.size() && keeps_what_is_left()) is_lost = !keep(std::move(shown), used);
  });
  if (goes_on && is_lost) return finish(sys::error_code(-ENOMEM)), false;
  if (goes_on) drop_extra();
  return goes_on;
}

// Who stops because the queue is full goes on when it has drained.
bool Connection::keeps_what_is_left() {
  if (!is_open() || has(kDiscarding)) return false;
  if (has(kFull)) set(kLeftWhileFull);
  return true;
}

// False when memory runs out, as the next.
bool Connection::keep(Bytes left) {
  Extra* extra = this->extra();
  return extra != nullptr && extra->unread.append(left);
}

bool Connection::keep(Unread&& shown, std::size_t used) {
  Extra* extra = this->extra();
  if (extra == nullptr) return false;
  extra->unread = std::move(shown);
  extra->unread.consume(used);
  return true;
}

// Whether something that has come, and has not been told, may be told now.
bool Connection::may_offer() const {
  if (!has(kOffer) && (!has(kEndDue) || has(kLeftWhileFull))) return false;
  return is_open() && !has(kPaused | kDiscarding) && !(has(kFull) && extra_->limits.pause_reading);
}

bool Connection::offer_unread() {
  if (!may_offer()) return true;
  if (has(kOffer) && !show_unread()) return false;
  return tell_end();
}

// ---- the peer's end

bool Connection::on_peer_end() {
  set(kPeerEnded);
  update_wish();
  if (has(kBroken)) return finish(error()), false;
  if (has(kDiscarding)) return !is_done() || (finish({}), false);
  set(kEndDue);
  return offer_unread();
}

// Not before what was left at a full queue has been offered once more.
bool Connection::tell_end() {
  if (!has(kEndDue) || !may_offer() || has(kOffer)) return true;
  set(kEndDue, false);
  if (extra_ != nullptr) extra_->unread = Unread();
  if (!call({}, [](StreamHandler& handler) { handler.on_end(); })) return false;
  if (!has(kHalfOpen)) end_with_peer();
  if (!is_done() || has(kBroken)) return true;
  return finish({}), false;
}

// With nothing left to send, closing is all that the peer has to be told.
void Connection::end_with_peer() {
  if (has(kEnding) || has_queue()) return end();
  set(kEnding);
  set(kEnded);
}

}  // namespace spate
