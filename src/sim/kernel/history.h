// What has happened in a World: its hash, its last events, and all of them if they are asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/mix.h"
#include "spate/time.h"

namespace spate::sim {

enum class EventKind : std::uint8_t {
  segment,  // Of TCP, delivered.
  packet,   // Of UDP, delivered.
  local,    // Sent within a host: by a Unix socket, or a pipe.
  cut,
  healed,
  crashed,
  restarted,
  paused,
  resumed,
  noted,  // By note().
  // ---- faults
  lost,
  doubled,
  overtaken,
  struck,  // A fault of the program's own, by World::strikes().
  failed,  // A system call.
};

// Between which hosts, where there are two.
struct Event {
  EventKind kind;
  int from = -1;
  int to = -1;
  Nanos time{0};             // Of the World.
  std::uint64_t number = 0;  // The connection's; a fault's.
  std::uint64_t print = 0;   // Of what it was about.
  std::string_view what{};   // Of static storage.
  std::size_t size = 0;
  std::string text{};

  bool operator==(const Event&) const = default;
};

class History {
 public:
  static constexpr std::size_t kLast = 50;
  static constexpr std::size_t kMost = 1'000'000;

  void note(std::uint64_t what) { trace_ = mix(trace_ ^ what); }
  void note(const Event& event);
  std::uint64_t trace() const { return trace_; }

  // From now on all are kept, up to kMost.
  void keep_all() { keeps_all_ = true; }
  // Those that were kept, oldest first: the last ones only, unless keep_all() was called.
  std::vector<Event> events() const;

 private:
  std::uint64_t trace_ = 0;
  std::uint64_t count_ = 0;
  bool keeps_all_ = false;
  std::vector<Event> kept_;
};

// "1.908000000 s"
std::string seconds_of(Nanos time);
// One line, without its end.
std::string line_of(const Event& event, const std::vector<std::string>& hosts);

}  // namespace spate::sim
