// Signals: one table for the process, since a signal belongs to one loop at a time.
#pragma once

#include "compat/libev/ev_api.h"

namespace spate::libev {

// The watchers of a loop that is about to go: nobody calls them any more. The handlers stay.
void forget_signals_of(const struct ev_loop& loop);

// The one whose watchers of it there are; null if there are none. Any thread.
struct ev_loop* loop_of_signal(int signum);

}  // namespace spate::libev
