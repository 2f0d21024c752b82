#include "core/post_queue.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fault.h"

namespace spate {
namespace {

constexpr std::size_t kNoLimit = SIZE_MAX;

template <class F>
bool push(PostQueue& queue, F task) {
  PostQueue::Lane* lane = queue.lane_of_this_thread();
  Job* place = lane == nullptr ? nullptr : PostQueue::place_in(*lane);
  if (place == nullptr) return false;
  new (place) Job(std::move(task));
  queue.publish(*lane);
  return true;
}

TEST(PostQueue, CallsTasksOnceAndInOrder) {
  PostQueue queue;
  std::vector<int> called;
  for (int i = 0; i < 100; ++i) push(queue, [&called, i] { called.push_back(i); });
  EXPECT_TRUE(called.empty());
  EXPECT_TRUE(queue.has_posts());
  EXPECT_EQ(queue.run(kNoLimit), 100u);
  EXPECT_EQ(queue.run(kNoLimit), 0u);
  EXPECT_FALSE(queue.has_posts());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(called[static_cast<std::size_t>(i)], i);
}

TEST(PostQueue, StopsAtItsLimitAndResumesInOrder) {
  PostQueue queue;
  std::vector<int> called;
  for (int i = 0; i < 10; ++i) push(queue, [&called, i] { called.push_back(i); });
  EXPECT_EQ(queue.run(4), 4u);
  EXPECT_TRUE(queue.has_posts());
  push(queue, [&called] { called.push_back(10); });
  EXPECT_EQ(queue.run(kNoLimit), 7u);
  for (int i = 0; i <= 10; ++i) EXPECT_EQ(called[static_cast<std::size_t>(i)], i);
}

TEST(PostQueue, CallsTasksPostedByTasksUpToLimit) {
  PostQueue queue;
  int called = 0;
  struct Again {
    PostQueue& queue;
    int& called;
    void operator()() {
      ++called;
      push(queue, Again{queue, called});
    }
  };
  push(queue, Again{queue, called});
  EXPECT_EQ(queue.run(10), 10u);
  EXPECT_EQ(called, 10);
  EXPECT_TRUE(queue.has_posts());
}

TEST(PostQueue, MayBeRunInsideTaskAcrossSeveralArrays) {
  PostQueue queue;
  std::vector<int> called;
  std::string held = "still here when the inner run has emptied the array that this task lies in";
  push(queue, [&, held] {
    called.push_back(0);
    EXPECT_EQ(queue.run(kNoLimit), 999u);
    EXPECT_EQ(held.substr(0, 10), "still here");
  });
  for (int i = 1; i < 1000; ++i) push(queue, [&called, i] { called.push_back(i); });
  EXPECT_EQ(queue.run(kNoLimit), 1u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(called[static_cast<std::size_t>(i)], i);
}

TEST(PostQueue, OutlivesThreadsThatPostedToIt) {
  PostQueue queue;
  int called = 0;
  for (int round = 0; round < 100; ++round) {
    std::thread poster([&] {
      for (int i = 0; i < 200; ++i) push(queue, [&called] { ++called; });
    });
    poster.join();
    if (round % 3 == 0) queue.run(kNoLimit);
  }
  queue.run(kNoLimit);
  EXPECT_EQ(called, 100 * 200);
}

TEST(PostQueue, MayBeDestroyedBeforeThreadsThatPostedToIt) {
  const auto shared = std::make_shared<int>(0);
  std::thread poster([&] {
    for (int round = 0; round < 50; ++round) {
      PostQueue queue;
      for (int i = 0; i < 200; ++i) push(queue, [shared] { ++*shared; });
      queue.run(100);
    }
  });
  poster.join();
  EXPECT_EQ(*shared, 50 * 100);
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(PostQueue, DestroysUncalledTasks) {
  const auto shared = std::make_shared<int>(0);
  {
    PostQueue queue;
    for (int i = 0; i < 10; ++i) push(queue, [shared] { ++*shared; });
    EXPECT_EQ(queue.run(3), 3u);
    push(queue, [shared] { ++*shared; });
  }
  EXPECT_EQ(*shared, 3);
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(PostQueue, DestroysEachTaskRightAfterItsCall) {
  PostQueue queue;
  auto shared = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = shared;
  push(queue, [shared = std::move(shared)] {});
  push(queue, [&watched] { EXPECT_TRUE(watched.expired()); });
  EXPECT_EQ(queue.run(kNoLimit), 2u);
}

TEST(PostQueue, ReportsThatMemoryRanOutAndDestroysTask) {
  PostQueue queue;
  const auto shared = std::make_shared<int>(0);
  FaultPlan plan;
  plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
  const FaultScope scope(plan);
  std::size_t accepted = 0;
  while (push(queue, [shared] {})) ++accepted;
  EXPECT_EQ(static_cast<std::size_t>(shared.use_count()), 1 + accepted);
  EXPECT_EQ(queue.run(kNoLimit), accepted);
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(PostQueue, RecyclesItsArrays) {
  PostQueue queue;
  const auto round = [&queue] {
    for (int i = 0; i < 100; ++i) push(queue, [] {});
    queue.run(kNoLimit);
  };
  round();
  round();
  FaultPlan plan;
  const FaultScope scope(plan);
  for (int i = 0; i < 100; ++i) round();
  EXPECT_EQ(plan.calls(SystemCall::allocate), 0u);
}

}  // namespace
}  // namespace spate
