// A hash of a number that looks random. A value drawn from a position and a seed does not depend on
// other draws.
#pragma once

#include <cstdint>

namespace spate {

// Mixes the bits of a number (splitmix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Returns a number of [0, 1) that looks random.
constexpr double share(std::uint64_t x) { return static_cast<double>(mix(x) >> 11) * 0x1p-53; }

}  // namespace spate
