// Destructors of tasks that are destroyed without being called.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>

#include "spate/loop.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;

// It scheduled one-shots after the loop had dropped its own, and they were never destroyed.
TEST(PostedTask, MayScheduleOneShotsOnEndingLoopInItsDestructor) {
  const auto kept = std::make_shared<int>();
  std::unique_ptr<Loop> owner = *Loop::create();
  Loop& loop = *owner;
  int destroyed = 0;
  const auto act = [&](void*) {
    ++destroyed;
    EXPECT_FALSE(loop.after(1ms, [kept] {}));
    EXPECT_TRUE(loop.defer([kept] {}));
    EXPECT_TRUE(loop.post([kept] {}));
    loop.wake();
  };
  std::shared_ptr<void> last(static_cast<void*>(nullptr), act);
  EXPECT_TRUE(loop.post([last = std::move(last)] {}));
  owner.reset();
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(kept.use_count(), 1);
}

// One-shots are destroyed after the posted tasks.
TEST(OneShot, PostsToEndingLoopInItsDestructor) {
  const auto kept = std::make_shared<int>();
  std::unique_ptr<Loop> owner = *Loop::create();
  Loop& loop = *owner;
  const auto act = [&](void*) {
    EXPECT_TRUE(loop.post([kept] {}));
    EXPECT_FALSE(loop.after(1ms, [kept] {}));
  };
  std::shared_ptr<void> last(static_cast<void*>(nullptr), act);
  EXPECT_FALSE(loop.after(10s, [last = std::move(last)] {}));
  owner.reset();
  EXPECT_EQ(kept.use_count(), 1);
}

}  // namespace
}  // namespace spate::testing
