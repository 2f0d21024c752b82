// In place of include/spate/node_room.h: a node is as large as the program's watchers are.
#pragma once

#include <cstddef>

#include "compat/libev_source/spate_ev.h"

namespace spate {

// From `context`, which lies on what EV_COMMON begins with, to `callback`.
static_assert(offsetof(ev_watcher, cb) >= 24, "EV_COMMON is empty");
inline constexpr std::size_t kNodeRoom = offsetof(ev_watcher, cb) - 24;

}  // namespace spate
