// EINTR, failing waits, and readiness that is late or false: whatever the kernel returns, nothing
// gets lost.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>

#include "backend/registry.h"
#include "base/fault.h"
#include "spate/layer/layer.h"
#include "spate/timer.h"
#include "system/open_fds.h"
#include "tests/support/backends.h"
#include "tests/support/faulty_backend.h"
#include "tests/support/make_loop.h"
#include "tests/support/running.h"
#include "tests/support/traffic.h"

namespace spate {
namespace {

using testing::Faults;
using testing::FaultyBackend;
using testing::make_loop;
using testing::runs_out;
using testing::Traffic;

SystemCall wait_call(std::string_view backend) {
  return backend == "epoll"      ? SystemCall::epoll_wait
         : backend == "kqueue"   ? SystemCall::kevent_wait
         : backend == "io_uring" ? SystemCall::io_uring_enter
         : backend == "poll"     ? SystemCall::poll
                                 : SystemCall::select;
}

class Interruption : public ::testing::TestWithParam<std::string_view> {
 protected:
  static void expect_all_through(Loop& loop) {
    Traffic traffic(loop);
    ASSERT_TRUE(traffic.start());
    traffic.run();
    EXPECT_TRUE(traffic.is_through());
    EXPECT_TRUE(traffic.in_order);
    EXPECT_FALSE(traffic.early);
    EXPECT_EQ(traffic.received, Traffic::kBytes);
    EXPECT_EQ(traffic.posts, Traffic::kPosts);
    EXPECT_EQ(traffic.signals, Traffic::kSignals);
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, Interruption, ::testing::ValuesIn(testing::backends_here()),
                         testing::backend_test_name);
// A loop whose ring fails falls back to epoll: see ring_test.cc.
using RinglessInterruption = Interruption;
INSTANTIATE_TEST_SUITE_P(Backends, RinglessInterruption,
                         testing::backends_where(testing::backends_here(),
                                                 [](std::string_view name) {
                                                   return name != "io_uring";
                                                 }),
                         testing::backend_test_name);

TEST_P(Interruption, InterruptingFirstWaitsLosesNothing) {
  for (std::uint64_t nth = 1; nth <= 6; ++nth) {
    const auto loop = make_loop(GetParam());
    FaultPlan plan;
    plan.fail_nth(wait_call(GetParam()), nth, EINTR, 3);
    const FaultScope scope(plan);
    expect_all_through(*loop);
    EXPECT_EQ(plan.failures(wait_call(GetParam())), 3u);
  }
}

TEST_P(Interruption, InterruptingHalfOfAllCallsLosesNothing) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto loop = make_loop(GetParam());
    FaultPlan plan;
    plan.fail_share(wait_call(GetParam()), 0.5, EINTR, seed)
        .fail_share(SystemCall::read, 0.5, EINTR, seed)
        .fail_share(SystemCall::write, 0.5, EINTR, seed);
    const FaultScope scope(plan);
    expect_all_through(*loop);
    EXPECT_GT(plan.failures(wait_call(GetParam())), 0u);
  }
}

TEST_P(Interruption, InterruptedWaitIsNotErrorOfRun) {
  const auto loop = make_loop(GetParam());
  Timer timer(*loop, [] {});
  timer.start(std::chrono::milliseconds{1});
  FaultPlan plan;
  plan.fail_nth(wait_call(GetParam()), 1, EINTR, 5);
  const FaultScope scope(plan);
  EXPECT_TRUE(runs_out(*loop));
}

TEST_P(RinglessInterruption, FailedWaitIsReportedAndLosesNothing) {
  for (const int error : {EINVAL, ENOMEM, EFAULT}) {
    const auto loop = make_loop(GetParam());
    FaultPlan plan;
    plan.fail_share(wait_call(GetParam()), 0.3, error, 3);
    const FaultScope scope(plan);
    Traffic traffic(*loop);
    ASSERT_TRUE(traffic.start());
    traffic.run();
    EXPECT_TRUE(traffic.is_through());
    EXPECT_GT(traffic.errors, 0);
  }
}

TEST_P(RinglessInterruption, FailedWaitReportsReason) {
  const auto loop = make_loop(GetParam());
  int called = 0;
  Timer timer(*loop, [&called] { ++called; });
  timer.start(Nanos{0});
  FaultPlan plan;
  plan.fail_nth(wait_call(GetParam()), 1, ENOMEM);
  const FaultScope scope(plan);
  EXPECT_EQ(loop->run(), std::error_code(ENOMEM, std::system_category()));
  EXPECT_EQ(loop->depth(), 0);
  EXPECT_EQ(called, 1) << "what was due is called all the same";
  EXPECT_TRUE(runs_out(*loop));
}

TEST_P(Interruption, LateEventsLoseNothing) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    auto backend =
        std::make_unique<FaultyBackend>(std::move(open_backend(GetParam())->backend),
                                        Faults{.late = 2, .spurious = 0, .stale = 0, .seed = seed});
    const FaultyBackend& faulty = *backend;
    const auto loop = std::move(*NodeLoop::create(std::move(backend), {}));
    expect_all_through(*loop);
    EXPECT_GT(faulty.held_back, 0);
  }
}

TEST_P(Interruption, SpuriousEventsLoseNothing) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    auto backend =
        std::make_unique<FaultyBackend>(std::move(open_backend(GetParam())->backend),
                                        Faults{.late = 0, .spurious = 2, .stale = 0, .seed = seed});
    const FaultyBackend& faulty = *backend;
    const auto loop = std::move(*NodeLoop::create(std::move(backend), {}));
    expect_all_through(*loop);
    EXPECT_GT(faulty.made_up, 0);
  }
}

TEST_P(Interruption, LateSpuriousAndStaleEventsAndSignalsLoseNothing) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    auto backend =
        std::make_unique<FaultyBackend>(std::move(open_backend(GetParam())->backend),
                                        Faults{.late = 3, .spurious = 3, .stale = 2, .seed = seed});
    const auto loop = std::move(*NodeLoop::create(std::move(backend), {}));
    FaultPlan plan;
    plan.fail_share(wait_call(GetParam()), 0.3, EINTR, seed)
        .fail_share(SystemCall::read, 0.3, EINTR, 1);
    const FaultScope scope(plan);
    expect_all_through(*loop);
    expect_all_through(*loop);
  }
}

TEST_P(Interruption, InterruptionLeaksNoDescriptor) {
  const auto before = testing::open_fds();
  {
    const auto loop = make_loop(GetParam());
    expect_all_through(*loop);
  }
  EXPECT_EQ(testing::open_fds(), before);
}

// If the program runs the loop again, each run() returns the error, and due callbacks are called.
TEST_P(RinglessInterruption, PermanentlyFailingWaitStopsNothingElse) {
  const auto loop = make_loop(GetParam());
  int ticks = 0;
  int tasks = 0;
  Timer timer(*loop, [&ticks] { ++ticks; });
  FaultPlan plan;
  plan.fail_share(wait_call(GetParam()), 1, EFAULT, 1);
  const FaultScope scope(plan);
  for (int i = 1; i <= 5; ++i) {
    timer.start(Nanos{0});
    loop->post([&tasks] { ++tasks; });
    const std::uint64_t waits = plan.calls(wait_call(GetParam()));
    EXPECT_EQ(loop->run(), std::error_code(EFAULT, std::system_category()));
    EXPECT_EQ(ticks, i);
    EXPECT_EQ(tasks, i);
    EXPECT_EQ(plan.calls(wait_call(GetParam())), waits + 1) << "once a run()";
  }
}

// ---- epoll's precise wait

TEST(PreciseWait, FallsBackToMillisecondsAndIsNotTriedAgain) {
  for (const int error : {ENOSYS, EPERM}) {
    const auto loop = make_loop("epoll");
    Timer timer(*loop, [] {});
    timer.start(Nanos{3'600'000'000'000});
    FaultPlan plan;
    plan.fail_share(SystemCall::epoll_wait, 1, error, 1);
    const FaultScope scope(plan);
    EXPECT_EQ(loop->run(Run::once), std::error_code(error, std::system_category()));
    EXPECT_EQ(plan.calls(SystemCall::epoll_wait), 2u);
    EXPECT_EQ(loop->run(Run::once), std::error_code(error, std::system_category()));
    EXPECT_EQ(plan.calls(SystemCall::epoll_wait), 3u);
  }
}

// Without rounding up, the loop would wait for 1 ms and then spin. The kernel may interrupt a wait,
// for example once after a ring of this thread was closed, so a few more calls are allowed.
TEST(PreciseWait, MillisecondsAreRoundedUp) {
  const auto loop = make_loop("epoll");
  bool expired = false;
  Timer timer(*loop, [&expired] { expired = true; });
  FaultPlan plan;
  plan.fail_nth(SystemCall::epoll_wait, 1, ENOSYS);
  const FaultScope scope(plan);
  timer.start(Nanos{1'900'000});
  EXPECT_FALSE(loop->run());
  EXPECT_TRUE(expired);
  EXPECT_LE(plan.calls(SystemCall::epoll_wait), 20u);
}

TEST(PreciseWait, IsNotUsedForInfiniteOrZeroTimeouts) {
  const auto loop = make_loop("epoll");
  FaultPlan plan;
  plan.fail_nth(SystemCall::epoll_wait, 1, ENOSYS);
  const FaultScope scope(plan);
  EXPECT_EQ(loop->run(Run::no_wait), std::error_code(ENOSYS, std::system_category()));
}

}  // namespace
}  // namespace spate
