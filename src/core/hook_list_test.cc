#include "core/hook_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/fault.h"
#include "tests/support/random.h"

namespace spate {
namespace {

using testing::Random;

std::vector<Node*> fed_by(HookList& list) {
  PendingQueue pending;
  list.feed_all(pending, Events::check);
  std::vector<Node*> fed;
  Due due;
  pending.begin_turn(0);
  while (pending.take(due)) fed.push_back(due.node);
  return fed;
}

TEST(HookList, FeedsItsNodesInOrderTheyWereAdded) {
  std::vector<Node> nodes(20);
  HookList list;
  EXPECT_TRUE(list.empty());
  for (Node& node : nodes) ASSERT_TRUE(list.add(node));
  list.remove(nodes[3]);
  list.remove(nodes[0]);
  ASSERT_TRUE(list.add(nodes[3]));
  std::vector<Node*> expected;
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    if (i != 3) expected.push_back(&nodes[i]);
  }
  expected.push_back(&nodes[3]);
  EXPECT_EQ(fed_by(list), expected);
}

TEST(HookList, FeedsOnlyHighestPopulatedPriority) {
  std::vector<Node> nodes(3);
  nodes[1].priority = 99;  // Clamped.
  HookList list;
  for (Node& node : nodes) list.add(node);
  PendingQueue pending;
  list.feed_highest(pending, Events::idle);
  EXPECT_EQ(pending.size(), 1u);
  EXPECT_NE(nodes[1].pending, 0u);
  pending.clear();
  list.remove(nodes[1]);
  list.feed_highest(pending, Events::idle);
  EXPECT_EQ(pending.size(), 2u);
  pending.clear();
}

TEST(HookList, FeedsNoNodeWhileEqualPriorityIsQueued) {
  Node hook{};
  Node urgent{};
  HookList list;
  list.add(hook);
  PendingQueue pending;
  pending.feed(urgent, Events::read);
  list.feed_highest(pending, Events::idle);
  EXPECT_EQ(hook.pending, 0u);
  pending.remove(urgent);
  urgent.priority = -1;
  pending.feed(urgent, Events::read);
  list.feed_highest(pending, Events::idle);
  EXPECT_NE(hook.pending, 0u);
  pending.clear();
}

TEST(HookList, ReportsThatMemoryRanOutAndLeavesNodeInactive) {
  Node node{};
  HookList list;
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, 1, ENOMEM);
  const FaultScope scope(plan);
  EXPECT_FALSE(list.add(node));
  EXPECT_EQ(node.active, 0u);
  EXPECT_TRUE(list.empty());
  EXPECT_TRUE(list.add(node));
}

TEST(HookList, DoesNotGrowUnderRepeatedAddAndRemove) {
  std::vector<Node> nodes(4);
  HookList list;
  for (Node& node : nodes) list.add(node);
  FaultPlan plan;
  const FaultScope scope(plan);
  for (int i = 0; i < 10'000; ++i) {
    Node& node = nodes[static_cast<std::size_t>(i) % nodes.size()];
    list.remove(node);
    ASSERT_TRUE(list.add(node));
  }
  EXPECT_LE(plan.calls(SystemCall::allocate), 1u);
}

TEST(HookList, LeavesAllNodesInactiveWhenItRemovesThem) {
  std::vector<Node> nodes(5);
  HookList list;
  for (Node& node : nodes) list.add(node);
  list.remove(nodes[2]);
  list.remove_all();
  for (const Node& node : nodes) EXPECT_EQ(node.active, 0u);
  EXPECT_TRUE(list.empty());
  EXPECT_TRUE(fed_by(list).empty());
}

TEST(HookList, AgreesWithPlainVectorOverRandomOperations) {
  Random random(1);
  std::vector<Node> nodes(30);
  std::vector<Node*> model;
  HookList list;
  for (int step = 0; step < 20'000; ++step) {
    Node& node = nodes[random.below(nodes.size())];
    if (node.active == 0) {
      ASSERT_TRUE(list.add(node));
      model.push_back(&node);
    } else {
      list.remove(node);
      model.erase(std::find(model.begin(), model.end(), &node));
    }
    ASSERT_EQ(list.empty(), model.empty());
    if (random.one_in(10)) {
      ASSERT_EQ(fed_by(list), model);
    }
  }
}

}  // namespace
}  // namespace spate
