#include "base/array.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <utility>

namespace spate {
namespace {

TEST(Array, KeepsItsElementsWhileItGrows) {
  Array<int> array;
  EXPECT_TRUE(array.empty());
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(array.push(i));
  EXPECT_EQ(array.size(), 1000u);
  int expected = 0;
  for (const int value : array) EXPECT_EQ(value, expected++);
  EXPECT_EQ(array.back(), 999);
  array.pop();
  EXPECT_EQ(array.back(), 998);
}

TEST(Array, AllocatesNothingWithinReservedCapacity) {
  Array<int> array;
  ASSERT_TRUE(array.reserve(100));
  FaultPlan plan;
  const FaultScope scope(plan);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(array.push(i));
  EXPECT_TRUE(array.reserve(5));
  EXPECT_EQ(plan.calls(SystemCall::allocate), 0u);
}

TEST(Array, GrowsInSteps) {
  Array<int> array;
  FaultPlan plan;
  const FaultScope scope(plan);
  for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(array.push(i));
  EXPECT_LE(plan.calls(SystemCall::allocate), 20u);
}

TEST(Array, ReservesExactlyRequestedCapacity) {
  Array<int> array;
  ASSERT_TRUE(array.reserve_exactly(5000));
  EXPECT_EQ(array.capacity(), 5000u);
  ASSERT_TRUE(array.reserve_exactly(10));
  EXPECT_EQ(array.capacity(), 5000u);
  EXPECT_EQ(Array<int>::with_reserve(5), 8u);
  EXPECT_EQ(Array<int>::with_reserve(8000), 9000u);
}

TEST(Array, ReservesMoreWhenLargeAndEmpty) {
  Array<int> array;
  ASSERT_TRUE(array.reserve_exactly(100'000));
  {
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, 1, ENOMEM, 1);
    const FaultScope scope(plan);
    EXPECT_FALSE(array.reserve_exactly(200'000));
  }
  EXPECT_EQ(array.capacity(), 100'000u);
  ASSERT_TRUE(array.reserve_exactly(200'000));
  EXPECT_TRUE(array.empty());
  for (int i = 0; i < 200'000; ++i) array.push_reserved(i);
  EXPECT_EQ(array.back(), 199'999);
  EXPECT_EQ(array[0], 0);
}

TEST(Array, IsUnchangedWhenMemoryRunsOut) {
  Array<int> array;
  while (array.size() < array.capacity() || array.empty()) ASSERT_TRUE(array.push(7));
  const std::size_t size = array.size();
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, 1, ENOMEM, 3);
  const FaultScope scope(plan);
  EXPECT_FALSE(array.push(8));
  EXPECT_FALSE(array.reserve(10 * size));
  EXPECT_FALSE(array.grow_with_zeros(10 * size));
  EXPECT_EQ(array.size(), size);
  for (const int value : array) EXPECT_EQ(value, 7);
  EXPECT_TRUE(array.push(8));
}

TEST(Array, RefusesSizeThatOverflows) {
  Array<std::uint64_t> array;
  EXPECT_FALSE(array.reserve(SIZE_MAX / 4));
  EXPECT_EQ(array.capacity(), 0u);
}

TEST(Array, ZeroFillsNewElements) {
  Array<int> array;
  ASSERT_TRUE(array.push(5));
  ASSERT_TRUE(array.push(6));
  array.pop();
  ASSERT_TRUE(array.grow_with_zeros(50));
  EXPECT_EQ(array[0], 5);
  for (std::size_t i = 1; i < 50; ++i) EXPECT_EQ(array[i], 0);
}

TEST(Array, TransfersItsMemoryWhenMoved) {
  Array<int> first;
  ASSERT_TRUE(first.push(1));
  Array<int> second(std::move(first));
  EXPECT_EQ(second.size(), 1u);
  Array<int> third;
  third = std::move(second);
  EXPECT_EQ(third[0], 1);
  third.clear();
  EXPECT_TRUE(third.empty());
}

}  // namespace
}  // namespace spate
