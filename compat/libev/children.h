// Children: the default loop reaps every child that exits.
#pragma once

#include "compat/libev/ev_api.h"

namespace spate::libev {

// Starts watching SIGCHLD, and stops.
void start_reaping(struct ev_loop& loop);
void stop_reaping(struct ev_loop& loop);

}  // namespace spate::libev
