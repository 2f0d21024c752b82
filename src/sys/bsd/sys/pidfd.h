// Descriptors of processes: here the kernel has none.
#pragma once

#include <cerrno>

namespace spate::sys {

// Returns -ENOSYS: the caller waits for SIGCHLD.
inline long pidfd_open(int) { return -ENOSYS; }

}  // namespace spate::sys
