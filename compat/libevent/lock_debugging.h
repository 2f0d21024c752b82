// Locks that check their use, wrapped around those of the program.
//
// Semantics: event2/thread.h (evthread_enable_lock_debugging).
#pragma once

#include "compat/libevent/event_api.h"

namespace spate::libevent {

// Returns the place of the program's callbacks: the active ones, or those under the checks.
evthread_lock_callbacks& lock_callbacks();
evthread_condition_callbacks& condition_callbacks();
void condition_callbacks_were_set();

}  // namespace spate::libevent
