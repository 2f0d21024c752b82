#include "net/stream/throttle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace spate {
namespace {

constexpr std::int64_t kStart = 1'000'000'000'000;
constexpr std::int64_t kNanoseconds = 1'000'000'000;  // In a second.

// Uses the whole allowance from `start` until `end`, and checks again when the throttle says so.
// Returns the number of bytes.
std::uint64_t use_all(Throttle& throttle, std::int64_t start, std::int64_t end) {
  std::uint64_t used = 0;
  for (std::int64_t now = start; now < end;) {
    const std::size_t max = throttle.allowance(Throttle::kRead, now);
    throttle.used(Throttle::kRead, max);
    used += max;
    if (max == 0) now = throttle.opens_at(Throttle::kRead);
  }
  return used;
}

TEST(ThrottleTest, ThrottleWithoutLimitsAllowsEverything) {
  Throttle throttle;
  EXPECT_FALSE(throttle.has_limits());
  EXPECT_EQ(throttle.allowance(Throttle::kRead, kStart), SIZE_MAX);
  throttle.set_limits({.read = {.bytes_per_second = 1000}, .write = {}});
  EXPECT_TRUE(throttle.has_limits());
  EXPECT_EQ(throttle.allowance(Throttle::kWrite, kStart), SIZE_MAX);
}

TEST(ThrottleTest, BurstIsAvailableAtOnceFollowedByRate) {
  Throttle throttle;
  throttle.set_limits({.read = {.bytes_per_second = 10'000, .burst = 800}, .write = {}});
  EXPECT_EQ(use_all(throttle, kStart, kStart + 1), 800u);
  const std::uint64_t used = use_all(throttle, kStart + 1, kStart + kNanoseconds);
  EXPECT_GE(used, 9'900u);
  EXPECT_LE(used, 10'000u);
}

TEST(ThrottleTest, UnusedAllowanceIsLimitedToBurst) {
  Throttle throttle;
  throttle.set_limits({.read = {.bytes_per_second = 10'000, .burst = 800}, .write = {}});
  use_all(throttle, kStart, kStart + kNanoseconds);
  const std::uint64_t used =
      use_all(throttle, kStart + 100 * kNanoseconds, kStart + 100 * kNanoseconds + 1);
  EXPECT_GE(used, 800u - 100u);
  EXPECT_LE(used, 800u + 100u);
}

TEST(ThrottleTest, RateIsKeptWhenAllowancesArePartlyUsed) {
  std::mt19937 random(1);
  Throttle throttle;
  throttle.set_limits({.read = {.bytes_per_second = 50'000, .burst = 4'000}, .write = {}});
  std::uint64_t used = 0;
  for (std::int64_t now = kStart; now < kStart + 10 * kNanoseconds;) {
    const std::size_t max =
        std::min<std::size_t>(throttle.allowance(Throttle::kRead, now), random() % 700 + 1);
    throttle.used(Throttle::kRead, max);
    used += max;
    if (max == 0) now = throttle.opens_at(Throttle::kRead);
  }
  EXPECT_GE(used, 500'000u);
  EXPECT_LE(used, 504'500u);
}

TEST(ThrottleTest, SharesGroupsRateEvenly) {
  RateGroup group({.read = {.bytes_per_second = 100'000, .burst = 8'000}, .write = {}});
  Throttle members[5];
  std::uint64_t used[5] = {};
  std::int64_t looks[5];
  for (Throttle& member : members) member.join(&group);
  EXPECT_EQ(group.members(), 5u);
  std::fill(std::begin(looks), std::end(looks), kStart);
  for (;;) {  // The member that is due next uses its allowance.
    const std::size_t i = std::size_t(std::min_element(looks, looks + 5) - looks);
    if (looks[i] >= kStart + 10 * kNanoseconds) break;
    const std::size_t max = members[i].allowance(Throttle::kRead, looks[i]);
    members[i].used(Throttle::kRead, max);
    used[i] += max;
    if (max == 0) looks[i] = members[i].opens_at(Throttle::kRead);
  }
  for (const std::uint64_t bytes : used) {
    EXPECT_GE(bytes, 198'000u);
    EXPECT_LE(bytes, 203'000u + 8'000u);
  }
}

TEST(ThrottleTest, StricterOfOwnAndGroupLimitsApplies) {
  RateGroup group({.read = {.bytes_per_second = 100'000, .burst = 8'000}, .write = {}});
  Throttle throttle;
  throttle.join(&group);
  throttle.set_limits({.read = {.bytes_per_second = 1'000, .burst = 100}, .write = {}});
  const std::uint64_t used = use_all(throttle, kStart, kStart + 10 * kNanoseconds);
  EXPECT_GE(used, 9'900u);
  EXPECT_LE(used, 10'200u);
}

TEST(ThrottleTest, DestroyedGroupLeavesItsMembersUnlimited) {
  Throttle throttle;
  {
    RateGroup group({.read = {.bytes_per_second = 10, .burst = 10}, .write = {}});
    throttle.join(&group);
    EXPECT_LT(throttle.allowance(Throttle::kRead, kStart), 11u);
  }
  EXPECT_FALSE(throttle.has_limits());
  EXPECT_EQ(throttle.allowance(Throttle::kRead, kStart), SIZE_MAX);
}

TEST(ThrottleTest, DestroyedMemberReturnsItsUnusedAllowance) {
  RateGroup group({.read = {.bytes_per_second = 1'000, .burst = 800}, .write = {}});
  Throttle stays;
  stays.join(&group);
  for (int i = 0; i < 100; ++i) {
    Throttle goes;
    goes.join(&group);
    EXPECT_EQ(goes.allowance(Throttle::kRead, kStart), 100u);
  }
  EXPECT_EQ(group.members(), 1u);
  EXPECT_EQ(use_all(stays, kStart, kStart + 1), 800u);
}

TEST(ThrottleTest, ExtremeRatesAreAccepted) {
  Throttle slowest;
  slowest.set_limits({.read = {.bytes_per_second = 1}, .write = {}});
  EXPECT_EQ(use_all(slowest, kStart, kStart + 10 * kNanoseconds), 10u);
  Throttle fastest;
  fastest.set_limits({.read = {.bytes_per_second = UINT64_MAX, .burst = SIZE_MAX}, .write = {}});
  EXPECT_EQ(fastest.allowance(Throttle::kRead, kStart), SIZE_MAX);
  Throttle fast;
  fast.set_limits({.read = {.bytes_per_second = 8'000'000'000, .burst = SIZE_MAX}, .write = {}});
  EXPECT_EQ(fast.allowance(Throttle::kRead, kStart), 64u * 1024);
}

TEST(ThrottleTest, ChangedLimitsReturnUnusedAllowance) {
  RateGroup group({.read = {.bytes_per_second = 1'000, .burst = 800}, .write = {}});
  Throttle changes;
  Throttle stays;
  changes.join(&group);
  stays.join(&group);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(changes.allowance(Throttle::kRead, kStart), 100u);
    changes.set_limits({});
  }
  EXPECT_EQ(use_all(stays, kStart, kStart + 1), 800u);
}

TEST(ThrottleTest, JoiningMemberUsesOnlyGroupAllowance) {
  RateGroup group({.read = {.bytes_per_second = 1'000, .burst = 80}, .write = {}});
  Throttle throttle;
  throttle.set_limits({.read = {.bytes_per_second = 10'000, .burst = 800}, .write = {}});
  EXPECT_EQ(throttle.allowance(Throttle::kRead, kStart), 100u);
  throttle.join(&group);
  EXPECT_EQ(use_all(throttle, kStart, kStart + 1), 80u);
}

TEST(ThrottleTest, AllowanceIsSmallerOfOwnAndGroup) {
  RateGroup group({.read = {.bytes_per_second = 100'000, .burst = 80'000}, .write = {}});
  Throttle throttle;
  throttle.set_limits({.read = {.bytes_per_second = 1'000, .burst = 800}, .write = {}});
  throttle.join(&group);
  EXPECT_EQ(throttle.allowance(Throttle::kRead, kStart), 100u);
}

TEST(ThrottleTest, WaitIsShortenedWhenGroupLimitsChange) {
  RateGroup group({.read = {.bytes_per_second = 1, .burst = 8}, .write = {}});
  Throttle throttle;
  throttle.join(&group);
  EXPECT_EQ(use_all(throttle, kStart, kStart + 1), 8u);
  EXPECT_GE(throttle.opens_at(Throttle::kRead), kStart + kNanoseconds);
  group.set_limits({.read = {.bytes_per_second = 1'000'000, .burst = 8'000}, .write = {}});
  EXPECT_GT(use_all(throttle, kStart, kStart + kNanoseconds / 100), 8'000u);
}

TEST(ThrottleTest, MemberCanMoveBetweenGroups) {
  RateGroup first({.read = {.bytes_per_second = 1'000, .burst = 800}, .write = {}});
  RateGroup second({});
  Throttle members[3];
  for (Throttle& member : members) member.join(&first);
  members[1].join(&second);
  members[1].join(nullptr);
  EXPECT_EQ(first.members(), 2u);
  EXPECT_EQ(second.members(), 0u);
  // The group still has the remaining members: it takes back their allowances.
  EXPECT_EQ(members[0].allowance(Throttle::kRead, kStart), 100u);
  EXPECT_EQ(members[2].allowance(Throttle::kRead, kStart), 100u);
  first.set_limits({.read = {.bytes_per_second = 1'000, .burst = 80}, .write = {}});
  EXPECT_EQ(members[0].allowance(Throttle::kRead, kStart), 10u);
  EXPECT_EQ(members[2].allowance(Throttle::kRead, kStart), 10u);
}

}  // namespace
}  // namespace spate
