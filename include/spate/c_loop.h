// A loop's two faces: the Loop of C++, and the spate_loop of spate.h. For programs in C++ whose
// plug-ins or bindings are in C, and the other way round.
//
// Ownership: there is one loop. It is destroyed once: by whichever side has created it. Threads and
// callbacks: as for Loop. Watchers of both kinds share a loop; those of C++ are called from inside
// spate_loop_poll().
#pragma once

#include "spate.h"
#include "spate/loop.h"

namespace spate {

// nullptr when memory runs out: at the first call only.
SPATE_EXPORT spate_loop* to_c(Loop& loop);
SPATE_EXPORT Loop& from_c(spate_loop& loop);

}  // namespace spate
