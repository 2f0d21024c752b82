// What a program has said of a World: what held, and what did not.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "spate/time.h"

namespace spate::sim {

struct Findings {
  struct Failure {
    std::string name;
    Nanos time;

    bool operator==(const Failure&) const = default;
  };

  std::optional<Failure> failure;         // The first.
  std::map<std::string, bool> sometimes;  // Whether it has held.
};

}  // namespace spate::sim
