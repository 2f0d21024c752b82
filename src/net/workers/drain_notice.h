// DrainNotice: calls a function on a loop after all copies of a DrainTicket were destroyed, on any
// threads.
#pragma once

#include "spate/error.h"
#include "spate/function.h"
#include "spate/loop.h"
#include "spate/net/workers_server.h"

namespace spate {

// Keeps `loop` alive until `done` was called. If `loop` is destroyed first, `done` is destroyed
// uncalled. Errors: ENOMEM. Called on the loop's thread.
Result<DrainTicket> notify_when_drained(Loop& loop, Function<void()> done);

}  // namespace spate
