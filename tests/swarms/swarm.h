// A program in many Worlds, by seed.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "spate/sim/explore.h"

namespace spate::testing {

// So many Worlds; or as SPATE_SEEDS says, with a line for who keeps the books (tools/night).
inline void explore_swarm(std::uint64_t seeds, const std::function<void(sim::World&)>& program) {
  const sim::Exploration found = sim::explore(1, seeds, program);
  EXPECT_TRUE(found) << found.report();
  EXPECT_GT(found.seeds, 0u);
  if (std::getenv("SPATE_SEEDS") == nullptr) return;
  const char* name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::printf("swarm: %s %llu seeds, %llu faults, %.3f hours\n", name,
              static_cast<unsigned long long>(found.seeds),
              static_cast<unsigned long long>(found.all_faults),
              static_cast<double>(found.all_time.count()) / 3.6e12);
}

}  // namespace spate::testing
