#include "base/slab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <set>
#include <vector>

#include "tests/support/random.h"

namespace spate {
namespace {

struct Thing {
  std::uint64_t words[5];
};

TEST(Slab, AllocatesDistinctBlocks) {
  Slab<Thing> slab;
  std::vector<std::uintptr_t> places;
  for (int i = 0; i < 1000; ++i) places.push_back(reinterpret_cast<std::uintptr_t>(slab.take()));
  std::ranges::sort(places);
  for (std::size_t i = 1; i < places.size(); ++i)
    EXPECT_GE(places[i] - places[i - 1], sizeof(Thing));
  for (const std::uintptr_t place : places) EXPECT_EQ(place % alignof(Thing), 0u);
}

TEST(Slab, ReusesFreedBlocks) {
  Slab<Thing> slab;
  std::set<void*> first;
  for (int i = 0; i < 640; ++i) first.insert(slab.take());
  for (void* place : first) slab.give_back(place);
  for (int i = 0; i < 640; ++i) EXPECT_TRUE(first.contains(slab.take()));
}

TEST(Slab, FreesMemoryWhenFewBlocksRemain) {
  Slab<Thing> slab;
  std::vector<void*> places;
  for (int i = 0; i < 100'000; ++i) places.push_back(slab.take());
  EXPECT_GE(slab.capacity(), 100'000u);
  for (int i = 0; i < 100'000; ++i) slab.give_back(places[static_cast<std::size_t>(i)]);
  EXPECT_LE(slab.capacity(), 2000u);
}

TEST(Slab, KeepsItsCapacityUnderSteadyUse) {
  Slab<Thing> slab;
  std::vector<void*> places;
  for (int i = 0; i < 10'000; ++i) places.push_back(slab.take());
  const std::size_t capacity = slab.capacity();
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 4000; ++i) slab.give_back(places[static_cast<std::size_t>(i)]);
    for (int i = 0; i < 4000; ++i) places[static_cast<std::size_t>(i)] = slab.take();
  }
  EXPECT_EQ(slab.capacity(), capacity);
}

// Compares with a set of the places in use: no place is given out twice or changed while in use.
TEST(Slab, KeepsBlocksDistinctOverRandomOperations) {
  testing::Random random(1);
  Slab<Thing> slab;
  std::vector<Thing*> used;
  std::uint64_t number = 0;
  for (int phase = 0; phase < 20; ++phase) {
    const std::size_t wanted = random.below(8000);
    while (used.size() < wanted) {
      used.push_back(new (slab.take()) Thing{{++number, 0, 0, 0, number}});
    }
    while (used.size() > wanted) {
      std::swap(used[random.below(used.size())], used.back());
      EXPECT_EQ(used.back()->words[0], used.back()->words[4]);
      slab.give_back(used.back());
      used.pop_back();
    }
    std::set<std::uint64_t> numbers;
    for (const Thing* thing : used) EXPECT_TRUE(numbers.insert(thing->words[0]).second);
    EXPECT_GE(slab.capacity(), used.size());
    slab.for_each([&](Thing& shown) { EXPECT_EQ(numbers.erase(shown.words[0]), 1u); });
    EXPECT_TRUE(numbers.empty()) << "those in use, each once, and no others";
  }
}

TEST(Slab, ReportsThatMemoryRanOut) {
  Slab<Thing> slab;
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, 1, ENOMEM, 2);
  const FaultScope scope(plan);
  EXPECT_EQ(slab.take(), nullptr);
  EXPECT_EQ(slab.take(), nullptr);
  EXPECT_NE(slab.take(), nullptr);
}

}  // namespace
}  // namespace spate
