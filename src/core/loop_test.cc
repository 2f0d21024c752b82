#include "spate/loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <vector>

#include "base/fault.h"
#include "spate/io.h"
#include "spate/periodic.h"
#include "spate/signal.h"
#include "spate/timer.h"
#include "system/kernel_set.h"
#include "tests/support/missing.h"
#include "tests/support/running.h"
#include "tests/support/scripted.h"
#include "tests/support/system_error.h"

namespace spate {
namespace {

using testing::runs_out;
using testing::ScriptedLoop;
using testing::system_error;

TEST(Loop, ReportsDescriptorBeyondItsTableInCallback) {
  ScriptedLoop scripted;
  std::vector<Events> calls;
  Io io(*scripted.loop, 1'000'000, Events::read, [&calls](Events e) { calls.push_back(e); });
  EXPECT_TRUE(io.start());
  EXPECT_TRUE(calls.empty()) << "not inside start()";
  EXPECT_FALSE(io.is_active());
  EXPECT_TRUE(runs_out(*scripted.loop));
  EXPECT_EQ(calls, std::vector<Events>{Events::error | Events::read});
  EXPECT_EQ(io.error(), system_error(EBADF));
  EXPECT_EQ(io.start_now(), system_error(EBADF));
}

TEST(Loop, ReportsThatItsTableCannotGrow) {
  const int fd = ::fcntl(0, F_DUPFD_CLOEXEC, 500);
  ASSERT_GE(fd, 500);
  for (std::uint64_t nth = 1; nth <= 3; ++nth) {
    ScriptedLoop scripted;
    Io io(*scripted.loop, fd, Events::read, [] {});
    {
      FaultPlan plan;
      plan.fail_nth(SystemCall::allocate, nth, ENOMEM, 10);
      const FaultScope scope(plan);
      EXPECT_FALSE(io.start());
      EXPECT_FALSE(io.is_active());
      EXPECT_EQ(io.start_now(), system_error(ENOMEM));
      EXPECT_EQ(scripted.loop->once(fd, Events::read, kForever, [](Events) {}),
                system_error(ENOMEM));
      EXPECT_EQ(scripted.loop->active_count(), 0);
    }
    EXPECT_TRUE(io.start());
    EXPECT_EQ(scripted.loop->active_count(), 1);
  }
  ::close(fd);
}

TEST(Loop, RefusesOnceWithoutDescriptorOrEvent) {
  ScriptedLoop scripted;
  const auto never = [](Events) { ADD_FAILURE(); };
  EXPECT_EQ(scripted.loop->once(-1, Events::read, kForever, never), system_error(EINVAL));
  EXPECT_EQ(scripted.loop->once(0, Events::none, Nanos{1}, never), system_error(EINVAL));
  EXPECT_EQ(scripted.loop->once(0, Events::timer, Nanos{1}, never), system_error(EINVAL));
  EXPECT_EQ(scripted.loop->active_count(), 0);
}

TEST(Loop, AllowsAtMostSixteenLoopsToWatchSignal) {
  struct Watching {
    std::unique_ptr<Loop> loop = std::move(*Loop::create());
    Signal signal{*loop, [] {}};
  };
  std::vector<std::unique_ptr<Watching>> watching;
  for (int i = 0; i < 16; ++i) {
    watching.push_back(std::make_unique<Watching>());
    ASSERT_FALSE(watching.back()->signal.start(SIGUSR2));
  }
  Watching last;
  EXPECT_EQ(last.signal.start(SIGUSR2), system_error(ENOSPC));
  EXPECT_EQ(last.loop->active_count(), 0);
  watching.pop_back();
  EXPECT_FALSE(last.signal.start(SIGUSR2));
}

TEST(Loop, FreezesLoopTimeBetweenSuspendAndResume) {
  ScriptedLoop scripted;
  const Nanos before = scripted.loop->now();
  int called = 0;
  Timer timer(*scripted.loop, [&called] { ++called; });
  timer.start(std::chrono::seconds{1});
  scripted.loop->suspend();
  scripted.clock.advance(std::chrono::hours{8});
  scripted.loop->update_now();
  EXPECT_EQ(scripted.loop->now(), before) << "it stands still";
  scripted.loop->resume();
  EXPECT_EQ(scripted.loop->now(), before);
  EXPECT_FALSE(scripted.loop->run(Run::no_wait));
  EXPECT_TRUE(scripted.loop->has_work());
  EXPECT_EQ(called, 0);
  scripted.clock.advance(std::chrono::seconds{1});
  EXPECT_TRUE(runs_out(*scripted.loop, Run::no_wait));
  EXPECT_EQ(called, 1);
}

TEST(Loop, TimerStartedInSuspendedLoopWaitsForResume) {
  ScriptedLoop scripted;
  scripted.clock.advance(std::chrono::seconds{2});  // now() is older than the suspension.
  scripted.loop->suspend();
  int called = 0;
  Timer timer(*scripted.loop, [&called] { ++called; });
  ASSERT_TRUE(timer.start(std::chrono::seconds{1}));
  scripted.clock.advance(std::chrono::hours{1});
  ASSERT_FALSE(scripted.loop->run(Run::no_wait));
  EXPECT_EQ(called, 0);
  scripted.loop->resume();
  ASSERT_FALSE(scripted.loop->run(Run::no_wait));
  EXPECT_EQ(called, 0);
  scripted.clock.advance(std::chrono::seconds{1});
  EXPECT_TRUE(runs_out(*scripted.loop, Run::no_wait));
  EXPECT_EQ(called, 1);
}

TEST(Loop, AcceptsLongestRepeatInterval) {
  ScriptedLoop scripted;
  int called = 0;
  Timer timer(*scripted.loop, [&called] { ++called; });
  ASSERT_TRUE(timer.start(Nanos{1}, Nanos::max()));
  scripted.clock.advance(Nanos{1});
  ASSERT_FALSE(scripted.loop->run(Run::no_wait));
  EXPECT_EQ(called, 1);
  EXPECT_GT(timer.remaining(), std::chrono::hours{24});
  ASSERT_TRUE(timer.again());
  ASSERT_TRUE(timer.start(Nanos::max(), Nanos::max()));
  ASSERT_FALSE(scripted.loop->run(Run::no_wait));
  EXPECT_EQ(called, 1);
}

TEST(Loop, AcceptsLongestIntervalAndExtremeWallClockTimes) {
  ScriptedLoop scripted;
  int called = 0;
  Periodic periodic(*scripted.loop, [&called] { ++called; });
  ASSERT_TRUE(periodic.start_every(Nanos::max()));
  ASSERT_FALSE(scripted.loop->run(Run::no_wait));
  ASSERT_TRUE(periodic.start_at(WallTime::max()));
  ASSERT_FALSE(scripted.loop->run(Run::no_wait));
  EXPECT_EQ(called, 0);
  ASSERT_TRUE(periodic.start_at(WallTime::min()));
  EXPECT_TRUE(runs_out(*scripted.loop, Run::no_wait));
  EXPECT_EQ(called, 1) << "a time long past is due at once";
}

// ---- only with a real backend

TEST(KernelSet, DeliversMoreEventsThanOneBatchHolds) {
  const auto loop = std::move(*Loop::create({.backend = testing::kKernelSet}));
  constexpr int kPipes = 400;
  struct Pipe {
    int ends[2];
  };
  std::vector<Pipe> pipes(kPipes);
  std::vector<std::unique_ptr<Io>> ios;
  int called = 0;
  for (Pipe& pipe : pipes) {
    ASSERT_EQ(::pipe(pipe.ends), 0);
    ios.push_back(std::make_unique<Io>(*loop, pipe.ends[1], Events::write, [&called](Io& io) {
      ++called;
      io.stop();
    }));
    ASSERT_TRUE(ios.back()->start());
  }
  EXPECT_TRUE(runs_out(*loop));
  EXPECT_EQ(called, kPipes);
  for (const Pipe& pipe : pipes) {
    ::close(pipe.ends[0]);
    ::close(pipe.ends[1]);
  }
}

TEST(Select, RefusesDescriptorBeyondItsSetSize) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < FD_SETSIZE + 10)
    GTEST_SKIP() << testing::too_few_descriptors(FD_SETSIZE + 10);
  const rlimit before = limit;
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  const int fd = ::fcntl(0, F_DUPFD_CLOEXEC, FD_SETSIZE);
  ASSERT_GE(fd, FD_SETSIZE);
  const auto loop = std::move(*Loop::create({.backend = "select"}));
  Events got = Events::none;
  Io io(*loop, fd, Events::read, [&got](Events events) { got = events; });
  EXPECT_EQ(io.start_now(), Error::fd_out_of_range);
  ASSERT_TRUE(io.start());
  EXPECT_TRUE(runs_out(*loop));
  EXPECT_EQ(got, Events::error | Events::read);
  EXPECT_EQ(io.error(), system_error(ERANGE));
  ::close(fd);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST(PollAndSelect, StopWatchersOfDescriptorClosedWhileRegistered) {
  for (const std::string_view backend : {"poll", "select"}) {
    const auto loop = std::move(*Loop::create({.backend = backend}));
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    Events got = Events::none;
    Io io(*loop, ends[0], Events::read, [&got](Events events) { got = events; });
    ASSERT_TRUE(io.start());
    ASSERT_FALSE(loop->run(Run::no_wait));
    ::close(ends[0]);
    EXPECT_TRUE(runs_out(*loop));
    EXPECT_EQ(got, Events::error | Events::read) << backend;
    EXPECT_EQ(io.error(), system_error(EBADF)) << backend;
    ::close(ends[1]);
  }
}

}  // namespace
}  // namespace spate
