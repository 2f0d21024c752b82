// Locks that check how they are used, around those of the program.
//
// Semantics: event2/thread.h (evthread_enable_lock_debugging).
#pragma once

#include "compat/libevent/event_api.h"

namespace spate::libevent {

// Where the program's callbacks belong: among those in use, or under the checking ones.
evthread_lock_callbacks& lock_callbacks();
evthread_condition_callbacks& condition_callbacks();
void condition_callbacks_were_set();

}  // namespace spate::libevent
