// Hashes that look random, and that are the same on all machines. A value drawn from a position and
// a seed does not depend on other draws.
#pragma once

#include <cstdint>
#include <string_view>

namespace spate {

// Mixes the bits of a number (splitmix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Returns the FNV-1a hash of a text.
constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return value;
}

// Returns a number of [0, 1) that looks random.
constexpr double share(std::uint64_t x) { return static_cast<double>(mix(x) >> 11) * 0x1p-53; }

}  // namespace spate
