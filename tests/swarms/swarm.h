// A program in many Worlds, by seed.
//
//   SPATE_SWARM(AnAnswerIsThatToItsCall, 1000, play_http)
//
// defines a test of so many Worlds in optimized builds, and of a tenth of them in others, where
// each takes ten times as long: those do not check sometimes(). SPATE_SEEDS sets another number.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <vector>

#include "spate/sim/explore.h"

namespace spate::testing {

using SwarmProgram = std::function<void(sim::World&)>;

#ifdef NDEBUG
constexpr std::uint64_t kSwarmShare = 1;
#else
constexpr std::uint64_t kSwarmShare = 10;
#endif

// The number of Worlds for each swarm of this executable, where all are run.
inline std::vector<std::uint64_t>& swarm_sizes() {
  static std::vector<std::uint64_t> sizes;
  return sizes;
}

inline void explore_swarm(std::uint64_t seeds, const SwarmProgram& program) {
  sim::Exploration found = sim::explore(1, seeds / kSwarmShare, program);
  if (kSwarmShare != 1) found.never.clear();
  EXPECT_TRUE(found) << found.report();
  EXPECT_GT(found.seeds, 0u);
  if (std::getenv("SPATE_SEEDS") == nullptr) return;
  // For the ledger of tools/night.
  const char* name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::printf("swarm: %s %llu seeds, %llu faults, %.3f hours\n", name,
              static_cast<unsigned long long>(found.seeds),
              static_cast<unsigned long long>(found.all_faults),
              static_cast<double>(found.all_time.count()) / 3.6e12);
}

// Runs a program with a deliberate bug, which must be found within so many Worlds.
inline void expect_found(std::uint64_t seeds, std::string_view what, const SwarmProgram& program) {
  if (std::getenv("SPATE_SEEDS") != nullptr || std::getenv("SPATE_SEED") != nullptr) return;
  const sim::Exploration found = sim::explore({.seeds = seeds, .shrink_runs = 0}, program);
  EXPECT_EQ(found.failure, what) << found.report();
}

}  // namespace spate::testing

#define SPATE_SWARM(name, seeds, program)                                                   \
  const auto name##Size =                                                                   \
      ::spate::testing::swarm_sizes().insert(::spate::testing::swarm_sizes().end(), seeds); \
  TEST(SimSwarm, name) { ::spate::testing::explore_swarm(seeds, program); }
