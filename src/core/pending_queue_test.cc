#include "core/pending_queue.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "base/fault.h"
#include "tests/support/pending_model.h"
#include "tests/support/random.h"

namespace spate {
namespace {

using testing::PendingModel;
using testing::Random;

constexpr std::uint32_t kPlenty = 1000;

std::vector<Node> nodes_with_priorities(const std::vector<int>& priorities) {
  std::vector<Node> nodes(priorities.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].priority = priorities[i];
  return nodes;
}

// The numbers of the nodes that the rest of this turn takes.
std::vector<int> take_all(PendingQueue& queue, const std::vector<Node>& nodes) {
  std::vector<int> taken;
  Due due;
  while (queue.take(due)) taken.push_back(static_cast<int>(due.node - nodes.data()));
  return taken;
}

TEST(PendingQueue, PopsByPriorityThenInFeedOrder) {
  std::vector<Node> nodes = nodes_with_priorities({0, -2, 2, 0, 1, 2, -1});
  PendingQueue queue;
  for (Node& node : nodes) ASSERT_TRUE(queue.feed(node, Events::custom));
  EXPECT_EQ(queue.size(), nodes.size());
  queue.begin_turn(0);
  EXPECT_EQ(take_all(queue, nodes), (std::vector<int>{2, 5, 4, 0, 3, 6, 1}));
  EXPECT_TRUE(queue.empty());
}

TEST(PendingQueue, ClampsPrioritiesBeyondRange) {
  std::vector<Node> nodes = nodes_with_priorities({-3, 3, INT32_MIN, INT32_MAX, 0});
  PendingQueue queue;
  for (Node& node : nodes) ASSERT_TRUE(queue.feed(node, Events::custom));
  queue.begin_turn(0);
  EXPECT_EQ(take_all(queue, nodes), (std::vector<int>{1, 3, 4, 0, 2}));
}

TEST(PendingQueue, MergesRepeatedFeedsAtFirstPosition) {
  std::vector<Node> nodes(2);
  PendingQueue queue;
  queue.feed(nodes[0], Events::read);
  queue.feed(nodes[1], Events::read);
  queue.feed(nodes[0], Events::write);
  EXPECT_EQ(queue.size(), 2u);
  queue.begin_turn(0);
  Due due;
  ASSERT_TRUE(queue.take(due));
  EXPECT_EQ(due.node, &nodes[0]);
  EXPECT_EQ(due.events, Events::read | Events::write);
  EXPECT_EQ(nodes[0].pending, 0u) << "no longer pending when it is taken";
}

TEST(PendingQueue, RemovesNodeAndReturnsItsEvents) {
  std::vector<Node> nodes(3);
  PendingQueue queue;
  for (Node& node : nodes) queue.feed(node, Events::read);
  queue.feed(nodes[1], Events::write);
  EXPECT_EQ(queue.remove(nodes[1]), Events::read | Events::write);
  EXPECT_EQ(queue.remove(nodes[1]), Events::none);
  EXPECT_EQ(nodes[1].pending, 0u);
  EXPECT_EQ(queue.size(), 2u);
  queue.begin_turn(0);
  EXPECT_EQ(take_all(queue, nodes), (std::vector<int>{0, 2}));
}

TEST(PendingQueue, PopsNewlyFedNodesUntilBudgetIsSpent) {
  std::vector<Node> nodes(1);
  PendingQueue queue;
  queue.feed(nodes[0], Events::custom);
  queue.begin_turn(3);
  Due due;
  int taken = 0;
  while (queue.take(due)) {
    ++taken;
    queue.feed(nodes[0], Events::custom);
  }
  EXPECT_EQ(taken, 4);
  EXPECT_EQ(queue.size(), 1u);
  queue.begin_turn(0);
  EXPECT_EQ(take_all(queue, nodes), std::vector<int>{0}) << "what was left is of the next turn";
}

TEST(PendingQueue, PopsAllPreviouslyQueuedNodesRegardlessOfBudget) {
  std::vector<Node> nodes = nodes_with_priorities({2, 2, -2, -2});
  PendingQueue queue;
  for (Node& node : nodes) queue.feed(node, Events::custom);
  queue.begin_turn(1);
  Due due;
  ASSERT_TRUE(queue.take(due));
  queue.feed(*due.node, Events::custom);
  ASSERT_TRUE(queue.take(due));
  queue.feed(*due.node, Events::custom);
  EXPECT_EQ(take_all(queue, nodes), (std::vector<int>{0, 2, 3}))
      << "a high priority that feeds itself does not starve a low one";
  EXPECT_EQ(queue.size(), 1u);
}

TEST(PendingQueue, NestedTurnTakesRestOfOuterTurn) {
  std::vector<Node> nodes = nodes_with_priorities({0, 0, 0, 1});
  PendingQueue queue;
  for (int i = 0; i < 3; ++i) queue.feed(nodes[static_cast<std::size_t>(i)], Events::custom);
  queue.begin_turn(kPlenty);
  Due due;
  ASSERT_TRUE(queue.take(due));
  EXPECT_EQ(due.node, &nodes[0]);
  queue.feed(nodes[0], Events::custom);
  queue.feed(nodes[3], Events::custom);
  queue.begin_turn(0);  // Inside the call of node 0.
  EXPECT_EQ(take_all(queue, nodes), (std::vector<int>{3, 1, 2, 0}));
  EXPECT_FALSE(queue.take(due)) << "nothing is left for the outer turn";
}

TEST(PendingQueue, DetectsNodesQueuedAtOrAbovePriority) {
  std::vector<Node> nodes = nodes_with_priorities({0});
  PendingQueue queue;
  EXPECT_FALSE(queue.has_from(kPriorityMin));
  queue.feed(nodes[0], Events::custom);
  EXPECT_TRUE(queue.has_from(kPriorityMin));
  EXPECT_TRUE(queue.has_from(0));
  EXPECT_FALSE(queue.has_from(1));
  queue.remove(nodes[0]);
  EXPECT_FALSE(queue.has_from(kPriorityMin)) << "a removed one does not count";
}

TEST(PendingQueue, LeavesNoNodePendingWhenItIsCleared) {
  std::vector<Node> nodes = nodes_with_priorities({0, 1, 2, 0});
  PendingQueue queue;
  for (Node& node : nodes) queue.feed(node, Events::custom);
  Due due;
  queue.begin_turn(kPlenty);
  queue.take(due);
  queue.remove(nodes[3]);
  queue.clear();
  for (const Node& node : nodes) EXPECT_EQ(node.pending, 0u);
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.has_from(kPriorityMin));
  EXPECT_FALSE(queue.take(due));
}

TEST(PendingQueue, ReportsThatMemoryRanOutAndLeavesNodeUnchanged) {
  std::vector<Node> nodes(1);
  PendingQueue queue;
  {
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, 1, ENOMEM);
    const FaultScope scope(plan);
    EXPECT_FALSE(queue.feed(nodes[0], Events::custom));
  }
  EXPECT_EQ(nodes[0].pending, 0u);
  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(queue.feed(nodes[0], Events::custom));
}

// One step of the queue and its model; a nested turn begins inside, as a nested run() does.
void step(Random& random, PendingQueue& queue, PendingModel& model, std::vector<Node>& nodes) {
  const std::size_t i = random.below(nodes.size());
  const int id = static_cast<int>(i);
  Node& node = nodes[i];
  const auto events = static_cast<Events>(1u << random.below(4));
  switch (random.below(10)) {
    case 0:
    case 1:
    case 2:
    case 3:
      ASSERT_TRUE(queue.feed(node, events));
      return model.feed(id, node.priority, events);
    case 4:
      ASSERT_EQ(queue.remove(node), model.remove(id));
      return;
    case 5:
      if (node.pending == 0) node.priority = random.between(-3, 3);
      return;
    case 6: {
      if (!random.one_in(4)) return;
      const auto budget = static_cast<std::uint32_t>(random.below(6));
      queue.begin_turn(budget);
      return model.begin_turn(budget);
    }
    default: {
      Due due{};
      const auto expected = model.take();
      ASSERT_EQ(queue.take(due), expected.has_value());
      if (!expected) return;
      ASSERT_EQ(due.node - nodes.data(), expected->id);
      ASSERT_EQ(due.events, expected->events);
      ASSERT_EQ(due.node->pending, 0u);
    }
  }
}

// All of the queue in a batch, as a caller takes it.
void take_batch(PendingQueue& queue, Due* batch) {
  ASSERT_TRUE(queue.begin_batch(batch));
  queue.begin_turn(kPlenty);
  Due due;
  while (queue.take(due)) queue.hold(due);
}

TEST(PendingQueue, UpdatesNodesThatAreInBatch) {
  std::vector<Node> nodes(3);
  PendingQueue queue;
  for (Node& node : nodes) queue.feed(node, Events::custom);
  Due batch[3];
  take_batch(queue, batch);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(queue.remove(nodes[1]), Events::custom);
  EXPECT_TRUE(queue.feed(nodes[2], Events::read));
  queue.drop(nodes[2], Events::custom);
  EXPECT_EQ(queue.claim(batch[0]), nodes.data());
  EXPECT_EQ(queue.claim(batch[1]), nullptr);
  EXPECT_EQ(batch[2].events, Events::read);
  EXPECT_EQ(queue.claim(batch[2]), &nodes[2]);
  EXPECT_EQ(queue.size(), 0u);
  for (const Node& node : nodes) EXPECT_EQ(node.pending, 0u);
}

TEST(PendingQueue, PutsReturnedBatchBeforeRest) {
  std::vector<Node> nodes(4);
  PendingQueue queue;
  for (int i : {0, 1, 2}) queue.feed(nodes[i], Events::custom);
  Due batch[3];
  take_batch(queue, batch);
  queue.claim(batch[0]);
  queue.feed(nodes[3], Events::custom);
  queue.feed(nodes[0], Events::custom);
  EXPECT_TRUE(queue.give_back());
  EXPECT_EQ(queue.claim(batch[1]), nullptr);
  EXPECT_EQ(take_all(queue, nodes), (std::vector<int>{1, 2, 3, 0}));
}

TEST(PendingQueue, DefersNodesFedAfterBatchWasReturned) {
  std::vector<Node> nodes(4);
  PendingQueue queue;
  for (int i : {0, 1, 2}) queue.feed(nodes[i], Events::custom);
  Due batch[3];
  ASSERT_TRUE(queue.begin_batch(batch));
  queue.begin_turn(0);
  Due due;
  while (queue.take(due)) queue.hold(due);
  EXPECT_TRUE(queue.give_back());
  queue.feed(nodes[3], Events::custom);
  EXPECT_EQ(take_all(queue, nodes), (std::vector<int>{0, 1, 2}));
}

TEST(PendingQueue, KeepsBatchThatCannotBeReturned) {
  std::vector<Node> nodes(1);
  PendingQueue queue;
  queue.feed(nodes[0], Events::custom);
  Due batch[1];
  take_batch(queue, batch);
  {
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, 1, ENOMEM);
    const FaultScope scope{plan};
    Due other[1];
    EXPECT_FALSE(queue.begin_batch(other));
  }
  EXPECT_EQ(queue.claim(batch[0]), nodes.data());
}

TEST(PendingQueue, ClearsBatch) {
  std::vector<Node> nodes(2);
  PendingQueue queue;
  for (Node& node : nodes) queue.feed(node, Events::custom);
  Due batch[2];
  take_batch(queue, batch);
  queue.claim(batch[0]);
  queue.clear();
  EXPECT_EQ(nodes[1].pending, 0u);
  EXPECT_EQ(batch[1].node, nullptr);
  EXPECT_EQ(queue.size(), 0u);
}

TEST(PendingQueue, AgreesWithItsModelOverRandomOperations) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    PendingQueue queue;
    PendingModel model;
    std::vector<Node> nodes(seed * 3);
    for (int i = 0; i < 20'000; ++i) {
      step(random, queue, model, nodes);
      ASSERT_FALSE(HasFatalFailure()) << "step " << i;
      ASSERT_EQ(queue.size(), model.size());
      ASSERT_EQ(queue.has_from(0), model.has_from(0));
    }
  }
}

}  // namespace
}  // namespace spate
