#include "sys/operations.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

namespace spate::sys {
namespace {

struct Seen {
  Seen() {
    operation.context = this;
    operation.callback = [](void* context, Operation&, int result, std::uint32_t flags) {
      auto& self = *static_cast<Seen*>(context);
      self.results.push_back(result);
      self.flags.push_back(flags);
    };
  }
  Operation operation;
  std::vector<int> results;
  std::vector<std::uint32_t> flags;
};

class OperationsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::error_code error = operations_.open())
      GTEST_SKIP() << "no ring here: " << error.message();
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends_), 0);
  }
  void TearDown() override {
    operations_.end();
    for (const int end : ends_) ::close(end);
  }

  void receive(Seen& seen) {
    io_uring_sqe* const entry = operations_.begin(seen.operation);
    ASSERT_NE(entry, nullptr);
    prepare_receive(*entry, ends_[0], buffer_, sizeof(buffer_));
  }
  long enter(unsigned least = 0) {
    const long result = operations_.ring().enter(least, Nanos{50'000'000});
    operations_.collect([](const io_uring_cqe&) {});
    return result;
  }
  void turn(unsigned least = 0) {
    enter(least);
    operations_.tell();
  }

  Operations operations_;
  int ends_[2] = {-1, -1};
  char buffer_[16] = {};
};

TEST_F(OperationsTest, NothingIsToldBeforeItIsDone) {
  Seen seen;
  receive(seen);
  turn();
  EXPECT_TRUE(seen.results.empty());
  ASSERT_EQ(::send(ends_[1], "ping", 4, 0), 4);
  turn(1);
  EXPECT_EQ(seen.results, std::vector<int>{4});
  EXPECT_FALSE(seen.operation.is_begun);
  EXPECT_STREQ(buffer_, "ping");
}

TEST_F(OperationsTest, MoreThanTheQueueHolds) {
  constexpr int kMany = 1000;
  std::vector<Seen> many(kMany);
  for (Seen& seen : many) {
    io_uring_sqe* const entry = operations_.begin(seen.operation);
    ASSERT_NE(entry, nullptr);
    prepare_nop(*entry);
  }
  for (int i = 0; i < kMany; ++i) turn();
  for (const Seen& seen : many) EXPECT_EQ(seen.results, std::vector<int>{0});
}

TEST_F(OperationsTest, MoreCompletionsThanTheirQueueHolds) {
  constexpr int kMany = 10'000;
  std::vector<Seen> many(kMany);
  for (Seen& seen : many) {
    io_uring_sqe* const entry = operations_.begin(seen.operation);
    ASSERT_NE(entry, nullptr);
    prepare_poll(*entry, ends_[0], POLLIN);
  }
  turn();
  ASSERT_EQ(::send(ends_[1], "x", 1, 0), 1);
  turn();
  EXPECT_TRUE(operations_.ring().is_behind());
  for (int i = 0; i < kMany && operations_.ring().is_behind(); ++i) turn();
  for (const Seen& seen : many) ASSERT_EQ(seen.results, std::vector<int>{POLLIN});
}

TEST_F(OperationsTest, CancelledIsToldOnce) {
  Seen seen;
  receive(seen);
  turn();
  EXPECT_TRUE(operations_.cancel(seen.operation));
  EXPECT_TRUE(operations_.cancel(seen.operation));
  turn(1);
  turn();
  EXPECT_EQ(seen.results, std::vector<int>{-ECANCELED});
  EXPECT_TRUE(operations_.cancel(seen.operation)) << "there is nothing to be cancelled";
}

TEST_F(OperationsTest, EndTellsAll) {
  Seen known, unknown;
  receive(known);
  turn();
  receive(unknown);
  operations_.end();
  EXPECT_EQ(known.results, std::vector<int>{-ECANCELED});
  EXPECT_EQ(unknown.results, std::vector<int>{-ECANCELED});
  EXPECT_EQ(operations_.begin(known.operation), nullptr);
}

TEST_F(OperationsTest, WhatIsDoneIsNotCalledCancelled) {
  Seen seen;
  receive(seen);
  turn();
  ASSERT_EQ(::send(ends_[1], "ping", 4, 0), 4);
  operations_.ring().enter(1, kForever);
  EXPECT_FALSE(operations_.open());
  operations_.tell();
  EXPECT_EQ(seen.results, std::vector<int>{4});
}

TEST_F(OperationsTest, AnotherThreadNeedsARingOfItsOwn) {
  Seen seen;
  receive(seen);
  turn();
  std::thread([&] {
    EXPECT_EQ(enter(), -EEXIST);
    EXPECT_FALSE(operations_.open());
    operations_.tell();
    EXPECT_EQ(seen.results, std::vector<int>{-ECANCELED});
    receive(seen);
    turn();
    ASSERT_EQ(::send(ends_[1], "ping", 4, 0), 4);
    turn(1);
  }).join();
  EXPECT_EQ(seen.results, (std::vector<int>{-ECANCELED, 4}));
}

TEST_F(OperationsTest, TheChildOfAForkHasNoneOfTheParents) {
  Seen seen;
  receive(seen);
  turn();
  const int child = ::fork();
  if (child == 0) {
    if (operations_.ring().is_ours() || operations_.open()) ::_exit(1);
    operations_.tell();
    if (seen.results != std::vector<int>{-ECANCELED}) ::_exit(2);
    prepare_nop(*operations_.begin(seen.operation));
    turn(1);
    ::_exit(seen.results == std::vector<int>{-ECANCELED, 0} ? 0 : 3);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(::send(ends_[1], "ping", 4, 0), 4);
  turn(1);
  EXPECT_EQ(seen.results, std::vector<int>{4}) << "the parent's goes on";
}

TEST_F(OperationsTest, BuffersAreTakenWhenThereIsSomething) {
  BufferRing buffers;
  ASSERT_FALSE(buffers.allocate(2, 8));
  ASSERT_FALSE(buffers.provide(operations_.ring(), 1));
  Seen seen;
  io_uring_sqe* const entry = operations_.begin(seen.operation);
  ASSERT_NE(entry, nullptr);
  prepare_receive(*entry, ends_[0], nullptr, 0);
  entry->flags |= IOSQE_BUFFER_SELECT;
  entry->ioprio |= IORING_RECV_MULTISHOT;
  entry->buf_group = 1;
  turn();
  for (const char* word : {"one", "two", "three"}) {
    ASSERT_EQ(::send(ends_[1], word, std::strlen(word), 0), static_cast<long>(std::strlen(word)));
    turn(1);
    const std::uint32_t flags = seen.flags.back();
    ASSERT_TRUE(flags & IORING_CQE_F_BUFFER);
    const unsigned index = BufferRing::index_of(flags);
    const auto size = static_cast<std::size_t>(seen.results.back());
    EXPECT_EQ(std::memcmp(buffers.buffer(index), word, size), 0) << word;
    EXPECT_FALSE(Operation::is_last(flags));
    buffers.give_back(index);
    buffers.publish();
  }
  EXPECT_EQ(seen.results, (std::vector<int>{3, 3, 5}));
  operations_.end();
}

TEST_F(OperationsTest, NoMemoryForACompletionLeavesItForLater) {
  Seen seen;
  io_uring_sqe* const entry = operations_.begin(seen.operation);
  ASSERT_NE(entry, nullptr);
  prepare_poll(*entry, ends_[0], POLLIN);
  entry->len = IORING_POLL_ADD_MULTI;
  {
    FaultPlan plan;
    plan.fail_share(SystemCall::allocate, 1, ENOMEM, 1);
    const FaultScope scope(plan);
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(::send(ends_[1], "x", 1, 0), 1);
      enter(1);
    }
    EXPECT_GT(plan.failures(SystemCall::allocate), 0u);
  }
  operations_.tell();
  EXPECT_LT(seen.results.size(), 20u);
  turn();
  EXPECT_EQ(seen.results.size(), 20u);
  operations_.end();
}

}  // namespace
}  // namespace spate::sys
