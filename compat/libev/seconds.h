// Conversion between libev's time, seconds in a double, and spate's, whole nanoseconds.
#pragma once

#include <cstdint>

#include "spate/time.h"

namespace spate::libev {

inline constexpr double kNanosPerSecond = 1e9;
// Longer than any real wait; a sum of two still fits.
inline constexpr double kLongest = 4e18;

constexpr double to_seconds(std::int64_t nanos) {
  return static_cast<double>(nanos) / kNanosPerSecond;
}

// Converts a negative, too large or invalid value; NaN counts as zero.
constexpr std::int64_t odd_to_nanos(double nanos) {
  if (nanos > kLongest) return static_cast<std::int64_t>(kLongest);
  if (nanos < -kLongest) return -static_cast<std::int64_t>(kLongest);
  if (!(nanos < 0)) return 0;
  const auto whole = static_cast<std::int64_t>(nanos);
  return whole - (static_cast<double>(whole) > nanos);
}

// Rounds down.
constexpr std::int64_t to_nanos(double seconds) {
  const double nanos = seconds * kNanosPerSecond;
  if (nanos >= 0 && nanos <= kLongest) [[likely]]
    return static_cast<std::int64_t>(nanos);
  return odd_to_nanos(nanos);
}

}  // namespace spate::libev
