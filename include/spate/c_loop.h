// Conversions between the C++ Loop and the C spate_loop of spate.h, for C++ programs whose plug-ins
// or bindings are in C, and the reverse.
//
// Ownership: both names stand for one loop. It is destroyed once, by the side that created it.
// Threads and callbacks: as for Loop. Watchers of both kinds share a loop; C++ watchers are called
// from inside spate_loop_poll().
#pragma once

#include "spate.h"
#include "spate/loop.h"

namespace spate {

// Return the same loop under its other name. to_c() returns nullptr when memory runs out, which is
// possible only at the first call for a loop.
SPATE_EXPORT spate_loop* to_c(Loop& loop);
SPATE_EXPORT Loop& from_c(spate_loop& loop);

}  // namespace spate
