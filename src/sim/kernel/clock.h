// The clocks of hosts, and how they differ from the World's.
#pragma once

#include <map>

#include "spate/time.h"

namespace spate::sim {

// A clock that runs at another speed, since `since` of the World.
struct Clock {
  Nanos since{0};
  Nanos monotonic{0};   // Its value at `since`.
  Nanos wall_ahead{0};  // The wall clock's offset from the monotonic one.
  int drift = 0;        // In millionths; above -1,000,000.

  Nanos at(Nanos now) const;
  // Returns a World time at which it shows `time` or more, and which is at most three nanoseconds
  // late.
  Nanos when(Nanos time) const;
};

class Clocks {
 public:
  // 2020-01-01T00:00:00Z, the wall clock when the World's monotonic clock is zero.
  static constexpr Nanos kWallBeginning = std::chrono::seconds{1'577'836'800};

  // Sets the host's wall clock `ahead` of the World's, and makes both its clocks run faster by
  // `drift` millionths. Its monotonic clock does not jump.
  void set(int host, Nanos now, Nanos ahead, int drift);

  Nanos monotonic(int host, Nanos now) const;
  Nanos wall(int host, Nanos now) const;
  // Returns the World's time when `span` of the host's time has passed.
  Nanos deadline(int host, Nanos now, Nanos span) const;

 private:
  const Clock* find(int host) const;

  std::map<int, Clock> clocks_;  // For hosts whose clocks differ from the World's.
};

}  // namespace spate::sim
