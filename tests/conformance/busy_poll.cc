// LoopOptions::spin: polling before sleeping. spinner_test.cc tests when the adaptive kind polls.
#include <thread>

#include "tests/conformance/harness.h"

namespace spate::testing {
namespace {

class BusyPollTest : public ::testing::TestWithParam<std::string_view> {
 protected:
  auto create(const Spin& spin) {
    auto loop = std::move(*Loop::create({.backend = GetParam(), .spin = spin}));
    loop->measure_waits(true);
    return loop;
  }
  auto create(Nanos window) { return create(Spin::fixed(window)); }
};
INSTANTIATE_TEST_SUITE_P(EveryBackend, BusyPollTest, ::testing::ValuesIn(backends_here()),
                         backend_test_name);

TEST_P(BusyPollTest, LoopDoesNotSleepWithinWindow) {
  const auto loop = create(1h);
  Probe<Timer> timer{*loop};
  ASSERT_TRUE(timer->start(50ms));
  const Nanos began = loop->now();
  while (timer.calls == 0) ASSERT_FALSE(loop->run(Run::once));
  EXPECT_GE(loop->now() - began, 50ms);
  EXPECT_EQ(loop->metrics().blocked, 0ns);
}

TEST_P(BusyPollTest, LoopSleepsAfterWindow) {
  const auto loop = create(100us);
  Probe<Timer> timer{*loop};
  wait_until_it_sleeps(*loop, [&](Nanos delay) {
    ASSERT_TRUE(timer->start(delay));
    const Nanos began = loop->now();
    while (timer->is_active()) ASSERT_FALSE(loop->run(Run::once));
    EXPECT_GE(loop->now() - began, delay);
  });
}

TEST_P(BusyPollTest, ReadyDescriptorIsDetected) {
  const auto loop = create(1h);
  Pipe pipe;
  Probe<Io> io{*loop, pipe.in(), Events::read};
  ASSERT_TRUE(io->start());
  Probe<Timer> writes{*loop};
  writes.then = [&] { pipe.fill(); };
  ASSERT_TRUE(writes->start(1ms));
  io.then = [&] { io->stop(); };
  while (io.calls == 0) ASSERT_FALSE(loop->run(Run::once));
  EXPECT_EQ(loop->metrics().blocked, 0ns);
}

TEST_P(BusyPollTest, PostIsDetectedWithoutWakeup) {
  const auto loop = create(1h);
  loop->ref();
  bool called = false;
  std::thread poster([&] { loop->post([&called] { called = true; }); });
  while (!called) ASSERT_FALSE(loop->run(Run::once));
  poster.join();
  loop->unref();
  EXPECT_EQ(loop->metrics().kernel_calls.wake_write, 0u);
}

TEST_P(BusyPollTest, SuspendedLoopSleeps) {
  const auto loop = create(50us);
  Probe<Timer> timer{*loop};
  loop->suspend();
  ASSERT_TRUE(timer->start(1ms));
  std::thread poster([&] {
    std::this_thread::sleep_for(20ms);  // Time in which it could poll thousands of times.
    loop->post([&] { loop->stop(); });
  });
  ASSERT_FALSE(loop->run());
  poster.join();
  EXPECT_EQ(timer.calls, 0);
  EXPECT_LT(loop->metrics().kernel_calls.wait, 100u);
}

TEST_P(BusyPollTest, AdaptiveLoopMissesNothingAndSleepsInLongWaits) {
  const auto loop = create(Spin::adaptive(1));
  Pipe pipe;
  Probe<Io> io{*loop, pipe.in(), Events::read};
  Probe<Timer> timer{*loop};
  io.then = [&] { pipe.drain(); };
  ASSERT_TRUE(io->start());
  for (int i = 0; i < 100; ++i) {
    pipe.fill();
    ASSERT_FALSE(loop->run(Run::once));
    ASSERT_TRUE(timer->start(10us));
    while (timer->is_active()) ASSERT_FALSE(loop->run(Run::once));
  }
  EXPECT_EQ(io.calls, 100);
  EXPECT_EQ(timer.calls, 100);
  wait_until_it_sleeps(*loop, [&](Nanos delay) {
    ASSERT_TRUE(timer->start(delay));
    while (timer->is_active()) ASSERT_FALSE(loop->run(Run::once));
  });
}

TEST(BusyPollClockTest, CallerClockDisablesSpinning) {
  ScriptedLoop scripted({.spin = Spin::fixed(1h)});
  Probe<Timer> timer{*scripted.loop};
  ASSERT_TRUE(timer->start(1h));
  while (timer.calls == 0) ASSERT_FALSE(scripted.loop->run(Run::once));
  for (const Nanos timeout : scripted.backend->waits) EXPECT_GT(timeout, 0ns);
}

}  // namespace
}  // namespace spate::testing
