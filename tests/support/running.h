// What becomes of a run, in one word.
#pragma once

#include "spate/loop.h"

namespace spate::testing {

// Runs without an error, and nothing is left then.
inline bool runs_out(Loop& loop, Run mode = Run::until_done) {
  return !loop.run(mode) && !loop.has_work();
}

}  // namespace spate::testing
