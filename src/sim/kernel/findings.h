// The results of a program's checks in a World.
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
    std::vector<std::string> events{};  // The last ones before it.
    std::string state{};                // The waits of the hosts.

    bool is_like(const Failure& other) const { return name == other.name && time == other.time; }
  };

  std::optional<Failure> failure;         // The first.
  std::map<std::string, bool> sometimes;  // Whether each has been true.
};

}  // namespace spate::sim
