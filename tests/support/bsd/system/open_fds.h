// The open descriptors of this process: a test compares them before and after to find a leak.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace spate::testing {

// Not all of these systems list them in /dev/fd, so each number is tried.
inline std::vector<int> open_fds() {
  std::vector<int> fds;
  const int limit = std::min(::getdtablesize(), 65'536);
  for (int fd = 0; fd < limit; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) fds.push_back(fd);
  }
  return fds;
}

}  // namespace spate::testing
