// The faults of a seed, numbered in order of time. All of them take effect, or, for minimizing a
// failure, a subset.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/kernel/history.h"

namespace spate::sim {

class Faults {
 public:
  // Limits the faults that take effect to these numbers, in ascending order.
  void let_pass(std::vector<std::uint64_t> only) { only_ = std::move(only); }
  // Counts the next fault, and returns whether it takes effect; then it is recorded as `event`.
  bool inject(Event event, History& history);

  // Returns the number of faults.
  std::uint64_t count() const { return count_; }
  // Returns the faults that took effect, if let_pass() was called.
  const std::vector<Event>& passed() const { return passed_; }

 private:
  std::uint64_t count_ = 0;
  std::optional<std::vector<std::uint64_t>> only_;
  std::vector<Event> passed_;
};

}  // namespace spate::sim
