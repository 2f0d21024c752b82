#include "core/kept_memory.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/memory.h"

namespace spate::testing {
namespace {

void* filled(std::size_t bytes) {
  void* const memory = take_memory(bytes);
  if (memory != nullptr) std::memset(memory, 1, bytes);
  return memory;
}

TEST(KeptMemory, ReusesFreedBlockOfSameSize) {
  KeptMemory kept;
  kept.open();
  char* const small = static_cast<char*>(std::malloc(KeptMemory::room_for(1)));
  char* const large = static_cast<char*>(std::malloc(KeptMemory::room_for(2000)));
  EXPECT_TRUE(kept.keep(small, 1));
  EXPECT_TRUE(kept.keep(large, 2000));
  EXPECT_EQ(kept.find(1000), nullptr);
  EXPECT_EQ(kept.find(2008), large);
  EXPECT_EQ(kept.find(2008), nullptr);
  EXPECT_EQ(kept.find(8), small);
  EXPECT_TRUE(kept.keep(small, 0));
  EXPECT_EQ(kept.find(0), small);
  std::free(small);
  std::free(large);
}

TEST(KeptMemory, IsLimitedInSize) {
  KeptMemory kept;
  kept.open();
  std::size_t count = 0;
  for (;; ++count) {
    void* const memory = std::malloc(KeptMemory::kLargest);
    if (kept.keep(memory, KeptMemory::kLargest)) continue;
    EXPECT_FALSE(kept.keep(memory, KeptMemory::kLargest + 1));
    std::free(memory);
    break;
  }
  EXPECT_EQ(count, KeptMemory::kMost / KeptMemory::kLargest);
  kept.close();
  EXPECT_EQ(kept.find(KeptMemory::kLargest), nullptr);
  void* const memory = std::malloc(KeptMemory::kLargest);
  EXPECT_FALSE(kept.keep(memory, KeptMemory::kLargest));
  std::free(memory);
}

#ifndef SPATE_ADDRESS_SANITIZER  // With it, nothing is kept.
TEST(KeptMemory, IsCachedByThreadThatFreesIt) {
  void* const memory = filled(100);
  std::thread([memory] {
    give_memory(filled(100), 100);  // From now on.
    give_memory(memory, 100);
    EXPECT_EQ(filled(100), memory);
    give_memory(memory, 100);
  }).join();  // Which frees it.
}
#endif

TEST(KeptMemory, ReportsThatMemoryRanOut) {
  for (const std::size_t bytes : {std::size_t{1}, KeptMemory::kLargest + 1}) {
    give_memory(filled(bytes), bytes);
    FaultPlan plan;
    plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
    const FaultScope scope(plan);
    EXPECT_EQ(take_memory(bytes), nullptr);
  }
}

}  // namespace
}  // namespace spate::testing
