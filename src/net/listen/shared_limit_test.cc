#include "net/listen/shared_limit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace spate {
namespace {

TEST(SharedLimit, IsReachedByLastAdmittedEntry) {
  SharedLimit limit(2);
  EXPECT_FALSE(limit.enter());
  EXPECT_TRUE(limit.enter());
  EXPECT_TRUE(limit.enter());  // Another thread may have read the count earlier.
}

TEST(SharedLimit, WakesWaitersWhenThereIsRoom) {
  SharedLimit limit(2);
  limit.enter();
  limit.enter();
  limit.enter();
  EXPECT_FALSE(limit.leave());
  EXPECT_TRUE(limit.leave());
  EXPECT_FALSE(limit.leave());  // The waiting threads have already been notified.
}

TEST(SharedLimit, SendsNoWakeupWithoutWaiters) {
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

TEST(SharedLimit, WakesWaitersAgainAfterFailedEntry) {
  SharedLimit limit(1);
  limit.enter();
  EXPECT_TRUE(limit.leave());
  limit.enter();
  EXPECT_TRUE(limit.rests_on());
  EXPECT_TRUE(limit.leave());
}

TEST(SharedLimit, HasNoRoomIfZero) {
  SharedLimit limit(0);
  EXPECT_TRUE(limit.rests_on());
  EXPECT_TRUE(limit.enter());
  EXPECT_FALSE(limit.leave());
}

// Spins, and yields the processor from time to time. Returns false after 20 seconds.
template <class Condition>
bool wait_for(Condition condition) {
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (int spins = 1; !condition(); ++spins) {
    if (spins % 256 != 0) continue;
    if (std::chrono::steady_clock::now() > late) return false;
    std::this_thread::yield();
  }
  return true;
}

// One thread enters, as a thread that accepts does, and rests when enter() asks for it. At the same
// moment another thread leaves, so that in the end there is always room. The phases vary.
TEST(SharedLimit, LosesNoWakeUpBetweenThreads) {
  constexpr std::uint64_t kRounds = 200'000;
  SharedLimit limit(3);
  std::atomic<std::uint64_t> entering{0};
  std::atomic<std::uint64_t> wake_ups{0};
  std::atomic<bool> is_over{false};
  std::thread leaver([&] {
    for (std::uint64_t left = 0; !is_over; ++left) {
      while (!wait_for([&] { return entering.load() >= left + 3 || is_over; })) {
      }
      for (std::uint64_t i = left % 64; i > 0; --i)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      if (!is_over && limit.leave()) wake_ups.fetch_add(1);
    }
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  std::uint64_t rests = 0;
  bool is_lost = false;
  for (std::uint64_t i = 0; i < kRounds && !is_lost; ++i) {
    entering.store(i + 1);
    if (limit.enter()) ++rests;
    is_lost = !wait_for([&] { return wake_ups.load() == rests; });
    if (i % 1024 == 0 && std::chrono::steady_clock::now() > end) break;
  }
  is_over = true;
  leaver.join();
  EXPECT_FALSE(is_lost);
}

}  // namespace
}  // namespace spate
