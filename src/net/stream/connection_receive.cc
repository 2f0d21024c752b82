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

// A handler that stops because the queue is full continues when it has drained.
bool Connection::keeps_what_is_left() {
  if (is_discarding() && has(kPeerEnded)) listen_again();
  if (!is_heard()) return false;
  if (has(kFull)) set(kLeftWhileFull);
  return true;
}

[[gnu::always_inline]] inline bool Connection::hand_over(Hub& hub, Bytes bytes) {
  bool is_lost = false;
  const bool goes_on = call(hub, bytes, [&](StreamHandler& handler) {
    const std::size_t used = handler.on_data(bytes);
    SPATE_ASSERT(used <= bytes.size(), "on_data() returns how many bytes it has used");
    if (used < bytes.size() && keeps_what_is_left()) is_lost = !keep(bytes.subspan(used));
  });
  spoil(bytes);
  if (goes_on && is_lost) return finish(sys::error_code(-ENOMEM));
  return goes_on;
}

// What most messages take.
void Connection::receive_plainly() {
  Hub& hub = this->hub();
  const Loans<Arrivals>::Loan arrivals = hub.lend_arrivals();
  if (!arrivals) {
    finish(sys::error_code(-ENOMEM));
    return;
  }
  bool is_full = false;
  const bool goes_on = receive_arrival(hub, arrivals->room(), is_full);
  if (goes_on && is_full && wants_to_read()) receive_more(arrivals->room());
}

// False, as of all that follow: the connection is closed, or gone.
bool Connection::receive() {
  const Loans<Arrivals>::Loan arrivals = hub().lend_arrivals();
  return arrivals ? receive_more(arrivals->room()) : finish(sys::error_code(-ENOMEM));
}

// Of a connection that has nothing out of the ordinary about it.
[[gnu::always_inline]] inline bool Connection::receive_arrival(Hub& hub, std::span<std::byte> room,
                                                               bool& is_full) {
  const long count = transport_->receive(*this, room);
  if (count <= 0) return on_received_nothing(count);
  note_activity();
  const auto size = static_cast<std::size_t>(count);
  is_full = transport_->may_have_more(count, room.size());
  return hand_over(hub, room.first(size));
}

// Goes on while reads come back full: less than there was room for is all there was.
bool Connection::receive_more(std::span<std::byte> room) {
  for (int reads = 1;; ++reads) {
    bool is_full = false;
    const bool is_special = busy_ != nullptr || has(kTakesDescriptors) || is_discarding();
    if (!(is_special ? receive_with_care(room, is_full) : receive_arrival(hub(), room, is_full)))
      return false;
    if (!is_full || reads == kReadsPerTurn || !wants_to_read()) return true;
  }
}

bool Connection::receive_with_care(std::span<std::byte> arrivals, bool& is_full) {
  const bool is_behind = has_unread();
  if (is_behind && busy_->unread.size() > busy_->limits.max_unread) {
    take(Turn::give_up);
    return finish(Error::unread_full);
  }
  // Behind what the handler has left, so that it sees all of it in one piece.
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
    return hand_over(hub(), bytes);
  }
  if (!is_behind && !keep(bytes)) return finish(sys::error_code(-ENOMEM));
  set(kOffer);
  return offer_unread();
}

// Behind what is unread: for one more arrival, or for what is wanted, a part at a time.
std::size_t Connection::room_behind() const {
  const std::size_t there = busy_->unread.size();
  const std::size_t missing = busy_->wanted > there ? busy_->wanted - there : 0;
  return std::clamp(missing, kArrival, Arrivals::kSize);
}

// Nothing for the handler: no byte, the peer's end, an error, or what is thrown away.
bool Connection::on_received_nothing(long count) {
  if (count == 0 && state_ != State::broken) return on_peer_end();
  return count > 0 || on_receiving_failed(count);
}

bool Connection::on_receiving_failed(long count) {
  if (state_ == State::broken) return finish(error());
  if (count == -EAGAIN || count == -EINTR) return true;
  return finish(error_of(count));
}

void Connection::note_arrival(std::size_t size) {
  busy_->last_arrival = hub().loop().now().count();
  Throttle* throttle = this->throttle();
  if (throttle == nullptr) return;
  throttle->used(Throttle::kRead, size);
  allowance(Throttle::kRead);
}

// ---- what is shown to the handler, and what it leaves

void Connection::forget_handler() {
  if (busy_ != nullptr) busy_->wanted = 0;
  set_handler(nullptr);
  update_wish();
}

// Descriptors come before the bytes that came with them, and may make the handler pause.
bool Connection::hand_over(ArrivedDescriptors& arrived, Bytes bytes) {
  if (!bytes.empty() && !keep(bytes)) return finish(sys::error_code(-ENOMEM));
  set(kOffer);
  const bool goes_on = call([&](StreamHandler& handler) {
    const std::size_t descriptors = std::exchange(arrived.count, 0);
    handler.on_descriptors({arrived.fds, descriptors}, arrived.is_cut);
  });
  return goes_on && offer_unread();
}

// The bytes belong to this call while they are shown, so that it does not matter what becomes of
// the connection meanwhile.
bool Connection::show_unread() {
  clear(kOffer | kLeftWhileFull);
  busy_->wanted = 0;
  Unread shown = std::exchange(busy_->unread, Unread());
  const Bytes bytes = shown.bytes();
  bool is_lost = false;
  const bool goes_on = call(hub(), bytes, [&](StreamHandler& handler) {
    const std::size_t used = handler.on_data(bytes);
    SPATE_ASSERT(used <= bytes.size(), "on_data() returns how many bytes it has used");
    if (used < bytes.size() && keeps_what_is_left()) is_lost = !keep(std::move(shown), used);
  });
  if (goes_on && is_lost) return finish(sys::error_code(-ENOMEM));
  if (goes_on) drop_busy_state();
  return goes_on;
}

// False when memory runs out, as the next.
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

// Whether something that has come, and has not been told, may be told now. Who has taken the Stream
// from its handler, for TLS, is not to miss it.
bool Connection::may_tell() const {
  const bool has_offer = has(kOffer) && has_wanted(unread().size());
  if (!has_offer && (!has(kEndDue) || has(kLeftWhileFull))) return false;
  return is_heard() && handler() != nullptr && may_show();
}

bool Connection::may_show() const {
  return !has(kPaused) && !(has(kFull) && busy_->limits.pause_reading);
}

bool Connection::offer_unread() {
  if (!may_offer()) return true;
  if (has(kOffer)) {
    if (!show_unread()) return false;
    if (!may_offer() || has(kOffer)) return true;
  }
  return tell_end();
}

// ---- the peer's end

bool Connection::on_peer_end() {
  const bool was_plain = is_plain();
  set(kPeerEnded);
  const bool goes_on = was_plain ? tell_end() : on_peer_end_with_care();
  if (goes_on) update_wish();  // Most do not.
  return goes_on;
}

// What is left unread comes first.
bool Connection::on_peer_end_with_care() {
  if (busy_ != nullptr) busy_->wanted = 0;
  if (is_discarding()) return !has_ended() || finish({});
  set(kEndDue);
  return offer_unread();
}

bool Connection::tell_end() {
  clear(kEndDue);
  if (!call([](StreamHandler& handler) { handler.on_end(); })) return false;
  clear(kOffer);
  if (busy_ != nullptr) busy_->unread = Unread();
  if (!has(kHalfOpen)) end_with_peer();
  return !has_ended() || finish({});
}

// With nothing left to send, closing is all that most peers have to be told.
void Connection::end_with_peer() {
  if (has_queue() || transport_->has_farewell()) return end();
  take(Turn::end);
  take(Turn::sent);
}

}  // namespace spate
