// Waits for the work that a loop has passed to a thread pool.
#pragma once

#include "spate/active.h"
#include "spate/loop.h"

namespace spate::testing {

inline bool works_in_pool(Loop& loop) {
  bool found = false;
  for_each_active(loop, [&](const ActiveInfo& info) { found |= info.kind == ActiveKind::offload; });
  return found;
}

// Runs the loop until no thread works for it. `turn` handles the events that are due.
template <class Turn>
void finish_in_pool(Loop& loop, Turn turn) {
  for (turn(); works_in_pool(loop); turn()) loop.run(Run::once);
}

}  // namespace spate::testing
