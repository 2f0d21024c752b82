#include "sys/random.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <ctime>
#include <string>

#include "base/fault.h"

namespace spate::sys {
namespace {

TEST(Random, HexDigitsHaveTwiceSizeAndDiffer) {
  const auto first = random_hex<16>();
  const auto second = random_hex<16>();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->size(), 32u);
  EXPECT_EQ(first->find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(*first, *second);
}

TEST(Random, HexDigitsFailWithoutRandomBytes) {
  FaultPlan plan;
  plan.fail_nth(SystemCall::random, 1, ENOSYS);
  const FaultScope scope(plan);
  const auto text = random_hex<8>();
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error(), std::errc::function_not_supported);
}

TEST(Random, SeedIsTimeWithoutRandomBytes) {
  FaultPlan plan;
  plan.fail_nth(SystemCall::random, 1, ENOSYS);
  const FaultScope scope(plan);
  const auto before = static_cast<std::uint64_t>(read_clock(CLOCK_MONOTONIC).count());
  const std::uint64_t seed = random_seed();
  const auto after = static_cast<std::uint64_t>(read_clock(CLOCK_MONOTONIC).count());
  EXPECT_LE(before, seed);
  EXPECT_LE(seed, after);
  EXPECT_NE(random_seed(), random_seed());
}

}  // namespace
}  // namespace spate::sys
