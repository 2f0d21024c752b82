// Unpredictable random bytes.
#pragma once

#include <unistd.h>
#if defined(__linux__) || defined(__APPLE__)
#include <sys/random.h>
#endif

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <expected>
#include <span>
#include <string>
#include <system_error>

#include "base/fault.h"
#include "base/hex.h"
#include "sys/clock.h"
#include "sys/descriptor.h"

namespace spate::sys {

// Fills at most 256 bytes, which the kernel never fills partially. Returns 0, or a negated errno.
inline long random_bytes(std::span<std::byte> bytes) {
  if (const int error = injected(SystemCall::random)) return -error;
#ifdef __linux__
  const long count = result_of(::getrandom(bytes.data(), bytes.size(), 0));
  return count < 0 ? count : 0;
#else
  return result_of(::getentropy(bytes.data(), bytes.size()));
#endif
}

// Returns the digits of `size` random bytes, for a name that cannot be guessed. Errors: the
// kernel's, if it has no random bytes.
template <std::size_t size>
std::expected<std::string, std::error_code> random_hex() {
  std::array<std::byte, size> bytes;
  if (const long result = random_bytes(bytes); result < 0)
    return std::unexpected(error_code(result));
  return hex(bytes);
}

// Returns a random number, or the time if there are no random bytes. For numbers that need not be
// secret.
inline std::uint64_t random_seed() {
  std::array<std::byte, sizeof(std::uint64_t)> bytes;
  if (random_bytes(bytes) == 0) return std::bit_cast<std::uint64_t>(bytes);
  return static_cast<std::uint64_t>(read_clock(CLOCK_MONOTONIC).count());
}

}  // namespace spate::sys
