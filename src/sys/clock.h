// The system's clocks.
#pragma once

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

}  // namespace spate::sys
