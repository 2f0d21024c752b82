// Unpredictable random bytes.
#pragma once

#include <sys/random.h>

#include <cstddef>
#include <span>

#include "base/fault.h"
#include "sys/descriptor.h"

namespace spate::sys {

// Fills at most 256 bytes, which the kernel never fills partially. Returns 0, or a negated errno.
inline long random_bytes(std::span<std::byte> bytes) {
  if (const int error = injected(SystemCall::random)) return -error;
  const long count = result_of(::getrandom(bytes.data(), bytes.size(), 0));
  return count < 0 ? count : 0;
}

}  // namespace spate::sys
