#pragma once

// One loop in virtual time, and functions that run it.

#include <ev.h>
#include <math.h>

#include "harness.h"
#include "virtual_time.h"

static struct ev_loop* loop;

static void advance(double milliseconds) { virtual_advance((int64_t)llround(milliseconds * 1e6)); }

// Returns tenths of a millisecond, so that the ticks of a few turns do not matter.
static double tenths(ev_tstamp seconds) { return floor(seconds * 1e4 + 0.5) / 10 + 0.; }

static double now_in_milliseconds(void) {
  return tenths(ev_now(loop) - 1e-9 * (double)(kMonotonicStart + kRealAhead));
}

static void run(int flags) {
  const int result = ev_run(loop, flags);
  printf("run: %d now %.1f\n", result, now_in_milliseconds());
}

// Lets time pass, and updates the loop's time.
static inline void later(double milliseconds) {
  advance(milliseconds);
  run(EVRUN_NOWAIT);
}

static inline void new_loop(void) { loop = ev_loop_new(EVFLAG_NOENV); }
