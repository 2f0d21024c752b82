// Connection's way in: what arrives is handed over, what is left is kept, and the peer's end.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "net/connection.h"
#include "net/net.h"
#include "net/transport.h"
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
  for (int reads = 1;; ++reads) {
    bool is_full = false;
    // Most have nothing out of the ordinary about them.
    if (extra_ != nullptr || has(kTakesDescriptors)) {
      if (!receive_with_care(is_full)) return false;
    } else {
      const std::span<std::byte> room = net().arrivals();
      const long count = transport_->receive(*this, room);
      if (count <= 0 || has(kDiscarding)) return on_received(count, room, false);
      touch();
      const auto size = static_cast<std::size_t>(count);
      is_full = size == room.size();
      if (!hand_over(room.first(size))) return false;
    }
    // Less than there was room for is all there was.
    if (!is_full || reads == kReadsPerTurn || !wants_to_read()) return true;
  }
}

bool Connection::receive_with_care(bool& is_full) {
  const bool is_behind = extra_ != nullptr && !extra_->unread.empty();
  if (is_behind && extra_->unread.size() > extra_->limits.most_unread)
    return finish(Error::unread_full, true), false;
  const std::span<std::byte> room = is_behind ? extra_->unread.reserve(kArrival) : net().arrivals();
  if (room.empty()) return finish(sys::error_code(-ENOMEM)), false;
  const std::size_t most = has(kDiscarding) ? SIZE_MAX : allowance(Throttle::kRead);
  if (most == 0) return true;
  const std::span<std::byte> part = room.first(std::min(room.size(), most));
  ArrivedDescriptors arrived;
  const long count = has(kTakesDescriptors) ? transport_->receive_descriptors(*this, part, arrived)
                                            : transport_->receive(*this, part);
  is_full = count == static_cast<long>(part.size());
  return hand_over(arrived) && on_received(count, part, is_behind);
}

bool Connection::hand_over(ArrivedDescriptors& arrived) {
  if ((arrived.count == 0 && !arrived.is_cut) || has(kDiscarding)) return true;
  return call({}, [&](StreamHandler& handler) {
    const std::size_t descriptors = std::exchange(arrived.count, 0);
    handler.on_descriptors({arrived.fds, descriptors}, arrived.is_cut);
  });
}

bool Connection::on_received(long count, std::span<std::byte> room, bool is_behind) {
  if (count == -EAGAIN || count == -EINTR) return !has(kBroken) || (finish(error(), true), false);
  if (count < 0) return finish(has(kBroken) ? error() : sys::error_code(count)), false;
  if (count == 0) return on_peer_end();
  if (has(kDiscarding)) return true;
  touch();
  const auto size = static_cast<std::size_t>(count);
  if (extra_ != nullptr) note_arrival(size);
  if (!is_behind) return hand_over(room.first(size));
  // Behind what the handler has left, so that it sees all of it in one piece.
  extra_->unread.commit(size);
  return offer_unread();
}

void Connection::note_arrival(std::size_t size) {
  extra_->last_arrival = net().loop().now().count();
  Throttle* throttle = this->throttle();
  if (throttle == nullptr) return;
  throttle->used(Throttle::kRead, size);
  allowance(Throttle::kRead);
}

bool Connection::hand_over(Bytes bytes) {
  std::size_t used = 0;
  if (!call(bytes, [&](StreamHandler& handler) { used = handler.on_data(bytes); })) return false;
  SPATE_ASSERT(used <= bytes.size());
  if (used >= bytes.size() || has(kDiscarding)) return true;
  Extra* extra = this->extra();
  if (extra != nullptr && extra->unread.append(bytes.subspan(used))) return true;
  return finish(sys::error_code(-ENOMEM)), false;
}

bool Connection::offer_unread() {
  set(kOffer, false);
  if (extra_ == nullptr || extra_->unread.empty() || has(kPaused | kDiscarding)) return true;
  const Bytes bytes = extra_->unread.bytes();
  std::size_t used = 0;
  if (!call({}, [&](StreamHandler& handler) { used = handler.on_data(bytes); })) return false;
  SPATE_ASSERT(used <= bytes.size());
  extra_->unread.consume(std::min(used, bytes.size()));
  drop_extra();
  return true;
}

// With nothing left to send, closing is all that the peer has to be told.
void Connection::end_with_peer() {
  if (has(kEnding) || has_queue()) return end();
  set(kEnding);
  set(kEnded);
}

bool Connection::on_peer_end() {
  set(kPeerEnded);
  if (extra_ != nullptr) extra_->unread = Unread();
  update_wish();
  if (has(kBroken)) return finish(error(), true), false;
  const bool is_told = !has(kDiscarding);
  if (is_told && !call({}, [](StreamHandler& handler) { handler.on_end(); })) return false;
  if (!has(kHalfOpen)) end_with_peer();
  if (!is_done()) return true;
  return finish({}), false;
}

}  // namespace spate
