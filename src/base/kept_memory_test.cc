#include "base/kept_memory.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "base/fault.h"

namespace spate::testing {
namespace {

// One that frees what it keeps.
struct Own {
  KeptMemory kept;
  std::optional<KeptMemory::UntilEnd> until_end{kept};

  void* filled(std::size_t bytes) {
    void* const memory = kept.take(bytes);
    if (memory != nullptr) std::memset(memory, 1, bytes);
    return memory;
  }
};

TEST(KeptMemory, GivesAgainWhatWasGivenBackOfThatSize) {
  Own own;
  void* const small = own.filled(1);
  void* const large = own.filled(2000);
  own.kept.give_back(small, 1);
  own.kept.give_back(large, 2000);
  EXPECT_EQ(own.filled(1990), large);
  EXPECT_EQ(own.filled(32), small);
  void* const none = own.filled(0);
  EXPECT_NE(none, small);
  own.kept.give_back(none, 0);
  own.kept.give_back(small, 32);
  own.kept.give_back(large, 1990);
}

TEST(KeptMemory, KeepsNoMoreThanSoMuch) {
  Own own;
  std::vector<void*> all(1000);
  for (void*& each : all) each = own.filled(KeptMemory::kLargest);
  for (void* each : all) own.kept.give_back(each, KeptMemory::kLargest);
  void* const larger = own.filled(KeptMemory::kLargest + 1);
  own.kept.give_back(larger, KeptMemory::kLargest + 1);
  FaultPlan plan;
  plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
  const FaultScope scope(plan);
  EXPECT_EQ(own.filled(KeptMemory::kLargest + 1), nullptr);
}

TEST(KeptMemory, KeepsNothingBehindTheEnd) {
  Own own;
  own.kept.give_back(own.filled(100), 100);
  own.until_end.reset();
  own.kept.give_back(own.filled(100), 100);  // Or a leak is found.
}

}  // namespace
}  // namespace spate::testing
