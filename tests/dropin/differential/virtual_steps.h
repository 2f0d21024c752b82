#pragma once

// The time of virtual_time.h in steps of kStep: the clock stands on a multiple of it, and a wait
// ends at the next one. Deadlines that lie between two steps are due together and still have an
// order, and it does not matter how exactly a library waits, nor how often it looks.
//
// A wait without end that finds nothing calls back, and is then interrupted, as by a signal.

#include <errno.h>

#include "virtual_time.h"

enum { kStep = 100000 };  // Microseconds.

static void (*when_stuck)(void);

static inline int64_t micros_now(void) { return virtual_now / kMicrosecond; }

static inline int64_t wall_micros_now(void) { return (virtual_now + kRealAhead) / kMicrosecond; }

static inline void advance_steps(int64_t steps) { virtual_advance(steps * kStep * kMicrosecond); }

static inline int sleep_in_steps(int64_t nanoseconds, bool is_rounded) {
  const int64_t step = (int64_t)kStep * kMicrosecond;
  (void)is_rounded;
  if (nanoseconds == kForever) {
    when_stuck();
    errno = EINTR;
    return -1;
  }
  virtual_now = (virtual_now + nanoseconds + step - 1) / step * step;
  return 0;
}

static inline void use_steps(void (*stuck)(void)) {
  virtual_tick = 0;
  virtual_sleep = sleep_in_steps;
  when_stuck = stuck;
}
