// Running a loop to its end.
#pragma once

#include <gtest/gtest.h>

#include <chrono>

#include "spate/loop.h"

namespace spate::testing {

// Runs the loop. Returns true if there was no error, and nothing is left.
inline bool runs_out(Loop& loop, Run mode = Run::until_done) {
  return !loop.run(mode) && !loop.has_work();
}

// Calls wait(delay) with longer and longer delays until the loop has slept in one. A process that
// is not scheduled during the whole delay gives the loop no reason to sleep. Needs measure_waits().
template <typename Wait>
void wait_until_it_sleeps(Loop& loop, Wait wait) {
  const Nanos before = loop.metrics().blocked;
  for (Nanos delay = std::chrono::milliseconds{20}; loop.metrics().blocked == before; delay *= 2) {
    ASSERT_LT(delay, std::chrono::seconds{2});
    wait(delay);
  }
}

}  // namespace spate::testing
