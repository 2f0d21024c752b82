// The kernel refuses: a loop cannot be made, a descriptor cannot be watched, a fork cannot be
// handled.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

#include "base/fault.h"
#include "spate/io.h"
#include "spate/loop.h"
#include "spate/periodic.h"
#include "spate/stat.h"
#include "spate/timer.h"
#include "system/open_fds.h"
#include "tests/support/make_loop.h"
#include "tests/support/running.h"
#include "tests/support/system_error.h"

namespace spate {
namespace {

using testing::make_loop;
using testing::runs_out;
using testing::system_error;

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0); }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void fill() { EXPECT_EQ(::write(ends[1], "x", 1), 1); }
  int ends[2];
};

// ---- making a loop

TEST(LoopCreation, ReportsKernelErrorsAndLeaksNothing) {
  const auto before = testing::open_fds();
  for (const SystemCall call :
       {SystemCall::epoll_create, SystemCall::eventfd, SystemCall::epoll_ctl}) {
    for (const int error : {EMFILE, ENFILE, ENOMEM}) {
      FaultPlan plan;
      plan.fail_nth(call, 1, error);
      const FaultScope scope(plan);
      const auto loop = Loop::create({.backend = "epoll"});
      ASSERT_FALSE(loop);
      EXPECT_EQ(loop.error(), system_error(error));
      EXPECT_EQ(testing::open_fds(), before);
    }
  }
}

TEST(LoopCreation, ReportsThatMemoryRanOutWhicheverAllocationFails) {
  const auto before = testing::open_fds();
  for (const std::string_view backend : Loop::backends()) {
    bool created = false;
    for (std::uint64_t nth = 1; !created; ++nth) {
      ASSERT_LT(nth, 50u);
      FaultPlan plan;
      plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
      const FaultScope scope(plan);
      const auto loop = Loop::create({.backend = backend});
      created = plan.failures(SystemCall::allocate) == 0;
      if (loop) continue;
      EXPECT_EQ(loop.error(), system_error(ENOMEM));
      EXPECT_EQ(testing::open_fds(), before);
    }
  }
}

// ---- a refused descriptor

TEST(RefusedDescriptor, StopsItsWatchersWithKernelError) {
  for (const int error : {ENOMEM, ENOSPC, EBADF}) {
    Pipe pipe;
    const auto loop = make_loop();
    std::vector<Events> calls;
    Io first(*loop, pipe.ends[0], Events::read, [&calls](Events e) { calls.push_back(e); });
    Io second(*loop, pipe.ends[0], Events::write, [&calls](Events e) { calls.push_back(e); });
    ASSERT_TRUE(first.start());
    ASSERT_TRUE(second.start());
    EXPECT_EQ(loop->active_count(), 2);
    {
      FaultPlan plan;
      plan.fail_nth(SystemCall::epoll_ctl, 1, error);
      const FaultScope scope(plan);
      EXPECT_TRUE(runs_out(*loop));
    }
    EXPECT_EQ(calls,
              (std::vector<Events>{Events::error | Events::write, Events::error | Events::read}));
    EXPECT_FALSE(first.is_active());
    EXPECT_EQ(first.error(), system_error(error));
    EXPECT_EQ(second.error(), system_error(error));
    EXPECT_EQ(loop->active_count(), 0);
    pipe.fill();
    ASSERT_TRUE(first.start());
    ASSERT_FALSE(loop->run(Run::once));
    EXPECT_EQ(calls.back(), Events::read) << "and may be started again";
  }
}

TEST(RefusedDescriptor, ImmediateStartReturnsRefusal) {
  Pipe pipe;
  const auto loop = make_loop();
  int called = 0;
  Io io(*loop, pipe.ends[0], Events::read, [&called] { ++called; });
  for (const int error : {ENOMEM, ENOSPC, EBADF, EPERM}) {
    FaultPlan plan;
    plan.fail_nth(SystemCall::epoll_ctl, 1, error);
    const FaultScope scope(plan);
    EXPECT_EQ(io.start_now(), system_error(error));
    EXPECT_FALSE(io.is_active());
    EXPECT_EQ(loop->active_count(), 0);
  }
  EXPECT_TRUE(runs_out(*loop, Run::no_wait));
  EXPECT_EQ(called, 0);
  EXPECT_FALSE(io.start_now());
  pipe.fill();
  EXPECT_FALSE(loop->run(Run::once));
  EXPECT_TRUE(loop->has_work());
  EXPECT_EQ(called, 1);
}

TEST(RefusedDescriptor, DoesNotAffectOtherWatchersOfImmediateStart) {
  Pipe pipe;
  const auto loop = make_loop();
  int called = 0;
  Io lazy(*loop, pipe.ends[0], Events::read, [&called] { ++called; });
  Io immediate(*loop, pipe.ends[0], Events::urgent, [] { ADD_FAILURE(); });
  lazy.start();
  ASSERT_FALSE(loop->run(Run::no_wait));
  {
    FaultPlan plan;
    plan.fail_nth(SystemCall::epoll_ctl, 1, ENOMEM);
    const FaultScope scope(plan);
    EXPECT_EQ(immediate.start_now(), system_error(ENOMEM));
  }
  pipe.fill();
  for (int turn = 0; turn < 3 && called == 0; ++turn) ASSERT_FALSE(loop->run(Run::no_wait));
  EXPECT_EQ(called, 1);
  EXPECT_TRUE(lazy.is_active());
}

// A refused change leaves a part of the old registration in the kernel; the loop notices and sleeps
// again.
TEST(RefusedDescriptor, DoesNotKeepLoopFromSleeping) {
  Pipe pipe;
  const auto loop = make_loop();
  Io io(*loop, pipe.ends[0], Events::read, [] {});
  io.start();
  ASSERT_FALSE(loop->run(Run::no_wait));
  {
    FaultPlan plan;
    plan.fail_nth(SystemCall::epoll_ctl, 1, ENOMEM);
    const FaultScope scope(plan);
    io.modify(Events::read | Events::urgent);
    ASSERT_FALSE(loop->run(Run::no_wait));
  }
  ASSERT_FALSE(io.is_active());
  pipe.fill();
  Timer timer(*loop, [] {});
  timer.start(std::chrono::milliseconds{5});
  const std::uint64_t turns = loop->iteration();
  EXPECT_TRUE(runs_out(*loop));
  EXPECT_LE(loop->iteration() - turns, 6u);
}

// ---- a kernel's set that cannot be repaired

// Leaves a file in the kernel's set under a number that the loop has forgotten.
class BeyondRepair : public ::testing::Test {
 protected:
  BeyondRepair() : loop_(make_loop()) {
    Io io(*loop_, pipe_.ends[0], Events::read, [] {});
    io.start();
    EXPECT_FALSE(loop_->run(Run::no_wait));
    duplicate_ = ::fcntl(pipe_.ends[0], F_DUPFD_CLOEXEC, 0);
    io.stop_before_close();
    ::close(pipe_.ends[0]);
    pipe_.ends[0] = duplicate_;
    pipe_.fill();
  }

  Pipe pipe_;
  int duplicate_;
  std::unique_ptr<Loop> loop_;
};

TEST_F(BeyondRepair, PollDescriptorIsRecreatedSoThatLoopSleeps) {
  Timer timer(*loop_, [] {});
  timer.start(std::chrono::milliseconds{10});
  const std::uint64_t turns = loop_->iteration();
  EXPECT_TRUE(runs_out(*loop_));
  EXPECT_LE(loop_->iteration() - turns, 6u);
  EXPECT_GE(loop_->metrics().stale_events, 2u);
}

TEST_F(BeyondRepair, FailedRecreationIsRetried) {
  int called = 0;
  Timer timer(*loop_, [&called] { ++called; });
  timer.start(std::chrono::milliseconds{2});
  FaultPlan plan;
  plan.fail_nth(SystemCall::epoll_create, 1, EMFILE, 3);
  const FaultScope scope(plan);
  for (int i = 0; i < 1000 && called == 0; ++i) {
    if (const std::error_code error = loop_->run()) EXPECT_EQ(error, system_error(EMFILE));
  }
  EXPECT_EQ(called, 1);
}

TEST_F(BeyondRepair, LoopStaysWakeableAfterTemporaryRefusal) {
  FaultPlan plan;
  plan.fail_nth(SystemCall::epoll_ctl, 1, ENOMEM);
  const FaultScope scope(plan);
  for (int turn = 0; turn < 6; ++turn) loop_->run(Run::no_wait);
  ASSERT_EQ(plan.failures(SystemCall::epoll_ctl), 1u);
  loop_->ref();
  ASSERT_EQ(loop_->prepare_to_wait(), kForever);
  ASSERT_TRUE(loop_->post([] {}));
  pollfd sleeper{.fd = *loop_->poll_fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&sleeper, 1, 0), 1) << "the loop would sleep through a post()";
}

TEST_F(BeyondRepair, LoopPollsWhileWakeupIsRefused) {
  FaultPlan plan;
  plan.fail_share(SystemCall::epoll_ctl, 1, ENOMEM, 1);
  const FaultScope scope(plan);
  for (int turn = 0; turn < 6; ++turn) loop_->run(Run::no_wait);
  loop_->ref();
  const Nanos wait = loop_->prepare_to_wait();
  EXPECT_GT(wait, Nanos{0});
  EXPECT_LE(wait, std::chrono::milliseconds{10}) << "the loop would sleep through a post()";
}

// ---- after a fork

TEST(AfterFork, CanBeRetriedWhicheverCallFails) {
  for (const SystemCall call :
       {SystemCall::epoll_create, SystemCall::eventfd, SystemCall::epoll_ctl}) {
    for (std::uint64_t nth = 1; nth <= 4; ++nth) {
      SCOPED_TRACE(::testing::Message() << "call " << static_cast<int>(call) << " number " << nth);
      Pipe pipe;
      const auto loop = make_loop();
      int called = 0;
      Io io(*loop, pipe.ends[0], Events::read, [&called](Io& self) {
        ++called;
        self.stop();
      });
      io.start();
      ASSERT_FALSE(loop->run(Run::no_wait));
      FaultPlan plan;
      plan.fail_nth(call, nth, EMFILE);
      {
        const FaultScope scope(plan);
        std::error_code error = loop->after_fork();
        EXPECT_EQ(static_cast<bool>(error), plan.failures(call) > 0);
        if (error) error = loop->after_fork();
        ASSERT_FALSE(error);
      }
      pipe.fill();
      std::thread poster([&loop] { loop->post([] {}); });
      poster.join();
      ASSERT_FALSE(loop->run(Run::once));
      EXPECT_EQ(called, 1);
      EXPECT_EQ(loop->metrics().posts, 1u);
    }
  }
}

TEST(AfterFork, LeaksNothingWhicheverCallFails) {
  const auto before = testing::open_fds();
  for (const SystemCall call :
       {SystemCall::epoll_create, SystemCall::eventfd, SystemCall::epoll_ctl,
        SystemCall::timerfd_create, SystemCall::inotify_init}) {
    for (std::uint64_t nth = 1; nth <= 3; ++nth) {
      const auto loop = make_loop();
      Periodic periodic(*loop, [] {});
      Stat stat(*loop, [] {});
      periodic.start_every(std::chrono::hours{1});
      ASSERT_FALSE(stat.start("/"));
      FaultPlan plan;
      plan.fail_nth(call, nth, EMFILE);
      const FaultScope scope(plan);
      for (int tries = 0; loop->after_fork(); ++tries) ASSERT_LT(tries, 3);
      ASSERT_FALSE(loop->run(Run::no_wait));
    }
  }
  EXPECT_EQ(testing::open_fds(), before);
}

}  // namespace
}  // namespace spate
