#pragma once

// Makes the time of virtual_time.h proceed in steps of kStep: the clock is always a multiple of it,
// and a wait ends at the next multiple. Deadlines between two multiples expire together and are
// still ordered, and neither the precision of a library's wait nor how often it polls matters.
//
// An infinite wait without an event calls back, and is then interrupted, as by a signal.

#include <errno.h>

#include "virtual_time.h"

enum { kStep = 100000 };  // Microseconds.

static void (*when_stuck)(void);

static inline int64_t micros_now(void) { return virtual_now / kMicrosecond; }

static inline int64_t wall_micros_now(void) { return (virtual_now + kRealAhead) / kMicrosecond; }

static inline void advance_steps(int64_t steps) { virtual_advance(steps * kStep * kMicrosecond); }

// Advances the clock to the next multiple of kStep.
static inline void finish_step(void) {
  const int64_t step = (int64_t)kStep * kMicrosecond;
  virtual_now = (virtual_now + step - 1) / step * step;
}

// A wait of no time leaves the clock alone: a library may look at a descriptor at any time.
static inline int sleep_in_steps(int64_t nanoseconds, bool is_rounded) {
  (void)is_rounded;
  if (nanoseconds == 0) return 0;
  if (nanoseconds == kForever) {
    when_stuck();
    errno = EINTR;
    return -1;
  }
  virtual_advance(nanoseconds);
  finish_step();
  return 0;
}

static inline void use_steps(void (*stuck)(void)) {
  virtual_tick = 0;
  virtual_sleep = sleep_in_steps;
  when_stuck = stuck;
}
