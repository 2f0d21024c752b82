// Children: the default loop reaps all that end.
#pragma once

#include "compat/libev/ev_api.h"

namespace spate::libev {

// Takes SIGCHLD, and gives it back.
void start_reaping(struct ev_loop& loop);
void stop_reaping(struct ev_loop& loop);

}  // namespace spate::libev
