// What a program has said of a World: what held, and what did not.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spate/time.h"

namespace spate::sim {

struct Findings {
  struct Failure {
    std::string name;
    Nanos time{0};
    std::vector<std::string> events{};  // The last before it.
    std::string state{};                // Who waited for what.

    bool is_like(const Failure& other) const { return name == other.name && time == other.time; }
  };

  std::optional<Failure> failure;         // The first.
  std::map<std::string, bool> sometimes;  // Whether it has held.
};

}  // namespace spate::sim
