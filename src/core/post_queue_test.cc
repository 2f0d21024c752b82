#include "core/post_queue.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "sys/fault.h"

namespace spate {
namespace {

constexpr std::size_t kNoLimit = SIZE_MAX;

TEST(PostQueue, CallsTasksOnceAndInOrder) {
  PostQueue queue;
  std::vector<int> called;
  for (int i = 0; i < 100; ++i) queue.push([&called, i] { called.push_back(i); });
  EXPECT_TRUE(called.empty());
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(queue.run(kNoLimit), 100u);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.run(kNoLimit), 0u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(called[static_cast<std::size_t>(i)], i);
}

TEST(PostQueue, SaysWhoseTaskHasToWakeTheLoop) {
  PostQueue queue;
  EXPECT_EQ(queue.push([] {}), PostQueue::Pushed::into_empty);
  EXPECT_EQ(queue.push([] {}), PostQueue::Pushed::behind_others);
  queue.run(kNoLimit);
  EXPECT_EQ(queue.push([] {}), PostQueue::Pushed::into_empty);
}

TEST(PostQueue, StopsAtItsLimitAndGoesOnInOrder) {
  PostQueue queue;
  std::vector<int> called;
  for (int i = 0; i < 10; ++i) queue.push([&called, i] { called.push_back(i); });
  EXPECT_EQ(queue.run(4), 4u);
  EXPECT_FALSE(queue.empty());
  queue.push([&called] { called.push_back(10); });
  EXPECT_EQ(queue.run(kNoLimit), 7u);
  for (int i = 0; i <= 10; ++i) EXPECT_EQ(called[static_cast<std::size_t>(i)], i);
}

TEST(PostQueue, LeavesWhatATaskPostsForTheNextTime) {
  PostQueue queue;
  int called = 0;
  queue.push([&] {
    ++called;
    queue.push([&] { ++called; });
  });
  EXPECT_EQ(queue.run(kNoLimit), 1u);
  EXPECT_EQ(called, 1);
  EXPECT_EQ(queue.run(kNoLimit), 1u);
  EXPECT_EQ(called, 2);
}

TEST(PostQueue, MayBeRunInsideATask) {
  PostQueue queue;
  std::vector<int> called;
  queue.push([&] {
    called.push_back(0);
    queue.push([&] { called.push_back(3); });
    EXPECT_EQ(queue.run(2), 2u);
    EXPECT_EQ(queue.run(kNoLimit), 1u);
  });
  queue.push([&] { called.push_back(1); });
  queue.push([&] { called.push_back(2); });
  EXPECT_EQ(queue.run(kNoLimit), 1u);
  EXPECT_EQ(called, (std::vector<int>{0, 1, 2, 3}));
}

TEST(PostQueue, DestroysTheTasksThatItNeverCalled) {
  const auto shared = std::make_shared<int>(0);
  {
    PostQueue queue;
    for (int i = 0; i < 10; ++i) queue.push([shared] { ++*shared; });
    EXPECT_EQ(queue.run(3), 3u);
    queue.push([shared] { ++*shared; });
  }
  EXPECT_EQ(*shared, 3);
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(PostQueue, DestroysEachTaskRightAfterItsCall) {
  PostQueue queue;
  auto shared = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = shared;
  queue.push([shared = std::move(shared)] {});
  queue.push([&watched] { EXPECT_TRUE(watched.expired()); });
  EXPECT_EQ(queue.run(kNoLimit), 2u);
}

TEST(PostQueue, DestroysTheTaskWhenMemoryRunsOutAndSaysSo) {
  PostQueue queue;
  const auto shared = std::make_shared<int>(0);
  // Whatever cells this thread has in stock are used up first.
  sys::FaultPlan plan;
  plan.fail_share(sys::Call::allocate, 1, ENOMEM, 1);
  const sys::FaultScope scope(plan);
  std::size_t accepted = 0;
  while (queue.push([shared] {}) != PostQueue::Pushed::out_of_memory) ++accepted;
  EXPECT_EQ(static_cast<std::size_t>(shared.use_count()), 1 + accepted);
  EXPECT_EQ(queue.run(kNoLimit), accepted);
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(PostQueue, RecyclesItsCells) {
  PostQueue queue;
  const auto round = [&queue] {
    for (int i = 0; i < 100; ++i) queue.push([] {});
    queue.run(kNoLimit);
  };
  round();
  round();
  sys::FaultPlan plan;
  const sys::FaultScope scope(plan);
  for (int i = 0; i < 100; ++i) round();
  EXPECT_EQ(plan.calls(sys::Call::allocate), 0u);
}

}  // namespace
}  // namespace spate
