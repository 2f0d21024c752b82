// The clocks of hosts: how they differ from the World's.
#pragma once

#include <map>

#include "spate/time.h"

namespace spate::sim {

// What runs at another speed since a time of the World's.
struct Clock {
  Nanos since{0};
  Nanos monotonic{0};   // Then.
  Nanos wall_ahead{0};  // The wall clock's, of the monotonic one.
  int drift = 0;        // In millionths; above -1,000,000.

  Nanos at(Nanos now) const;
  // A time of the World's at which it says `time` or more, and not three nanoseconds before.
  Nanos when(Nanos time) const;
};

class Clocks {
 public:
  // 2020-01-01T00:00:00Z, when the World's monotonic clock would have been zero.
  static constexpr Nanos kWallBeginning = std::chrono::seconds{1'577'836'800};

  // From now on the host's wall clock is `ahead` of the World's, and both its clocks run faster by
  // `drift` millionths. Its monotonic clock does not jump.
  void set(int host, Nanos now, Nanos ahead, int drift);

  Nanos monotonic(int host, Nanos now) const;
  Nanos wall(int host, Nanos now) const;
  // The World's time when `span` of the host's has passed.
  Nanos deadline(int host, Nanos now, Nanos span) const;

 private:
  const Clock* find(int host) const;

  std::map<int, Clock> clocks_;  // Of hosts whose clocks are not the World's.
};

}  // namespace spate::sim
