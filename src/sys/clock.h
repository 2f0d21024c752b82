// The system's clocks.
#pragma once

#include <climits>
#include <cstdint>
#include <ctime>

#include "spate/time.h"

namespace spate::sys {

inline Nanos read_clock(clockid_t id) {
  timespec spec{};
  ::clock_gettime(id, &spec);
  return std::chrono::seconds{spec.tv_sec} + Nanos{spec.tv_nsec};
}

inline timespec to_timespec(Nanos duration) {
  return {.tv_sec = static_cast<time_t>(duration.count() / 1'000'000'000),
          .tv_nsec = static_cast<long>(duration.count() % 1'000'000'000)};
}

// Rounds up, to at most INT_MAX. A wait that is rounded down would end before its deadline, and the
// loop would spin for the last millisecond.
inline int to_milliseconds(Nanos duration) {
  const std::int64_t ms = (duration.count() + 999'999) / 1'000'000;
  return ms > INT_MAX ? INT_MAX : static_cast<int>(ms);
}

}  // namespace spate::sys
