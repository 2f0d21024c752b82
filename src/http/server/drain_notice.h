// DrainNotice: calls a function on a loop after all copies of a DrainTicket were destroyed, on any
// threads.
#pragma once

#include <functional>
#include <memory>

#include "spate/error.h"
#include "spate/loop.h"

namespace spate::http {

class DrainTicketState;
// Each part that is being drained holds one.
using DrainTicket = std::shared_ptr<DrainTicketState>;

// Keeps `loop` alive until `done` was called. If `loop` is destroyed first, `done` is destroyed
// uncalled. Errors: ENOMEM. Called on the loop's thread.
Result<DrainTicket> notify_when_drained(Loop& loop, std::move_only_function<void()> done);

}  // namespace spate::http
