// The delay before another attempt, which grows with the number of failures.
#pragma once

#include <algorithm>

#include "spate/time.h"

namespace spate {

// Returns `first`, doubled `times` times, and at most `most`.
constexpr Nanos doubled(Nanos first, Nanos most, unsigned times) {
  Nanos delay = std::min(first, most);
  // A delay of zero never reaches `most`; 64 times exceed every other one.
  for (unsigned left = std::min(times, 64u); left > 0 && delay < most; --left)
    delay += std::min(delay, most - delay);
  return delay;
}

}  // namespace spate
