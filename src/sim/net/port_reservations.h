// Port reservations of TCP connections, with or without a descriptor: until they end, and for
// another minute at the side that ended first (TIME_WAIT).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/net/socket_address.h"
#include "spate/time.h"

namespace spate::sim {

// The reservation of one end of a connection.
struct PortReservation {
  std::uint64_t owner = 0;  // The connection's number.
  int host = 0;
  SocketAddress local{};
  SocketAddress peer{};
  // The port was chosen by bind(), of the socket or its listener; otherwise by connect().
  bool is_named = false;
  bool shares_address = false;  // SO_REUSEADDR
  bool shares_port = false;     // SO_REUSEPORT
  bool is_dual = false;         // An IPv6 socket that is not v6-only.
  bool is_over = false;         // Both ends have ended.
  Nanos ends{kForever};
  Nanos over_since{kForever};
};

class PortReservations {
 public:
  // The duration of TIME_WAIT, and how long an end without a descriptor waits for its peer's end.
  static constexpr Nanos kWait = std::chrono::seconds{60};

  // Replaces one in TIME_WAIT between the same two addresses.
  void add(const PortReservation& reservation);
  // Updates it after a change of its socket's options.
  void share(int host, std::uint16_t port, std::uint64_t owner, const PortReservation& as);
  void remove(int host, std::uint16_t port, std::uint64_t owner);
  // Expires at now + kWait, unless it is removed before.
  enum class Wait : std::uint8_t { for_peer, for_nobody };
  void wait(int host, std::uint16_t port, std::uint64_t owner, Nanos now, Wait wait);
  // Called when a connect reaches a reservation in TIME_WAIT. As in Linux this ends it even without
  // a listener: its acknowledgement of the SYN is answered by a reset.
  void end_wait(int host, const SocketAddress& local, const SocketAddress& peer);
  void crash(int host);

  // Returns whether any reservation is in the way.
  bool any(int host, std::uint16_t port, Nanos now,
           const std::function<bool(const PortReservation&)>& is_in_the_way);

 private:
  using Key = std::pair<int, std::uint16_t>;

  std::vector<PortReservation>* find(const Key& key);
  PortReservation* find(const Key& key, std::uint64_t owner);
  void erase(const Key& key, const std::function<bool(const PortReservation&)>& is_one);
  void drop_ended(Nanos now);

  std::map<Key, std::vector<PortReservation>> reservations_;
  // Waiting ones, by expiry.
  std::deque<std::tuple<Nanos, Key, std::uint64_t>> waiting_;
};

}  // namespace spate::sim
