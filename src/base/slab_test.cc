#include "base/slab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <set>
#include <vector>

namespace spate {
namespace {

struct Thing {
  std::uint64_t words[5];
};

TEST(Slab, GivesEachItsOwnMemory) {
  Slab<Thing> slab;
  std::vector<std::uintptr_t> places;
  for (int i = 0; i < 1000; ++i) places.push_back(reinterpret_cast<std::uintptr_t>(slab.take()));
  std::ranges::sort(places);
  for (std::size_t i = 1; i < places.size(); ++i)
    EXPECT_GE(places[i] - places[i - 1], sizeof(Thing));
  for (const std::uintptr_t place : places) EXPECT_EQ(place % alignof(Thing), 0u);
}

TEST(Slab, KeepsWhatIsGivenBackForTheNext) {
  Slab<Thing> slab;
  std::set<void*> first;
  for (int i = 0; i < 640; ++i) first.insert(slab.take());
  for (void* place : first) slab.give_back(place);
  for (int i = 0; i < 640; ++i) EXPECT_TRUE(first.contains(slab.take()));
}

TEST(Slab, SaysWhenThereIsNoMemory) {
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
