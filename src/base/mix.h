// A number that looks random, of another: what is drawn by its place and a seed does not depend on
// what else is drawn.
#pragma once

#include <cstdint>

namespace spate {

// splitmix64.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace spate
