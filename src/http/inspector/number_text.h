// Formatting of numbers for JSON and Prometheus.
#pragma once

#include <charconv>
#include <cmath>
#include <string>

#include "spate/time.h"

namespace spate::http {

inline double seconds_of(Nanos time) { return static_cast<double>(time.count()) / 1e9; }

inline bool is_finite(double number) { return std::isfinite(number); }

// Returns the shortest text that is parsed as the same number.
inline std::string number_text(double number) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), number).ptr;
  return {text, end};
}

}  // namespace spate::http
