#include "sim/net/port_reservations.h"

#include <algorithm>

namespace spate::sim {

std::vector<PortReservation>* PortReservations::find(const Key& key) {
  const auto found = reservations_.find(key);
  return found == reservations_.end() ? nullptr : &found->second;
}

PortReservation* PortReservations::find(const Key& key, std::uint64_t owner) {
  std::vector<PortReservation>* those = find(key);
  if (those == nullptr) return nullptr;
  const auto found = std::ranges::find(*those, owner, &PortReservation::owner);
  return found == those->end() ? nullptr : &*found;
}

void PortReservations::add(const PortReservation& reservation) {
  end_wait(reservation.host, reservation.local, reservation.peer);
  reservations_[{reservation.host, reservation.local.port}].push_back(reservation);
}

void PortReservations::end_wait(int host, const SocketAddress& local, const SocketAddress& peer) {
  const Key key{host, local.port};
  erase(key, [&](const PortReservation& reservation) {
    return reservation.is_over && reservation.local == local && reservation.peer == peer;
  });
}

void PortReservations::share(int host, std::uint16_t port, std::uint64_t owner,
                             const PortReservation& as) {
  PortReservation* reservation = find({host, port}, owner);
  if (reservation == nullptr) return;
  reservation->shares_address = as.shares_address;
  reservation->shares_port = as.shares_port;
}

void PortReservations::erase(const Key& key,
                             const std::function<bool(const PortReservation&)>& is_one) {
  std::vector<PortReservation>* those = find(key);
  if (those == nullptr) return;
  std::erase_if(*those, is_one);
  if (those->empty()) reservations_.erase(key);
}

void PortReservations::remove(int host, std::uint16_t port, std::uint64_t owner) {
  erase({host, port},
        [owner](const PortReservation& reservation) { return reservation.owner == owner; });
}

void PortReservations::wait(int host, std::uint16_t port, std::uint64_t owner, Nanos now,
                            Wait wait) {
  const Key key{host, port};
  PortReservation* reservation = find(key, owner);
  if (reservation == nullptr) return;
  reservation->is_over = wait == Wait::for_nobody;
  reservation->over_since = now;
  reservation->ends = now + kWait;
  waiting_.emplace_back(reservation->ends, key, owner);
}

void PortReservations::crash(int host) {
  std::erase_if(reservations_, [host](const auto& one) { return one.first.first == host; });
}

// A reservation that waits again has a second, later entry.
void PortReservations::drop_ended(Nanos now) {
  while (!waiting_.empty() && std::get<Nanos>(waiting_.front()) <= now) {
    const auto [ends, key, owner] = waiting_.front();
    waiting_.pop_front();
    const PortReservation* reservation = find(key, owner);
    if (reservation != nullptr && reservation->ends <= now) remove(key.first, key.second, owner);
  }
}

bool PortReservations::any(int host, std::uint16_t port, Nanos now,
                           const std::function<bool(const PortReservation&)>& is_in_the_way) {
  drop_ended(now);
  const std::vector<PortReservation>* those = find({host, port});
  return those != nullptr && std::ranges::any_of(*those, is_in_the_way);
}

}  // namespace spate::sim
