// What a layer above asks of a loop before it touches it, or a kernel object that it shares with
// whoever else has the loop.
#pragma once

#include "spate/loop.h"

namespace spate {

// Whether the calling thread may use the loop: what every function that is not for any thread
// asserts first, SPATE_ASSERT(may_touch(loop), kWrongThread), at no cost where assertions are off.
bool may_touch(const Loop& loop);

// Whether this process is a fork of the one that the loop belongs to, and has not told it so with
// after_fork(): its kernel objects are the parent's. Closing a descriptor is all that may be done
// with one. A load and a compare.
bool is_foreign(const Loop& loop);

// Does to a loop that will not run again what destroying it does, but leaves it where it is: other
// threads may still post() to it and wake it. Calls nothing but cleanup hooks.
void end_loop(Loop& loop);

}  // namespace spate
