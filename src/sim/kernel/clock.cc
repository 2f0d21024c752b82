#include "sim/kernel/clock.h"

namespace spate::sim {

namespace {

constexpr std::int64_t kMillion = 1'000'000;

}  // namespace

// Divides first: this cannot overflow within a century, and is exact on every compiler.
Nanos Clock::at(Nanos now) const {
  const std::int64_t passed = (now - since).count();
  const std::int64_t gained = passed / kMillion * drift + passed % kMillion * drift / kMillion;
  return monotonic + Nanos{passed + gained};
}

Nanos Clock::when(Nanos time) const {
  if (time - monotonic >= kForever / 4) return kForever;
  const std::int64_t left = (time - monotonic).count();
  const std::int64_t speed = kMillion + drift;
  Nanos found = since + Nanos{left / speed * kMillion + left % speed * kMillion / speed};
  while (at(found) < time) ++found;
  return found;
}

void Clocks::set(int host, Nanos now, Nanos ahead, int drift) {
  const Nanos monotonic_now = monotonic(host, now);
  const Nanos wall = kWallBeginning + now + ahead;
  clocks_[host] = {now, monotonic_now, wall - monotonic_now, drift};
}

const Clock* Clocks::find(int host) const {
  const auto found = clocks_.find(host);
  return found == clocks_.end() ? nullptr : &found->second;
}

Nanos Clocks::monotonic(int host, Nanos now) const {
  const Clock* clock = find(host);
  return clock == nullptr ? now : clock->at(now);
}

Nanos Clocks::wall(int host, Nanos now) const {
  const Clock* clock = find(host);
  return clock == nullptr ? kWallBeginning + now : clock->at(now) + clock->wall_ahead;
}

Nanos Clocks::deadline(int host, Nanos now, Nanos span) const {
  const Clock* clock = find(host);
  // A span of zero must stay zero: when() could round it up to a wait.
  if (clock == nullptr || span <= Nanos{0}) return deadline_after(now, span);
  return clock->when(deadline_after(clock->at(now), span));
}

}  // namespace spate::sim
