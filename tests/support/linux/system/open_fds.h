// The open descriptors of this process: a test compares them before and after to find a leak.
#pragma once

#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace spate::testing {

inline std::vector<int> open_fds() {
  std::vector<int> fds;
  DIR* directory = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(directory)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != ::dirfd(directory)) fds.push_back(fd);
  }
  ::closedir(directory);
  std::sort(fds.begin(), fds.end());
  return fds;
}

}  // namespace spate::testing
