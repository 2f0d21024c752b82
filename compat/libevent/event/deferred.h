// Events by which the library calls what it has put off, as the callbacks of buffers.
#pragma once

#include "compat/libevent/event_api.h"

namespace spate::libevent {

// Activates the event, which must not be active. If that happens often in one turn, as each may
// cause the next, the loop is to look for others before it calls more.
void activate_deferred(event& ev);

}  // namespace spate::libevent
