#include "core/fd_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <map>
#include <ostream>
#include <vector>

#include "base/fault.h"
#include "spate/error.h"
#include "tests/support/random.h"
#include "tests/support/recording_backend.h"
#include "tests/support/system_error.h"

namespace spate {
namespace {

using testing::Random;
using testing::RecordingBackend;
using testing::system_error;
using Change = RecordingBackend::Change;
using Changes = std::vector<Change>;

constexpr Events kRead = Events::read;
constexpr Events kWrite = Events::write;
constexpr Events kNone = Events::none;
constexpr int kFd = 5;

class FdTableTest : public ::testing::Test, public FdTable::Sink {
 public:
  struct Call {
    const FdNode* node;
    Events events;
    int error;
    bool operator==(const Call&) const = default;
  };

  FdTableTest() { EXPECT_TRUE(table_.reserve(32)); }

  void on_ready(FdNode& node, Events events) override { calls_.push_back({&node, events, 0}); }
  void on_refused(FdNode& node, int error) override {
    EXPECT_EQ(node.head.active, 0u);
    calls_.push_back({&node, kNone, error});
    if (when_refused_) when_refused_(node);
  }

  static FdNode node_of(int fd, Events events) {
    FdNode node{};
    node.fd = fd;
    node.events = static_cast<std::uint32_t>(events) | kFdIsNew;
    return node;
  }
  void start(FdNode& node) {
    ASSERT_FALSE(table_.ensure(node.fd));
    table_.start(node);
  }
  Changes reconcile() {
    table_.reconcile(backend_, *this);
    return backend_.take_changes();
  }
  bool deliver(int fd, Events events, std::uint32_t generation) {
    return table_.deliver({fd, generation, events, 0}, *this);
  }
  bool deliver(int fd, Events events) { return deliver(fd, events, backend_.generations[fd]); }
  std::vector<Call> take_calls() { return std::exchange(calls_, {}); }

  FdTable table_;
  RecordingBackend backend_;
  std::vector<Call> calls_;
  std::function<void(FdNode&)> when_refused_;
};

TEST_F(FdTableTest, BackendIsCalledOnceForOneWatcher) {
  FdNode node = node_of(kFd, kRead);
  start(node);
  EXPECT_TRUE(backend_.changes.empty()) << "not before the loop waits";
  EXPECT_EQ(reconcile(), (Changes{{kFd, kNone, kRead}}));
  EXPECT_EQ(reconcile(), Changes{});
  table_.stop(node);
  EXPECT_EQ(reconcile(), (Changes{{kFd, kRead, kNone}}));
  EXPECT_EQ(table_.active_fds(), 0u);
}

TEST_F(FdTableTest, BackendIsNotCalledWithoutNetChange) {
  FdNode node = node_of(kFd, kRead);
  start(node);
  table_.stop(node);
  EXPECT_EQ(reconcile(), Changes{}) << "started and stopped within one turn";
  start(node);
  reconcile();
  for (int i = 0; i < 10; ++i) {
    table_.stop(node);
    table_.start(node);
  }
  EXPECT_EQ(reconcile(), Changes{}) << "stopped and started within one turn";
}

TEST_F(FdTableTest, BackendReceivesLastOfSeveralInterests) {
  FdNode node = node_of(kFd, kRead);
  start(node);
  reconcile();
  table_.stop(node);
  node.events = static_cast<std::uint32_t>(kWrite);
  table_.start(node);
  table_.stop(node);
  node.events = static_cast<std::uint32_t>(kRead | kWrite);
  table_.start(node);
  EXPECT_EQ(reconcile(), (Changes{{kFd, kRead, kRead | kWrite}}));
}

TEST_F(FdTableTest, BackendReceivesCombinedInterestOfAllWatchers) {
  FdNode reader = node_of(kFd, kRead);
  FdNode writer = node_of(kFd, kWrite);
  FdNode other = node_of(kFd, kRead);
  start(reader);
  start(writer);
  start(other);
  EXPECT_EQ(reconcile(), (Changes{{kFd, kNone, kRead | kWrite}}));
  EXPECT_EQ(table_.active_fds(), 1u);
  table_.stop(reader);
  EXPECT_EQ(reconcile(), Changes{}) << "another one still reads";
  table_.stop(other);
  EXPECT_EQ(reconcile(), (Changes{{kFd, kRead | kWrite, kWrite}}));
  table_.stop(writer);
  EXPECT_EQ(reconcile(), (Changes{{kFd, kWrite, kNone}}));
}

TEST_F(FdTableTest, LastStartedWatcherOfDescriptorIsServedFirst) {
  std::vector<FdNode> nodes(4, node_of(kFd, kRead));
  for (FdNode& node : nodes) start(node);
  table_.stop(nodes[1]);
  table_.start(nodes[1]);
  reconcile();
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(deliver(kFd, kRead));
    EXPECT_EQ(take_calls(), (std::vector<Call>{{&nodes[1], kRead, 0},
                                               {&nodes[3], kRead, 0},
                                               {&nodes[2], kRead, 0},
                                               {&nodes[0], kRead, 0}}));
  }
}

TEST_F(FdTableTest, EachWatcherReceivesOnlyItsOwnEvents) {
  FdNode reader = node_of(kFd, kRead);
  FdNode writer = node_of(kFd, kWrite | Events::urgent);
  start(reader);
  start(writer);
  reconcile();
  deliver(kFd, kWrite);
  EXPECT_EQ(take_calls(), (std::vector<Call>{{&writer, kWrite, 0}}));
  deliver(kFd, kRead | Events::urgent | Events::peer_closed);
  EXPECT_EQ(take_calls(), (std::vector<Call>{{&writer, Events::urgent, 0}, {&reader, kRead, 0}}));
}

TEST_F(FdTableTest, HangUpIsReportedToWatcherOfOtherEvents) {
  FdNode node = node_of(kFd, Events::urgent);
  start(node);
  reconcile();
  deliver(kFd, kHungUp);
  EXPECT_EQ(take_calls(), (std::vector<Call>{{&node, Events::urgent, 0}}));
}

TEST_F(FdTableTest, DescriptorIsReregisteredIfItMayBeAnotherFile) {
  FdNode node = node_of(kFd, kRead);
  start(node);
  reconcile();
  const std::uint32_t before = backend_.generations[kFd];
  table_.stop(node);
  node.events |= kFdIsNew;
  start(node);
  EXPECT_EQ(reconcile(), (Changes{{kFd, kRead, kRead}}));
  EXPECT_NE(backend_.generations[kFd], before);
}

TEST_F(FdTableTest, DescriptorIsReregisteredForAnotherWatcher) {
  FdNode first = node_of(kFd, kRead);
  FdNode second = node_of(kFd, kRead);
  second.events &= ~kFdIsNew;
  start(first);
  reconcile();
  table_.stop(first);
  start(second);
  EXPECT_EQ(reconcile(), (Changes{{kFd, kRead, kRead}}));
}

TEST_F(FdTableTest, DescriptorIsReregisteredUnlessOthersShareItsInterest) {
  FdNode first = node_of(kFd, kRead);
  start(first);
  EXPECT_EQ(reconcile(), (Changes{{kFd, kNone, kRead}}));
  FdNode second = node_of(kFd, kRead | kWrite);
  second.events = static_cast<std::uint32_t>(kRead | kWrite) | kFdIsNewUnlessWatched;
  start(second);
  EXPECT_EQ(second.events, static_cast<std::uint32_t>(kRead | kWrite)) << "the mark is taken off";
  EXPECT_EQ(reconcile(), (Changes{{kFd, kRead, kRead | kWrite}}));
  table_.stop(first);
  first.events |= kFdIsNewUnlessWatched;
  start(first);
  EXPECT_TRUE(reconcile().empty());
  table_.stop(second);
  second.events |= kFdIsNewUnlessWatched;
  start(second);
  EXPECT_EQ(reconcile(), (Changes{{kFd, kRead | kWrite, kRead | kWrite}}));
}

TEST_F(FdTableTest, ForEachVisitsStartedNodes) {
  FdNode nodes[] = {node_of(kFd, kRead), node_of(kFd, kWrite), node_of(kFd + 1, kRead)};
  for (FdNode& node : nodes) start(node);
  std::vector<const FdNode*> shown;
  EXPECT_TRUE(table_.for_each([&shown](FdNode& node) {
    shown.push_back(&node);
    return true;
  }));
  EXPECT_EQ(shown, (std::vector<const FdNode*>{&nodes[1], &nodes[0], &nodes[2]}));
  EXPECT_FALSE(table_.for_each([&nodes](FdNode& node) { return &node != &nodes[0]; }));
}

TEST_F(FdTableTest, EventOfEarlierGenerationIsDropped) {
  FdNode node = node_of(kFd, kRead);
  start(node);
  reconcile();
  const std::uint32_t before = backend_.generations[kFd];
  table_.stop(node);
  node.events |= kFdIsNew;
  start(node);
  reconcile();
  EXPECT_FALSE(deliver(kFd, kRead, before));
  EXPECT_TRUE(take_calls().empty());
  EXPECT_TRUE(deliver(kFd, kRead));
  EXPECT_EQ(take_calls().size(), 1u);
}

TEST_F(FdTableTest, EventQueuedBeforeInterestGrewIsDelivered) {
  FdNode node = node_of(kFd, kRead);
  start(node);
  reconcile();
  const std::uint32_t before = backend_.generations[kFd];
  FdNode other = node_of(kFd, kWrite);
  other.events &= ~kFdIsNew;
  start(other);
  EXPECT_EQ(reconcile(), (Changes{{kFd, kRead, kRead | kWrite}}));
  EXPECT_TRUE(deliver(kFd, kRead, before));
  EXPECT_EQ(take_calls(), (std::vector<Call>{{&node, kRead, 0}}));
}

TEST_F(FdTableTest, EventOfUnwatchedDescriptorIsDropped) {
  EXPECT_FALSE(deliver(kFd, kRead, 0));
  EXPECT_FALSE(deliver(31'000, kRead, 0));
  FdNode node = node_of(kFd, kRead);
  start(node);
  reconcile();
  const std::uint32_t generation = backend_.generations[kFd];
  table_.stop(node);
  reconcile();
  EXPECT_FALSE(deliver(kFd, kRead, generation));
  EXPECT_TRUE(calls_.empty());
}

TEST_F(FdTableTest, StopBeforeCloseNeedsNoKernelCall) {
  FdNode node = node_of(kFd, kRead);
  start(node);
  reconcile();
  const std::uint32_t generation = backend_.generations[kFd];
  table_.stop(node);
  table_.forget(backend_, kFd);
  EXPECT_EQ(backend_.closings, (Changes{{kFd, kRead, kNone}}));
  EXPECT_EQ(reconcile(), Changes{});
  EXPECT_FALSE(deliver(kFd, kRead, generation));
  node.events |= kFdIsNew;
  start(node);
  EXPECT_EQ(reconcile(), (Changes{{kFd, kNone, kRead}}));
  EXPECT_NE(backend_.generations[kFd], generation);
}

TEST_F(FdTableTest, RefusalStopsAllWatchersOfDescriptorWithReason) {
  std::vector<FdNode> nodes(3, node_of(kFd, kRead));
  for (FdNode& node : nodes) start(node);
  backend_.refusals[kFd] = -EBADF;
  reconcile();
  EXPECT_EQ(take_calls(),
            (std::vector<Call>{
                {&nodes[2], kNone, EBADF}, {&nodes[1], kNone, EBADF}, {&nodes[0], kNone, EBADF}}));
  EXPECT_EQ(table_.active_fds(), 0u);
  EXPECT_EQ(reconcile(), Changes{}) << "it is not asked for again by itself";
  backend_.refusals.clear();
  start(nodes[1]);
  EXPECT_EQ(reconcile(), (Changes{{kFd, kNone, kRead}}));
}

TEST_F(FdTableTest, OutOfRangeRefusalIsReportedAsErange) {
  FdNode node = node_of(kFd, kRead);
  start(node);
  backend_.refusals[kFd] = Backend::kOutOfRange;
  reconcile();
  EXPECT_EQ(take_calls(), (std::vector<Call>{{&node, kNone, ERANGE}}));
}

// A layer may retry, or start another descriptor, in the callback of the refusal.
TEST_F(FdTableTest, RefusalCallbackMayStartDescriptorsWhenTableIsFull) {
  FdTable table;
  ASSERT_TRUE(table.reserve(8));
  std::vector<FdNode> nodes;
  std::vector<FdNode> more;
  for (int fd = 0; fd < 8; ++fd) {
    nodes.push_back(node_of(fd, kRead));
    more.push_back(node_of(fd, kWrite));
    backend_.refusals[fd] = -ENOMEM;
  }
  for (FdNode& node : nodes) table.start(node);
  when_refused_ = [&](FdNode& node) {
    backend_.refusals.erase(node.fd);
    if (node.events == static_cast<std::uint32_t>(kRead)) {
      table.start(more[static_cast<std::size_t>(node.fd)]);
    }
  };
  table.reconcile(backend_, *this);
  EXPECT_EQ(take_calls().size(), 8u);
  backend_.take_changes();
  table.reconcile(backend_, *this);
  EXPECT_EQ(backend_.take_changes(), Changes{});
  EXPECT_EQ(table.active_fds(), 8u);
  for (FdNode& node : more) table.stop(node);
  table.reconcile(backend_, *this);
  EXPECT_EQ(backend_.take_changes().size(), 8u);
}

TEST_F(FdTableTest, RefusalOfImmediateStartStopsNoWatcher) {
  FdNode lazy = node_of(kFd, kRead);
  FdNode immediate = node_of(kFd, kWrite);
  start(lazy);
  start(immediate);
  backend_.refusals[kFd] = -ENOSPC;
  EXPECT_EQ(table_.reconcile_now(backend_, kFd), -ENOSPC);
  table_.stop(immediate);
  EXPECT_TRUE(calls_.empty());
  backend_.changes.clear();
  backend_.refusals.clear();
  EXPECT_EQ(reconcile(), (Changes{{kFd, kNone, kRead}}));
  EXPECT_FALSE(table_.reconcile_now(backend_, kFd)) << "nothing to do any more";
  EXPECT_TRUE(backend_.changes.empty());
}

TEST_F(FdTableTest, BadDescriptorEventStopsItsWatchers) {
  FdNode node = node_of(kFd, kRead);
  start(node);
  reconcile();
  EXPECT_TRUE(table_.deliver({kFd, backend_.generations[kFd], kNone, EBADF}, *this));
  EXPECT_EQ(take_calls(), (std::vector<Call>{{&node, kNone, EBADF}}));
  EXPECT_EQ(reconcile(), (Changes{{kFd, kRead, kNone}})) << "the backend drops it as well";
}

TEST_F(FdTableTest, DescriptorWithoutReadinessCountsAsAlwaysReady) {
  FdNode reader = node_of(kFd, kRead | Events::peer_closed);
  FdNode urgent = node_of(kFd, Events::urgent);
  start(reader);
  start(urgent);
  backend_.refusals[kFd] = -EPERM;
  reconcile();
  ASSERT_TRUE(table_.has_always_ready());
  for (int turn = 0; turn < 3; ++turn) {
    table_.deliver_always_ready(*this);
    EXPECT_EQ(take_calls(), (std::vector<Call>{{&reader, kRead, 0}}));
    EXPECT_EQ(reconcile(), Changes{});
  }
  table_.stop(urgent);
  table_.stop(reader);
  reconcile();
  EXPECT_FALSE(table_.has_always_ready());
}

TEST_F(FdTableTest, AlwaysReadyFileIsRegisteredAgainOnlyIfItIsReplaced) {
  FdNode node = node_of(kFd, kRead);
  start(node);
  backend_.refusals[kFd] = -EPERM;
  EXPECT_EQ(reconcile().size(), 1u);
  table_.stop(node);
  node.events = static_cast<std::uint32_t>(kWrite);
  table_.start(node);
  EXPECT_EQ(reconcile(), Changes{});
  EXPECT_TRUE(table_.has_always_ready());
  EXPECT_EQ(table_.reconcile_now(backend_, kFd), -EPERM);
  backend_.refusals.clear();
  table_.stop(node);
  node.events |= kFdIsNew;
  table_.start(node);
  EXPECT_EQ(reconcile(), (Changes{{kFd, kNone, kWrite}}));
  EXPECT_FALSE(table_.has_always_ready());
}

TEST_F(FdTableTest, StopRemovesRightOneOfSeveralAlwaysReadyFiles) {
  std::vector<FdNode> nodes;
  for (int fd = 3; fd < 7; ++fd) {
    nodes.push_back(node_of(fd, kRead));
    backend_.refusals[fd] = -EPERM;
  }
  for (FdNode& node : nodes) start(node);
  reconcile();
  table_.stop(nodes[1]);
  table_.forget(backend_, nodes[1].fd);
  table_.stop(nodes[3]);
  reconcile();
  table_.deliver_always_ready(*this);
  EXPECT_EQ(take_calls(), (std::vector<Call>{{&nodes[0], kRead, 0}, {&nodes[2], kRead, 0}}));
}

TEST_F(FdTableTest, RegisterAllAgainReregistersActiveDescriptors) {
  FdNode used = node_of(3, kRead);
  FdNode stopped = node_of(4, kRead);
  start(used);
  start(stopped);
  reconcile();
  const std::uint32_t before = backend_.generations[3];
  table_.stop(stopped);
  table_.register_all_again();
  EXPECT_FALSE(deliver(3, kRead, before));
  EXPECT_EQ(reconcile(), (Changes{{3, kNone, kRead}}));
  EXPECT_TRUE(deliver(3, kRead));
}

TEST_F(FdTableTest, StopAllLeavesAllNodesInactive) {
  std::vector<FdNode> nodes{node_of(3, kRead), node_of(3, kWrite), node_of(9, kRead)};
  for (FdNode& node : nodes) start(node);
  table_.stop_all();
  for (const FdNode& node : nodes) EXPECT_EQ(node.head.active, 0u);
  EXPECT_EQ(table_.active_fds(), 0u);
}

TEST(FdTableEnsure, RefusesImpossibleDescriptorsWithoutAllocating) {
  FdTable table;
  FaultPlan plan;
  const FaultScope scope(plan);
  EXPECT_EQ(table.ensure(-1), system_error(EBADF));
  EXPECT_EQ(table.ensure(INT32_MAX), system_error(EBADF));
  EXPECT_EQ(plan.calls(SystemCall::allocate), 0u);
}

TEST(FdTableEnsure, ReportsThatMemoryRanOutAndCanBeRetried) {
  for (std::uint64_t nth = 1; nth <= 3; ++nth) {
    FdTable table;
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
    const FaultScope scope(plan);
    EXPECT_EQ(table.ensure(0), system_error(ENOMEM)) << nth;
    EXPECT_FALSE(table.ensure(0));
  }
}

// Changes the events of several watchers on few descriptors at random; compares with the union.
TEST_F(FdTableTest, AgreesWithItsModelOverRandomOperations) {
  Random random(7);
  std::vector<FdNode> nodes;
  for (int i = 0; i < 24; ++i) nodes.push_back(node_of(3 + i % 5, kRead));
  std::map<int, Events> told;
  for (int step = 0; step < 100'000; ++step) {
    FdNode& node = nodes[random.below(nodes.size())];
    if (node.head.active != 0) {
      table_.stop(node);
    } else {
      node.events = static_cast<std::uint32_t>(random.between(1, 15));
      table_.start(node);
    }
    if (!random.one_in(8)) continue;
    for (const Change& change : reconcile()) {
      ASSERT_EQ(change.before, told[change.fd]);
      told[change.fd] = change.after;
    }
    std::map<int, Events> wanted;
    for (const FdNode& each : nodes) {
      if (each.head.active != 0) wanted[each.fd] |= static_cast<Events>(each.events) & kIoEvents;
    }
    for (int fd = 3; fd < 8; ++fd) ASSERT_EQ(told[fd], wanted[fd]) << "step " << step;
  }
}

}  // namespace
}  // namespace spate
