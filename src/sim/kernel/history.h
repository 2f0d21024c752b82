// The events of a World: their hash, the last ones, and all of them on request.
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
  segment,  // TCP, delivered.
  packet,   // UDP, delivered.
  local,    // Sent within a host, by a unix socket or a pipe.
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
  injected,  // Injected by the program: World::inject_fault().
  failed,    // A system call.
};

// `from` and `to` are host numbers.
struct Event {
  EventKind kind;
  int from = -1;
  int to = -1;
  Nanos time{0};             // World time.
  std::uint64_t number = 0;  // The number of the connection or fault.
  std::uint64_t hash = 0;    // A hash of the contents.
  std::string_view what{};   // Has static storage.
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

  // Keeps all events from now on, up to kMost.
  void keep_all() { keeps_all_ = true; }
  // Returns the kept events, oldest first: only the last ones unless keep_all() was called.
  std::vector<Event> events() const;

 private:
  std::uint64_t trace_ = 0;
  std::uint64_t count_ = 0;
  bool keeps_all_ = false;
  std::vector<Event> kept_;
};

// Returns a hash of the bytes, for the trace.
std::uint64_t hash_of(std::string_view bytes);
// Formats "1.908000000 s".
std::string seconds_of(Nanos time);
// Formats one line, without its end.
std::string line_of(const Event& event, const std::vector<std::string>& hosts);

}  // namespace spate::sim
