// The descriptors that a program would inherit, for C libraries whose posix_spawn() cannot close
// them all by itself.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

#include "sys/directory.h"

namespace spate::sys {

#ifdef __linux__

// Calls `take` for each open descriptor from `first` on that exec does not close, until it returns
// an errno. Returns that errno, or 0; ENOENT if /proc is not mounted.
template <class Take>
int for_each_inherited(int first, Take take) {
  Directory open(Descriptor(opened(::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC))));
  if (!open.is_open()) return errno;
  while (const char* name = open.next()) {
    int fd = -1;
    std::from_chars(name, name + std::strlen(name), fd);
    if (fd < first) continue;
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags < 0 || (flags & FD_CLOEXEC) != 0) continue;
    if (const int error = take(fd)) return error;
  }
  return 0;
}

#else

// As above; looks at each number that a descriptor may have.
template <class Take>
int for_each_inherited(int first, Take take) {
  const long end = ::sysconf(_SC_OPEN_MAX);
  for (int fd = first; fd < end; ++fd) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags < 0 || (flags & FD_CLOEXEC) != 0) continue;
    if (const int error = take(fd)) return error;
  }
  return 0;
}

#endif

}  // namespace spate::sys
