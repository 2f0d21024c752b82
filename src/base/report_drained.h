// Reports the end of a drain to all that asked for it.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "spate/function.h"

namespace spate {

// Passes each of the functions in `done` to `call` once, the oldest first, while `is_drained()`
// returns true. It is asked after the function was destroyed: the call and the destructor may each
// add a connection, destroy the owner of `done`, or run the loop, which reports the others.
template <class Call, class IsDrained>
void report_drained(std::vector<Function<void()>>& done, const Call& call,
                    const IsDrained& is_drained) {
  const auto call_oldest = [&] {
    Function<void()> oldest = std::move(done.front());
    done.erase(done.begin());
    call(oldest);
  };
  for (std::size_t left = done.size(); left > 0 && !done.empty(); --left) {
    call_oldest();
    if (!is_drained()) return;
  }
}

}  // namespace spate
