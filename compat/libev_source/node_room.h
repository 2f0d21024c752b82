// Replaces include/spate/layer/node_room.h: makes a node as large as the program's watchers.
#pragma once

#include <cstddef>

#include "compat/libev_source/spate_ev.h"

namespace spate {

// From `context`, which overlaps the start of EV_COMMON, to `callback`.
static_assert(offsetof(ev_watcher, cb) >= 24, "EV_COMMON is empty");
inline constexpr std::size_t kNodeRoom = offsetof(ev_watcher, cb) - 24;

}  // namespace spate
