#include "base/fault.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <optional>
#include <thread>

namespace spate {
namespace {

TEST(FaultScope, WaitsForThreadThatAsksItsPlan) {
  std::latch entered(1);
  std::latch may_leave(1);
  std::atomic<bool> has_left{false};
  FaultPlan plan;
  plan.before_nth(SystemCall::read, 1, [&] {
    entered.count_down();
    may_leave.wait();
    has_left = true;
  });
  std::optional<FaultScope> scope(plan);
  std::thread asks([] { EXPECT_EQ(injected(SystemCall::read), 0); });
  std::thread releases([&] {
    while (installed_plan.load() != nullptr) std::this_thread::yield();
    may_leave.count_down();
  });
  entered.wait();
  scope.reset();
  EXPECT_TRUE(has_left);
  asks.join();
  releases.join();
}

}  // namespace
}  // namespace spate
