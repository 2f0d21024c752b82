// Ports that connections of TCP hold, with whose descriptor they came about or without: until they
// are over, and for a minute more at the end that has ended first (TIME_WAIT).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/net/place.h"
#include "spate/time.h"

namespace spate::sim {

// One end of a connection, for whoever wants its port.
struct PortHold {
  std::uint64_t owner = 0;  // Its end.
  int host = 0;
  Place local{};
  Place peer{};
  // bind() has asked for the port, its own or its listener's; else connect() took what was free.
  bool is_named = false;
  bool shares_address = false;  // SO_REUSEADDR
  bool shares_port = false;     // SO_REUSEPORT
  bool is_dual = false;         // An IPv6 socket's that does not do without IPv4.
  bool is_over = false;         // Both ends have ended.
  Nanos ends{kForever};
  Nanos over_since{kForever};
};

class PortHolds {
 public:
  // What TIME_WAIT lasts, and how long an end whose descriptor is closed waits for its peer's.
  static constexpr Nanos kWait = std::chrono::seconds{60};

  // In place of one that has waited for nobody between the same two places.
  void add(const PortHold& hold);
  // Its socket's options have changed.
  void share(int host, std::uint16_t port, std::uint64_t owner, const PortHold& as);
  void remove(int host, std::uint16_t port, std::uint64_t owner);
  // It goes at now + kWait, unless it is removed before.
  enum class Wait : std::uint8_t { for_peer, for_nobody };
  void wait(int host, std::uint16_t port, std::uint64_t owner, Nanos now, Wait wait);
  // Somebody connects to what waits for nobody. As in Linux it waits no longer, even if no listener
  // is there: the segment that is new to it is answered, and the answer by a reset, which ends it.
  void end_wait(int host, const Place& local, const Place& peer);
  void crash(int host);

  // Whether there is one of which `is_in_the_way` says so.
  bool any(int host, std::uint16_t port, Nanos now,
           const std::function<bool(const PortHold&)>& is_in_the_way);

 private:
  using Key = std::pair<int, std::uint16_t>;

  std::vector<PortHold>* find(const Key& key);
  PortHold* find(const Key& key, std::uint64_t owner);
  void erase(const Key& key, const std::function<bool(const PortHold&)>& is_one);
  void drop_ended(Nanos now);

  std::map<Key, std::vector<PortHold>> holds_;
  // Those that wait, by when they go.
  std::deque<std::tuple<Nanos, Key, std::uint64_t>> waiting_;
};

}  // namespace spate::sim
