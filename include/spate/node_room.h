// Room in each node, between `context` and `callback`, for a layer whose structs have more there.
//
// There is none. The drop-in libev in source form (tools/amalgamate.py) has a file of its own in
// place of this one, by the size of the program's EV_COMMON.
#pragma once

#include <cstddef>

namespace spate {

inline constexpr std::size_t kNodeRoom = 0;

}  // namespace spate
