// Time in spate: whole nanoseconds, in std::chrono's types.
//
// Two clocks, never mixed. Loop::now() and every Timer use the monotonic clock (it never jumps; its
// origin means nothing). Periodic uses the wall clock (UTC; it may jump when somebody sets it).
// Both come from a Clock, which a test replaces to own time.
#pragma once

#include <chrono>
#include <cstdint>

#include "spate/export.h"

namespace spate {

using Nanos = std::chrono::nanoseconds;
using WallTime = std::chrono::sys_time<Nanos>;

// Longer than any wait: about 146 years, chosen so that adding it to any clock reading cannot
// overflow.
inline constexpr Nanos kForever{INT64_MAX / 2};

// When `delay` from `now` is, for any duration whatever: a negative one counts as none, and one
// beyond kForever as that. A duration that a caller chose becomes a time here and nowhere else.
constexpr Nanos deadline_after(Nanos now, Nanos delay) {
  const auto span = static_cast<std::uint64_t>(delay.count());
  if (span <= static_cast<std::uint64_t>(kForever.count())) return now + delay;
  return delay < Nanos{0} ? now : now + kForever;
}

// Where a loop gets its time from. Owned by its creator and alive as long as every loop that uses
// it; called on the loop's thread only.
class SPATE_EXPORT Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanos monotonic() = 0;  // Never goes backwards.
  virtual WallTime wall() = 0;    // May jump either way.
};

// The system's clocks (CLOCK_MONOTONIC and CLOCK_REALTIME). Any thread.
SPATE_EXPORT Clock& system_clock();

}  // namespace spate
