// Time in spate: whole nanoseconds, in std::chrono's types.
//
// There are two clocks. Loop::now() and Timer use the monotonic clock, which never jumps and has no
// meaningful origin. Periodic uses the wall clock (UTC), which may be set. Both come from a Clock,
// which tests can replace.
// Threads: any, one at a time for each object.
#pragma once

#include <chrono>
#include <cstdint>

#include "spate/export.h"

namespace spate {

using Nanos = std::chrono::nanoseconds;
using WallTime = std::chrono::sys_time<Nanos>;

// About 146 years, so that adding it to a clock reading cannot overflow.
inline constexpr Nanos kForever{INT64_MAX / 2};

// Returns `now` + `delay` for any duration. A negative delay counts as zero; a longer one than
// kForever counts as kForever. All durations of callers are converted here.
constexpr Nanos deadline_after(Nanos now, Nanos delay) {
  const auto span = static_cast<std::uint64_t>(delay.count());
  if (span <= static_cast<std::uint64_t>(kForever.count())) [[likely]]
    return now + delay;
  return delay < Nanos{0} ? now : now + kForever;
}

// A loop's source of time. The creator owns it; it must outlive the loop. Called on the loop's
// thread only.
class SPATE_EXPORT Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanos monotonic() = 0;  // Never goes backwards.
  virtual WallTime wall() = 0;    // May jump either way.
};

// Returns the system's clocks (CLOCK_MONOTONIC and CLOCK_REALTIME). Any thread.
SPATE_EXPORT Clock& system_clock();

}  // namespace spate
