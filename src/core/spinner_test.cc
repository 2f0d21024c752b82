#include "core/spinner.h"

#include <gtest/gtest.h>

namespace spate {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kWindow{200us};

// Simulates waits, with its own clock, for events that arrive after a given span.
class Waiter {
 public:
  explicit Waiter(const Spin& spin) : spinner_(spin) {}

  // Waits once for an event that arrives after `span`, then works for `work`. Returns how long it
  // spun.
  Nanos wait(Nanos span, Nanos work = 5us) {
    const Nanos window = spinner_.window(now_);
    const Nanos looked = std::min(window, span);
    spinner_.note(looked, span, span <= window);
    now_ += span + work;
    looked_ += looked;
    return looked;
  }
  // Waits `times` times. Returns the sum.
  Nanos wait_often(int times, Nanos span) {
    const Nanos before = looked_;
    for (int i = 0; i < times; ++i) wait(span);
    return looked_ - before;
  }
  Nanos now() const { return now_; }

 private:
  Spinner spinner_;
  Nanos now_{1s};
  Nanos looked_{0};
};

TEST(Spinner, NeverSpinsByDefault) { EXPECT_FALSE(Spinner(Spin{}).is_on()); }

TEST(Spinner, SpinsForFixedWindowRegardlessOfSuccess) {
  Waiter waiter(Spin::fixed(kWindow));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(waiter.wait(1s), kWindow);
  EXPECT_EQ(waiter.wait(30us), 30us);
}

TEST(Spinner, SpinsWhenWaitsAreShort) {
  Waiter waiter(Spin::adaptive(1));
  waiter.wait_often(100, 10us);
  EXPECT_EQ(waiter.wait_often(1000, 10us), 10ms) << "all of it was looked for";
}

TEST(Spinner, SleepsWhenWaitsAreLong) {
  Waiter waiter(Spin::adaptive(1));
  const Nanos began = waiter.now();
  const Nanos looked = waiter.wait_often(1000, 5ms);
  EXPECT_LE(looked, (waiter.now() - began) / 1000);
  EXPECT_EQ(waiter.wait_often(1000, 5ms), 0ns) << "it has learned";
}

TEST(Spinner, ResumesSpinningSoonAfterLongWait) {
  Waiter waiter(Spin::adaptive(1));
  waiter.wait_often(100, 10us);
  waiter.wait(1s);
  waiter.wait_often(40, 10us);
  EXPECT_EQ(waiter.wait_often(100, 10us), 1ms);
}

// On a machine with one core the peer answers only when the loop sleeps.
TEST(Spinner, BacksOffWhereSpinningNeverSucceeds) {
  Spinner spinner(Spin::adaptive(1));
  Nanos now = 1s;
  Nanos looked{0};
  for (int i = 0; i < 100'000; ++i) {
    const Nanos window = spinner.window(now);
    spinner.note(window, window + 10us, false);
    now += window + 15us;
    looked += window;
  }
  EXPECT_GT(looked, 0ns) << "now and then it tries again";
  EXPECT_LT(looked, (now - 1s) / 100);
}

TEST(Spinner, StopsSpinningInLongWaitsEvenWithLargestWindow) {
  Waiter waiter(Spin::adaptive(1, Nanos::max()));
  EXPECT_EQ(waiter.wait_often(40, 1s), 20us) << "the first wait only";
}

TEST(Spinner, KeepsToItsShare) {
  Waiter waiter(Spin::adaptive(0.25));
  const Nanos began = waiter.now();
  const Nanos looked = waiter.wait_often(100'000, 20us);
  EXPECT_LE(looked, (waiter.now() - began) * 26 / 100);
  EXPECT_GE(looked, (waiter.now() - began) * 15 / 100);
}

TEST(Spinner, AccumulatesAtMostOneBurstWhileIdle) {
  Waiter waiter(Spin::adaptive(0.01));
  waiter.wait(3600s);
  const Nanos began = waiter.now();
  const Nanos looked = waiter.wait_often(100'000, 20us);
  EXPECT_LE(looked, (waiter.now() - began) / 100 + 2ms);
}

}  // namespace
}  // namespace spate
