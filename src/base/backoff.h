// The delay before another attempt, which grows with the number of failures.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/mix.h"
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

// The delays of one client that reconnects: they double, and a random share is taken off, so that
// the clients of a restarted server do not connect all at once.
class Backoff {
 public:
  explicit Backoff(std::uint64_t seed) : random_(seed) {}

  // Returns the delay after `failures` consecutive failures; after none it is that after one.
  // `jitter` is the share of it that is random, 0 ... 1.
  Nanos after(std::uint32_t failures, Nanos first, Nanos most, double jitter) {
    const Nanos span = doubled(first, std::min(most, kForever), failures > 0 ? failures - 1 : 0);
    const double longest = static_cast<double>(span.count());
    return Nanos{static_cast<std::int64_t>(longest * (1 - jitter * share(random_++)))};
  }

 private:
  std::uint64_t random_;
};

}  // namespace spate
