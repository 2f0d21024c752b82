// Events for the library's deferred calls, such as the callbacks of buffers.
#pragma once

#include "compat/libevent/event_api.h"

namespace spate::libevent {

// Activates the event, unless it is active. Returns whether it did. If that happens often in one
// turn, as each may cause the next, the last ones wait for the next turn.
bool activate_deferred(event& ev);

// Calls `callback` from the loop while no callback of the event runs. As above, a more urgent event
// waits until the calls of the present priority are done.
void finalize_deferred(event& ev, event_finalize_callback_fn callback);

}  // namespace spate::libevent
