// Readings: numbers of a program's own that an Inspector shows (inspector.h).
//
// Ownership: the Inspector's; valid during the callback. Threads: that of the callback.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spate/export.h"

namespace spate::http {

class SPATE_EXPORT Readings {
 public:
  // What goes up and down, and what only grows. Names are any text; for Prometheus what is no
  // letter, digit or '_' becomes '_', and of two that are then the same the first one counts.
  void gauge(std::string_view name, double value);
  void counter(std::string_view name, double value);

  enum class Kind : std::uint8_t { gauge, counter };
  struct Reading {
    std::string name;
    Kind kind;
    double value;
  };
  const std::vector<Reading>& all() const { return all_; }

 private:
  std::vector<Reading> all_;
};

}  // namespace spate::http
