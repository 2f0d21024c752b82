// Descriptors of processes.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include "sys/descriptor.h"

namespace spate::sys {

// Returns a descriptor that becomes readable when the process ends. -ENOSYS before Linux 5.3.
inline long pidfd_open(int pid) {
  if (const int error = injected(SystemCall::pidfd_open)) return -error;
  return opened(::syscall(SYS_pidfd_open, pid, 0));
}

}  // namespace spate::sys
