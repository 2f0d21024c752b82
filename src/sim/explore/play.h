// One run of a program in a World of its own: for explore().
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
  std::optional<Numbers> only;  // Of its faults; none: all.
  bool keeps_all_events = false;
};

struct Play {
  Findings findings;
  std::uint64_t trace = 0;
  std::uint64_t faults = 0;
  Nanos time{0};                      // Of the World, in the end.
  std::vector<std::string> passed{};  // Those that came to pass, where only some do.
  std::vector<std::string> events{};  // All, if they are kept.
};

using Program = std::function<void(World&)>;

Play play(const Trial& trial, const Program& program);
// In a process of its own, whose end by a signal is a failure of the World.
Play play_apart(const Trial& trial, const Program& program);

// The failure of a program that says so, with what is to be seen at that time.
Findings::Failure failure_of(std::string_view name);

}  // namespace spate::sim
