// Reports that the wall clock was set: here the kernel does not.
#pragma once

#include <cerrno>

namespace spate::sys {

// Returns -ENOSYS: the caller reads the clock from time to time.
inline long create_clock_change_timer() { return -ENOSYS; }
inline long arm_clock_change_timer(int) { return -ENOSYS; }

}  // namespace spate::sys
