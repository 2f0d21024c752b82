// Signals: one table for the process, since a signal belongs to one loop at a time.
#pragma once

#include "compat/libev/ev_api.h"

namespace spate::libev {

// Unlinks the watchers of a loop that is being destroyed, so that they are not called. The handlers
// stay.
void forget_signals_of(const struct ev_loop& loop);

// Returns the loop whose watchers the signal has; null if it has none. Any thread.
struct ev_loop* loop_of_signal(int signum);

}  // namespace spate::libev
