// Results as the system's calls return them.
#pragma once

#include <cerrno>

namespace spate::sim {

// A negated errno becomes -1, and errno is set.
inline long returned(long result) {
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}
inline int returned_int(long result) { return static_cast<int>(returned(result)); }

}  // namespace spate::sim
