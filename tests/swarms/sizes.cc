#include <gtest/gtest.h>

#include <numeric>

#include "swarms/swarm.h"

namespace spate::testing {
namespace {

TEST(Swarms, RunTenThousandWorlds) {
  const auto& sizes = swarm_sizes();
  EXPECT_GE(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}), 10'000u);
}

}  // namespace
}  // namespace spate::testing
