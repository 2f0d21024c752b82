// kNodeRoom: the bytes in each node between `context` and `callback`. For layers whose structs have
// more fields there.
//
// It is zero here. The drop-in libev in source form (tools/amalgamate.py) replaces this file by one
// that follows the program's EV_COMMON.
#pragma once

#include <cstddef>

namespace spate {

inline constexpr std::size_t kNodeRoom = 0;

}  // namespace spate
