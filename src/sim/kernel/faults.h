// The faults that a seed has, numbered in the order in which it wants them, and which of them come
// to pass: all, or some, to find out which of them a failure needs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/kernel/history.h"

namespace spate::sim {

class Faults {
 public:
  // Only these, in ascending order.
  void let_pass(std::vector<std::uint64_t> only) { only_ = std::move(only); }
  // Whether the next one, as which `event` is noted, comes to pass.
  bool strike(Event event, History& history);

  // How many the seed has wanted.
  std::uint64_t count() const { return count_; }
  // Those that came to pass, while only some do.
  const std::vector<Event>& passed() const { return passed_; }

 private:
  std::uint64_t count_ = 0;
  std::optional<std::vector<std::uint64_t>> only_;
  std::vector<Event> passed_;
};

}  // namespace spate::sim
