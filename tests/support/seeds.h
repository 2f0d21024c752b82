// Seeds of random tests. In the environment SPATE_SEED=<number> repeats one alone, and SPATE_SEEDS
// says which are run: so many from 1 on, or those from the first to the last, "5..24".
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace spate::testing {

inline std::vector<std::uint64_t> seeds(std::uint64_t count) {
  const auto number = [](const char* text) { return std::strtoull(text, nullptr, 10); };
  if (const char* wanted = std::getenv("SPATE_SEED")) return {number(wanted)};
  std::uint64_t first = 1;
  std::uint64_t last = count;
  if (const char* wanted = std::getenv("SPATE_SEEDS")) {
    const std::size_t dots = std::string_view(wanted).find("..");
    last = number(dots == std::string_view::npos ? wanted : wanted + dots + 2);
    if (dots != std::string_view::npos) first = number(wanted);
  }
  std::vector<std::uint64_t> all;
  for (std::uint64_t seed = first; seed <= last; ++seed) all.push_back(seed);
  return all;
}

}  // namespace spate::testing
