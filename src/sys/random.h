// Unpredictable random bytes.
#pragma once

#include <sys/random.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
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

// Returns a random number, or `fallback` if there are no random bytes. For numbers that need not be
// secret.
inline std::uint64_t random_seed(std::uint64_t fallback) {
  std::array<std::byte, sizeof(fallback)> bytes;
  return random_bytes(bytes) == 0 ? std::bit_cast<std::uint64_t>(bytes) : fallback;
}

}  // namespace spate::sys
