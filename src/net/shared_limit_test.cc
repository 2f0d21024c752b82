#include "net/shared_limit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace spate {
namespace {

TEST(SharedLimit, IsReachedByTheLastThatThereIsRoomFor) {
  SharedLimit limit(2);
  EXPECT_FALSE(limit.enter());
  EXPECT_TRUE(limit.enter());
  EXPECT_TRUE(limit.enter());  // Another thread may not have known.
}

TEST(SharedLimit, WakesThoseWhoRestOnceThereIsRoom) {
  SharedLimit limit(2);
  limit.enter();
  limit.enter();
  limit.enter();
  EXPECT_FALSE(limit.leave());
  EXPECT_TRUE(limit.leave());
  EXPECT_FALSE(limit.leave());  // They have been told.
}

TEST(SharedLimit, WakesNobodyWhileNobodyRests) {
  SharedLimit limit(3);
  limit.enter();
  limit.enter();
  EXPECT_FALSE(limit.rests_on());
  EXPECT_FALSE(limit.leave());
  limit.enter();
  EXPECT_TRUE(limit.enter());
  EXPECT_TRUE(limit.leave());
  EXPECT_FALSE(limit.rests_on());
  EXPECT_FALSE(limit.leave());
}

TEST(SharedLimit, WakesThoseAgainWhoHaveComeInVain) {
  SharedLimit limit(1);
  limit.enter();
  EXPECT_TRUE(limit.leave());
  limit.enter();
  EXPECT_TRUE(limit.rests_on());
  EXPECT_TRUE(limit.leave());
}

TEST(SharedLimit, HasNoRoomForAnybodyIfItIsZero) {
  SharedLimit limit(0);
  EXPECT_TRUE(limit.rests_on());
  EXPECT_TRUE(limit.enter());
  EXPECT_FALSE(limit.leave());
}

// One thread enters, as one that accepts does, and rests when it is told to; at the same moment
// another has somebody leave, so that there always is room in the end. The phases vary.
TEST(SharedLimit, LosesNoWakeUpBetweenThreads) {
  constexpr std::uint64_t kRounds = 200'000;
  SharedLimit limit(3);
  std::atomic<std::uint64_t> entering{0};
  std::atomic<std::uint64_t> wake_ups{0};
  std::thread leaver([&] {
    for (std::uint64_t left = 0; left + 2 < kRounds; ++left) {
      while (entering.load() < left + 3) {
      }
      for (std::uint64_t i = left % 64; i > 0; --i)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      if (limit.leave()) wake_ups.fetch_add(1);
    }
  });
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::uint64_t rests = 0;
  bool is_lost = false;
  for (std::uint64_t i = 0; i < kRounds && !is_lost; ++i) {
    entering.store(i + 1);
    if (limit.enter()) ++rests;
    while (wake_ups.load() < rests && std::chrono::steady_clock::now() < late) {
    }
    is_lost = wake_ups.load() < rests;
  }
  entering.store(kRounds);
  leaver.join();
  EXPECT_FALSE(is_lost);
}

}  // namespace
}  // namespace spate
