// libev's time, seconds in a double, and spate's, whole nanoseconds.
#pragma once

#include <cstdint>

#include "spate/time.h"

namespace spate::libev {

inline constexpr double kNanosPerSecond = 1e9;
// Nobody waits longer; sums of two such still fit.
inline constexpr double kLongest = 4e18;

constexpr double to_seconds(std::int64_t nanos) {
  return static_cast<double>(nanos) / kNanosPerSecond;
}

// Rounds down. Whatever is not a number counts as zero.
constexpr std::int64_t to_nanos(double seconds) {
  const double nanos = seconds * kNanosPerSecond;
  if (nanos >= -kLongest && nanos <= kLongest) [[likely]] {
    const auto whole = static_cast<std::int64_t>(nanos);
    return whole - (static_cast<double>(whole) > nanos);
  }
  if (nanos > kLongest) return static_cast<std::int64_t>(kLongest);
  return nanos < -kLongest ? -static_cast<std::int64_t>(kLongest) : 0;
}

}  // namespace spate::libev
