// Runs a program in a new World: for explore().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/explore/shrink.h"
#include "sim/kernel/findings.h"
#include "sim/kernel/history.h"
#include "spate/sim/world.h"

namespace spate::sim {

struct Trial {
  std::uint64_t seed;
  std::optional<Numbers> only;  // The faults that take effect; nullopt: all.
  bool keeps_all_events = false;
};

struct Play {
  Findings findings;
  std::uint64_t trace = 0;
  std::uint64_t faults = 0;
  Nanos time{0};                      // Simulated time at the end.
  std::vector<std::string> passed{};  // The faults that took effect, if `only` is set.
  std::vector<std::string> events{};  // All events, if they are kept.
};

using Program = std::function<void(World&)>;

Play play(const Trial& trial, const Program& program);
// As play(), in a separate process. If a signal ends the process, that is a failure of the World.
Play play_apart(const Trial& trial, const Program& program);

// Returns a failure reported by the program, with the state at that time.
Findings::Failure failure_of(std::string_view name);

}  // namespace spate::sim
