// Waits for the work that a loop has passed to a thread pool.
#pragma once

#include <cstdint>

#include "spate/active.h"
#include "spate/loop.h"

namespace spate::testing {

inline bool works_in_pool(Loop& loop) {
  bool found = false;
  for_each_active(loop, [&](const ActiveInfo& info) { found |= info.kind == ActiveKind::offload; });
  return found;
}

// Runs the loop until no thread works for it and a call of `turn`, which handles the events that
// are due, finds none. One call may be too few: a thread can finish in the middle of it.
template <class Turn>
void finish_in_pool(Loop& loop, Turn turn) {
  std::uint64_t handled;
  do {
    handled = loop.metrics().events;
    turn();
    while (works_in_pool(loop)) loop.run(Run::once);
  } while (loop.metrics().events != handled);
}

}  // namespace spate::testing
