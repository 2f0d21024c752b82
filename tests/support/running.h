// Running a loop to its end.
#pragma once

#include "spate/loop.h"

namespace spate::testing {

// Runs the loop. Returns true if there was no error, and nothing is left.
inline bool runs_out(Loop& loop, Run mode = Run::until_done) {
  return !loop.run(mode) && !loop.has_work();
}

}  // namespace spate::testing
