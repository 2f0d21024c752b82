#include "core/timer_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "spate/time.h"
#include "tests/support/random.h"

namespace spate {
namespace {

using testing::Random;

constexpr std::int64_t kTick = std::int64_t{1} << 20;
constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kFarthestNow = std::int64_t{1} << 61;  // Leaves room for deadlines after it.

// The queue alone does not count parked timers; the loop does.
class Queue : public TimerQueue {
 public:
  Queue() : TimerQueue(parked_) {}

 private:
  std::size_t parked_ = 0;
};

// The queue and a sorted map that predicts its behaviour.
class Pair {
 public:
  explicit Pair(std::size_t timers) : nodes_(timers), keys_(timers) {}

  std::size_t timers() const { return nodes_.size(); }
  std::size_t armed() const { return model_.size(); }
  std::int64_t now() const { return now_; }
  bool is_armed(std::size_t i) const {
    return nodes_[i].head.active != 0 && nodes_[i].deadline != kParked;
  }
  bool is_linked(std::size_t i) const { return nodes_[i].head.active != 0; }
  std::int64_t deadline(std::size_t i) const { return nodes_[i].deadline; }
  TimerQueue& queue() { return queue_; }

  void start(std::size_t i, std::int64_t deadline) {
    nodes_[i].deadline = deadline;
    ASSERT_TRUE(queue_.start(nodes_[i]));
    arm(i, deadline, ++order_);
  }
  // An armed timer keeps its place among equal deadlines.
  void restart(std::size_t i, std::int64_t deadline) {
    const bool was_armed = is_armed(i);
    const std::uint64_t order = keys_[i].second;
    if (was_armed) model_.erase(keys_[i]);
    ASSERT_TRUE(queue_.restart(nodes_[i], deadline));
    arm(i, deadline, was_armed ? order : ++order_);
  }
  void stop(std::size_t i) {
    if (is_armed(i)) model_.erase(keys_[i]);
    queue_.stop(nodes_[i]);
    ASSERT_FALSE(is_linked(i));
  }
  void park(std::size_t i) {
    if (is_armed(i)) model_.erase(keys_[i]);
    queue_.park(nodes_[i]);
    ASSERT_FALSE(is_armed(i));
  }

  std::int64_t earliest() const { return model_.empty() ? INT64_MAX : model_.begin()->first.first; }

  // Takes all due timers; they must come in the order of the model.
  void advance_to(std::int64_t now) {
    now_ = now;
    while (TimerNode* node = queue_.pop_due(now)) {
      ASSERT_FALSE(model_.empty()) << "one too many at " << now;
      const auto expected = model_.begin();
      ASSERT_LE(node->deadline, now) << "early";
      ASSERT_EQ(static_cast<std::size_t>(node - nodes_.data()), expected->second) << "order";
      ASSERT_EQ(node->head.active, 0u);
      model_.erase(expected);
    }
    check();
  }

  void check() const {
    ASSERT_GT(earliest(), now_) << "lost or late";
    ASSERT_EQ(queue_.size(), model_.size());
    ASSERT_LE(queue_.next_deadline(), earliest()) << "would oversleep";
    ASSERT_GT(queue_.next_deadline(), now_) << "would spin";
  }

  // Advances as a loop that sleeps until next_deadline(). Returns how often it woke.
  std::size_t sleep_until_empty() {
    std::size_t wakes = 0;
    while (!model_.empty() && !::testing::Test::HasFatalFailure()) {
      advance_to(queue_.next_deadline());
      ++wakes;
    }
    return wakes;
  }

 private:
  using Key = std::pair<std::int64_t, std::uint64_t>;  // The deadline, and the order of arming.

  void arm(std::size_t i, std::int64_t deadline, std::uint64_t order) {
    ASSERT_TRUE(is_armed(i));
    ASSERT_EQ(nodes_[i].deadline, deadline);
    keys_[i] = {deadline, order};
    model_.emplace(keys_[i], i);
  }

  Queue queue_;
  std::vector<TimerNode> nodes_;
  std::vector<Key> keys_;
  std::map<Key, std::size_t> model_;
  std::uint64_t order_ = 0;
  std::int64_t now_ = 0;
};

std::int64_t random_deadline(Random& random, const Pair& pair) {
  const std::int64_t now = pair.now();
  const std::int64_t room = kForever.count() - now;
  switch (random.below(8)) {
    case 0:
      return now;
    case 1:
      return random.span(now + 1);  // Overdue.
    case 2:
      return now + random.span(3 * kTick);
    case 3:
      return now + std::min(room, std::int64_t{1} << random.below(62)) - random.between(0, 1);
    case 4: {
      const std::size_t other = random.below(pair.timers());
      return pair.is_armed(other) ? pair.deadline(other) : now;  // Equal to another timer's.
    }
    case 5:
      return ((now >> 20) + random.between(1, 200)) << 20;  // At the boundary of a bucket.
    case 6:
      return now + random.span(room + 1);
    default:
      return now + random.span(10 * kSecond);
  }
}

std::int64_t random_advance(Random& random, const Pair& pair) {
  const std::int64_t now = pair.now();
  const std::int64_t next = pair.earliest();
  switch (random.below(12)) {
    case 0:
      return now;
    case 1:
      return now + 1;
    case 2:
      return now + random.span(kTick);
    case 3:
      return next < INT64_MAX ? next - 1 : now;
    case 4:
      return next < INT64_MAX ? next : now;
    case 5:
      return now + random.span(std::int64_t{1} << random.below(40));
    default:
      return now + random.span(100 * kMillisecond);
  }
}

void random_step(Random& random, Pair& pair) {
  const std::size_t i = random.below(pair.timers());
  const std::int64_t deadline = random_deadline(random, pair);
  switch (random.below(8)) {
    case 0:
    case 1:
      if (!pair.is_linked(i)) return pair.start(i, deadline);
      if (!pair.is_armed(i)) return pair.stop(i);
      return pair.restart(i, pair.deadline(i) + random.span(kSecond));
    case 2:
    case 3:
    case 4:
      return pair.restart(i, deadline);
    case 5:
      if (random.one_in(2)) return pair.park(i);
      if (pair.is_linked(i)) pair.stop(i);
      return;
    case 6:
      if (pair.is_armed(i)) pair.restart(i, pair.deadline(i) - pair.deadline(i) / 7);
      return;
    default: {
      const std::int64_t target = random_advance(random, pair);
      if (target >= pair.now()) pair.advance_to(std::min(target, kFarthestNow));
    }
  }
}

class TimerQueueModel : public ::testing::TestWithParam<std::size_t> {};

// A hundred thousand operations each. With few timers they meet in all ways; many fill the wheel.
TEST_P(TimerQueueModel, AgreesWithSortedMapOnRandomSchedules) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Pair pair(GetParam());
    for (int step = 0; step < 40'000; ++step) {
      random_step(random, pair);
      ASSERT_FALSE(HasFatalFailure()) << "step " << step;
    }
    pair.sleep_until_empty();
    ASSERT_EQ(pair.queue().size(), 0u);
    for (std::size_t i = 0; i < pair.timers(); ++i) {
      if (pair.is_linked(i)) pair.stop(i);
    }
    ASSERT_EQ(pair.queue().next_deadline(), INT64_MAX);
  }
}

INSTANTIATE_TEST_SUITE_P(Timers, TimerQueueModel, ::testing::Values(1, 2, 7, 40, 300, 5000));

TEST(TimerQueue, AgreesWithSortedMapWhileAllocationsFail) {
  Random random(11);
  Pair pair(500);
  ASSERT_TRUE(pair.queue().reserve(500));
  FaultPlan plan;
  plan.fail_share(SystemCall::allocate, 0.7, ENOMEM, 5);
  const FaultScope scope(plan);
  for (int step = 0; step < 100'000; ++step) {
    random_step(random, pair);
    ASSERT_FALSE(HasFatalFailure()) << "step " << step;
  }
  pair.sleep_until_empty();
  EXPECT_GT(plan.failures(SystemCall::allocate), 100u);
}

TEST(TimerQueue, ReportsThatMemoryRanOutAndChangesNothing) {
  Queue queue;
  TimerNode node{};
  node.deadline = kSecond;
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, 1, ENOMEM);
  const FaultScope scope(plan);
  EXPECT_FALSE(queue.start(node));
  EXPECT_EQ(node.head.active, 0u);
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(queue.next_deadline(), INT64_MAX);
  EXPECT_TRUE(queue.restart(node, kSecond));
  EXPECT_EQ(queue.pop_due(kSecond), &node);
}

constexpr std::size_t kBurst = 1'000'000;

TEST(TimerQueue, KeepsOrderOfMillionEqualDeadlines) {
  Queue queue;
  std::vector<TimerNode> nodes(kBurst);
  for (TimerNode& node : nodes) {
    node.deadline = 5 * kSecond + 3;
    ASSERT_TRUE(queue.start(node));
  }
  ASSERT_EQ(queue.pop_due(5 * kSecond + 2), nullptr);
  for (TimerNode& node : nodes) ASSERT_EQ(queue.pop_due(5 * kSecond + 3), &node);
  EXPECT_EQ(queue.pop_due(INT64_MAX / 2), nullptr);
  EXPECT_EQ(queue.next_deadline(), INT64_MAX);
}

// A timer's place among equal deadlines has 22 bits. When the counter wraps, the order must hold.
TEST(TimerQueue, KeepsOrderOfEqualDeadlinesWhenItsCounterWraps) {
  for (const std::int64_t deadline : {std::int64_t{3}, 5 * kSecond}) {
    Queue queue;
    TimerNode other{};
    for (int starts = 0; starts < (1 << 22) - 10; ++starts) {
      ASSERT_TRUE(queue.start(other));
      queue.stop(other);
    }
    std::vector<TimerNode> nodes(20);
    for (TimerNode& node : nodes) {
      node.deadline = deadline;
      ASSERT_TRUE(queue.start(node));
    }
    for (TimerNode& node : nodes) ASSERT_EQ(queue.pop_due(deadline), &node);
  }
}

TEST(TimerQueue, OpensBucketOfLastDeadline) {
  Queue queue;
  TimerNode last{};
  last.deadline = INT64_MAX - 1;
  ASSERT_TRUE(queue.start(last));
  EXPECT_EQ(queue.pop_due((std::int64_t{1} << 62) + 1), nullptr);
  EXPECT_LE(queue.next_deadline(), last.deadline);
  queue.stop(last);
}

TEST(TimerQueue, ExpiresMillionTimersInOrderWithSleepsInBetween) {
  Queue queue;
  Random random(3);
  std::vector<TimerNode> nodes(kBurst);
  for (TimerNode& node : nodes) {
    node.deadline = random.span(1000 * kSecond);
    ASSERT_TRUE(queue.start(node));
  }
  std::size_t popped = 0;
  std::int64_t previous = 0;
  while (queue.size() > 0) {
    const std::int64_t now = queue.next_deadline();
    while (const TimerNode* node = queue.pop_due(now)) {
      ASSERT_GE(node->deadline, previous);
      ASSERT_LE(node->deadline, now);
      previous = node->deadline;
      ++popped;
    }
    ASSERT_GT(queue.next_deadline(), now);
  }
  EXPECT_EQ(popped, kBurst);
}

TEST(TimerQueue, ExpiresCompletelyWhenTimeJumpsPastAllDeadlines) {
  Pair pair(20'000);
  Random random(4);
  for (std::size_t i = 0; i < pair.timers(); ++i) {
    pair.start(i, random.span(std::int64_t{1} << random.below(62)));
  }
  pair.advance_to(INT64_MAX / 2);
  EXPECT_EQ(pair.armed(), 0u);
}

// The run needs memory for one bucket, not for all that are overdue.
TEST(TimerQueue, OpensOneBucketAfterAnotherWhenManyAreOverdue) {
  constexpr std::size_t kPerBucket = 1024;
  Pair pair(50 * kPerBucket);
  for (std::size_t i = 0; i < pair.timers(); ++i) {
    pair.start(i, (2 + static_cast<std::int64_t>(i / kPerBucket)) * kTick);
  }
  FaultPlan plan;
  const FaultScope scope(plan);
  pair.advance_to(100 * kTick);
  EXPECT_EQ(pair.armed(), 0u);
  EXPECT_EQ(plan.calls(SystemCall::allocate), 1u);
}

TEST(TimerQueue, WakesLoopWithOneFarTimerOnlyFewTimes) {
  for (const std::int64_t deadline :
       {kTick - 1, kTick, 64 * kTick, kSecond, 3600 * kSecond, INT64_MAX / 2}) {
    Pair pair(1);
    pair.start(0, deadline);
    EXPECT_LE(pair.sleep_until_empty(), 2u) << deadline;
    EXPECT_EQ(pair.now(), deadline);
  }
}

// The loop may wake once for each level of the wheel, but not more often.
TEST(TimerQueue, WakesLoopWithManyFarTimersBoundedNumberOfTimes) {
  Pair pair(1000);
  for (std::size_t i = 0; i < pair.timers(); ++i) pair.start(i, 86'400 * kSecond + 17);
  EXPECT_LE(pair.sleep_until_empty(), 10u);
}

TEST(TimerQueue, PostponesByChangingOnlyNode) {
  Pair pair(1000);
  for (std::size_t i = 0; i < pair.timers(); ++i) pair.start(i, 60 * kSecond);
  const std::int64_t next = pair.queue().next_deadline();
  FaultPlan plan;
  const FaultScope scope(plan);
  for (int round = 1; round < 50; ++round) {
    for (std::size_t i = 0; i < pair.timers(); ++i) pair.restart(i, (60 + round) * kSecond);
    ASSERT_EQ(pair.queue().next_deadline(), next);
  }
  EXPECT_EQ(plan.calls(SystemCall::allocate), 0u);
  pair.sleep_until_empty();
  EXPECT_EQ(pair.now(), 109 * kSecond);
}

TEST(TimerQueue, KeepsRestartedTimersPositionAmongEqualDeadlines) {
  for (const std::int64_t deadline : {kTick / 2, 50 * kSecond}) {
    Pair pair(3);
    for (std::size_t i = 0; i < 3; ++i) pair.start(i, deadline);
    pair.restart(1, deadline + 5);
    pair.restart(1, deadline);
    pair.stop(0);
    pair.start(0, deadline);  // Now the last among its equals.
    pair.advance_to(deadline);
    EXPECT_EQ(pair.armed(), 0u);
  }
}

TEST(TimerQueue, AcceptsLatestDeadline) {
  for (const std::int64_t deadline : {std::int64_t{5}, 5 * kSecond}) {
    Queue queue;
    queue.pop_due(0);
    TimerNode node{};
    node.deadline = deadline;
    ASSERT_TRUE(queue.start(node));
    ASSERT_TRUE(queue.restart(node, INT64_MAX - 1));
    EXPECT_EQ(queue.pop_due(10 * kSecond), nullptr) << "it was put off for ever";
    EXPECT_EQ(queue.size(), 1u);
  }
  Queue queue;
  TimerNode node{};
  ASSERT_TRUE(queue.restart(node, INT64_MAX - 1));
  EXPECT_NE(node.head.active, 0u);
  EXPECT_EQ(queue.size(), 1u);
}

TEST(TimerQueue, ParksAndRestartsByChangingOnlyNode) {
  Pair pair(100);
  for (std::size_t i = 0; i < pair.timers(); ++i) pair.start(i, 60 * kSecond);
  FaultPlan plan;
  const FaultScope scope(plan);
  for (int round = 1; round < 50; ++round) {
    for (std::size_t i = 0; i < pair.timers(); ++i) {
      pair.park(i);
      pair.park(i);
      ASSERT_EQ(pair.queue().size(), pair.timers() - 1);
      pair.restart(i, (60 + round) * kSecond);
    }
  }
  EXPECT_EQ(plan.calls(SystemCall::allocate), 0u);
  for (std::size_t i = 0; i < 50; ++i) pair.park(i);
  pair.sleep_until_empty();
  EXPECT_EQ(pair.now(), 109 * kSecond);
}

TEST(TimerQueue, DropsParkedTimersAfterTheirDeadline) {
  Pair pair(50);
  for (std::size_t i = 0; i < pair.timers(); ++i) {
    pair.start(i, (10 + static_cast<std::int64_t>(i) % 3) * kSecond);
  }
  for (std::size_t i = 0; i < pair.timers(); ++i) pair.park(i);
  EXPECT_EQ(pair.queue().size(), 0u);
  pair.advance_to(20 * kSecond);
  for (std::size_t i = 0; i < pair.timers(); ++i) EXPECT_FALSE(pair.is_linked(i));
  EXPECT_EQ(pair.queue().next_deadline(), INT64_MAX);
}

TEST(TimerQueue, ExpiresTimersStartedAfterTheirDeadline) {
  Pair pair(3);
  pair.advance_to(10 * kSecond);
  pair.start(0, 0);
  pair.start(1, 9 * kSecond);
  pair.start(2, 0);
  pair.advance_to(10 * kSecond);
  EXPECT_EQ(pair.armed(), 0u);
}

TEST(TimerQueue, StopsAllNodesAndLeavesThemInactive) {
  Queue queue;
  std::vector<TimerNode> nodes(200);
  Random random(9);
  for (TimerNode& node : nodes) {
    node.deadline = random.span(std::int64_t{1} << random.below(50));
    ASSERT_TRUE(queue.start(node));
  }
  queue.pop_due(0);
  queue.stop_all();
  for (const TimerNode& node : nodes) EXPECT_EQ(node.head.active, 0u);
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(queue.next_deadline(), INT64_MAX);
  ASSERT_TRUE(queue.restart(nodes[0], kSecond));
  EXPECT_EQ(queue.pop_due(INT64_MAX / 2), &nodes[0]);
}

TEST(TimerQueue, NeedsNoMemoryForReservedTimers) {
  Pair pair(1000);
  Random random(6);
  ASSERT_TRUE(pair.queue().reserve(pair.timers()));
  FaultPlan plan;
  plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
  const FaultScope scope(plan);
  pair.advance_to(kSecond);
  for (std::size_t i = 0; i < pair.timers(); ++i) pair.start(i, random.span(3 * kSecond));
  pair.sleep_until_empty();
  EXPECT_EQ(pair.armed(), 0u);
}

}  // namespace
}  // namespace spate
