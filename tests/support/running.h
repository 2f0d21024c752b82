// Running a loop to its end.
#pragma once

#include <gtest/gtest.h>

#include <chrono>

#include "spate/loop.h"
#include "spate/timer.h"

namespace spate::testing {

// Runs the loop. Returns true if there was no error, and nothing is left.
inline bool runs_out(Loop& loop, Run mode = Run::until_done) {
  return !loop.run(mode) && !loop.has_work();
}

// Runs timers, each twice as long as the one before, until the loop has slept in one. A process
// that is not scheduled during a whole delay has no reason to sleep. Needs measure_waits().
inline void wait_until_it_sleeps(Loop& loop) {
  const Nanos before = loop.metrics().blocked;
  Timer timer(loop, [] {});
  for (Nanos delay = std::chrono::milliseconds{20}; loop.metrics().blocked == before; delay *= 2) {
    ASSERT_LT(delay, std::chrono::seconds{10});
    ASSERT_TRUE(timer.start(delay));
    while (timer.is_active()) ASSERT_FALSE(loop.run(Run::once));
  }
}

}  // namespace spate::testing
