// Seeds of random tests. In the environment SPATE_SEED=<number> repeats one alone,
// SPATE_SEEDS=<number> runs that many, SPATE_SEEDS=<first>..<last> runs those, as in Worlds.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string_view>
#include <vector>

namespace spate::testing {

// Aborts on an empty range, which would make a test pass without running.
inline std::vector<std::uint64_t> seeds_from(std::uint64_t first, std::uint64_t last) {
  if (last < first) std::abort();
  std::vector<std::uint64_t> all(last - first + 1);
  std::iota(all.begin(), all.end(), first);
  return all;
}

inline std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (const char* wanted = std::getenv("SPATE_SEED")) return {std::strtoull(wanted, nullptr, 10)};
  const char* wanted = std::getenv("SPATE_SEEDS");
  if (wanted == nullptr) return seeds_from(1, count);
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(wanted, &end, 10);
  if (!std::string_view(end).starts_with("..")) return seeds_from(1, number);
  return seeds_from(number, std::strtoull(end + 2, nullptr, 10));
}

}  // namespace spate::testing
