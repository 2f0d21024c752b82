// Checks and operations on a loop for layers above core: before they use a loop, or a kernel object
// that it shares with another process.
#pragma once

#include "spate/loop.h"

namespace spate {

// Returns whether the calling thread may use the loop. Functions that are not for any thread assert
// it first: SPATE_ASSERT(may_touch(loop), kWrongThread). Costs nothing where assertions are off.
bool may_touch(const Loop& loop);

// Returns whether this process is a fork of the loop's, and has not called after_fork(): the loop's
// kernel objects are then the parent's, and only closing a descriptor is allowed. A load and a
// compare.
bool is_foreign(const Loop& loop);

// Ends a loop that will not run again as destroying does, but keeps its memory: other threads may
// still post() to it and wake it. Calls only cleanup hooks.
void end_loop(Loop& loop);

}  // namespace spate
