// Results in the convention of system calls.
#pragma once

#include <cerrno>

namespace spate::sim {

// Converts a negated errno to -1, and sets errno.
inline long returned(long result) {
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}
inline int returned_int(long result) { return static_cast<int>(returned(result)); }

}  // namespace spate::sim
