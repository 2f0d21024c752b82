// Seeds of random tests. In the environment SPATE_SEED=<number> repeats one alone, and
// SPATE_SEEDS=<number> has that many run.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace spate::testing {

inline std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (const char* wanted = std::getenv("SPATE_SEED")) return {std::strtoull(wanted, nullptr, 10)};
  if (const char* wanted = std::getenv("SPATE_SEEDS")) count = std::strtoull(wanted, nullptr, 10);
  std::vector<std::uint64_t> all;
  for (std::uint64_t seed = 1; seed <= count; ++seed) all.push_back(seed);
  return all;
}

}  // namespace spate::testing
