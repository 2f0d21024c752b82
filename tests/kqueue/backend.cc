// The kqueue backend where its kernel differs from the others.
#include <poll.h>

#include <initializer_list>

#include "backend/registry.h"
#include "base/fault.h"
#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

class KqueueBackend : public ::testing::Test {
 protected:
  long modify(int fd, Events before, Events after, std::uint32_t generation = 1) {
    return backend_->modify(fd, before, after, generation);
  }
  const ReadyList& look() {
    ready_.clear();
    EXPECT_TRUE(ready_.reserve(kLeastReady));
    EXPECT_EQ(backend_->wait(Nanos{0}, ready_), 0);
    return ready_;
  }
  // Returns the events of the only entry.
  Events events() {
    const ReadyList& ready = look();
    EXPECT_EQ(ready.size(), 1u);
    return ready.empty() ? Events::none : ready[0].events;
  }

  std::unique_ptr<Backend> backend_ = std::move(open_backend("kqueue")->backend);
  ReadyList ready_;
};

TEST_F(KqueueBackend, BothDirectionsAreOneEntryAndOneCall) {
  Sockets pair;
  Pipe pipe;
  EXPECT_EQ(modify(pair.near(), Events::none, kReadWrite, 7), 0);
  EXPECT_EQ(modify(pipe.out(), Events::none, Events::write, 8), 0);
  EXPECT_EQ(backend_->kernel_calls().modify, 2u);
  ASSERT_EQ(::write(pair.far(), "x", 1), 1);
  for (int turn = 0; turn < 2; ++turn) {
    const ReadyList& ready = look();
    ASSERT_EQ(ready.size(), 2u);
    for (const Ready& entry : ready) {
      const bool is_pair = entry.fd == pair.near();
      EXPECT_EQ(entry.events, is_pair ? kReadWrite : Events::write);
      EXPECT_EQ(entry.generation, is_pair ? 7u : 8u);
    }
  }
}

TEST_F(KqueueBackend, ChangeAddsAllEntriesOfAnotherFile) {
  Sockets first;
  Sockets second;
  Sockets third;
  const int number = first.near();
  EXPECT_EQ(modify(number, Events::none, Events::read, 1), 0);
  ASSERT_EQ(::dup2(second.near(), number), number);
  EXPECT_EQ(modify(number, Events::read, kReadWrite, 2), 0);
  ASSERT_EQ(::write(second.far(), "x", 1), 1);
  EXPECT_EQ(events(), kReadWrite);
  EXPECT_EQ(ready_[0].generation, 2u);
  ASSERT_EQ(::dup2(third.near(), number), number);
  EXPECT_EQ(modify(number, kReadWrite, Events::write, 3), 0) << "there was nothing to remove";
  EXPECT_EQ(events(), Events::write);
}

TEST_F(KqueueBackend, PeerCloseIsNoError) {
  Sockets pair;
  EXPECT_EQ(modify(pair.near(), Events::none, Events::read), 0);
  ASSERT_EQ(::shutdown(pair.far(), SHUT_WR), 0);
  EXPECT_EQ(events(), Events::read | Events::peer_closed);
}

TEST_F(KqueueBackend, OwnShutdownIsNoHangUp) {
  for (const bool tcp : {false, true}) {
    Sockets pair{tcp};
    EXPECT_EQ(modify(pair.near(), Events::none, kReadWrite), 0);
    ASSERT_EQ(::shutdown(pair.near(), SHUT_WR), 0);
    EXPECT_EQ(events(), Events::write);
    EXPECT_EQ(modify(pair.near(), kReadWrite, Events::none), 0);
  }
}

TEST_F(KqueueBackend, EndOfBothDirectionsIsHangUp) {
  Sockets pair;
  EXPECT_EQ(modify(pair.near(), Events::none, Events::write), 0);
  pair.far_end.reset();
  EXPECT_EQ(events(), kHungUp);
}

TEST_F(KqueueBackend, ErrorIsHangUpInEitherDirection) {
  for (const Events interest : {Events::read, Events::write, Events::peer_closed}) {
    Sockets pair{true};
    EXPECT_EQ(modify(pair.near(), Events::none, interest), 0);
    const linger abortive{.l_onoff = 1, .l_linger = 0};
    ASSERT_EQ(::setsockopt(pair.far(), SOL_SOCKET, SO_LINGER, &abortive, sizeof(abortive)), 0);
    pair.far_end.reset();
    EXPECT_EQ(events(), kHungUp);
    EXPECT_EQ(modify(pair.near(), interest, Events::none), 0);
  }
}

TEST_F(KqueueBackend, RefusalOfOneDirectionRemovesOther) {
  Pipe pipe;
  pipe.read_end.reset();
  EXPECT_EQ(modify(pipe.out(), Events::none, kReadWrite), -EPERM);
  EXPECT_TRUE(look().empty());
}

TEST_F(KqueueBackend, FailedChangeIsReturned) {
  Pipe pipe;
  FaultPlan plan;
  plan.fail_nth(SystemCall::kevent_change, 1, ENOMEM);
  const FaultScope scope(plan);
  EXPECT_EQ(modify(pipe.out(), Events::none, Events::write), -ENOMEM);
}

TEST_F(KqueueBackend, InterruptedWaitReportsWhatIsReady) {
  Pipe pipe;
  EXPECT_EQ(modify(pipe.out(), Events::none, Events::write), 0);
  FaultPlan plan;
  plan.fail_nth(SystemCall::kevent_wait, 1, EINTR);
  const FaultScope scope(plan);
  EXPECT_EQ(events(), Events::write);
}

TEST_F(KqueueBackend, StartingOverEmptiesQueueAndKeepsIt) {
  Pipe pipe;
  Sockets pair;
  EXPECT_EQ(modify(pipe.out(), Events::none, Events::write), 0);
  EXPECT_EQ(modify(pair.near(), Events::none, kReadWrite), 0);
  pollfd entry{.fd = *backend_->poll_fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&entry, 1, 0), 1);
  EXPECT_FALSE(backend_->start_over());
  EXPECT_TRUE(look().empty());
  EXPECT_EQ(*backend_->poll_fd(), entry.fd);
  EXPECT_EQ(::poll(&entry, 1, 0), 0);
}

// The queue's number is free in the child.
TEST_F(KqueueBackend, ChildLeavesItsOwnFileWithNumberOfQueueOpen) {
  Pipe pipe;
  const int number = *backend_->poll_fd();
  for (const bool reopens : {true, false}) {
    const int pid = fork_child([&] {
      if (::dup2(pipe.in(), number) != number) return 1;
      if (reopens && backend_->reopen()) return 2;
      if (reopens && modify(pipe.out(), Events::none, Events::write) != 0) return 3;
      if (reopens && look().size() != 1) return 4;
      backend_.reset();
      return ::fcntl(number, F_GETFD) < 0 ? 5 : 0;
    });
    EXPECT_EQ(wait_for(pid), 0);
  }
  EXPECT_EQ(modify(pipe.out(), Events::none, Events::write), 0);
  EXPECT_EQ(events(), Events::write);
}

TEST_F(KqueueBackend, QueueClosesOnExec) {
  EXPECT_EQ(::fcntl(*backend_->poll_fd(), F_GETFD), FD_CLOEXEC);
}

}  // namespace
}  // namespace spate::testing
