#include "net/stream/timeouts.h"

#include <gtest/gtest.h>

namespace spate {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// The longest by which an idle timeout is late: two ticks.
constexpr std::int64_t kLate = 2 << 20;

TEST(Timeout, IsNeverDueUnlessSet) {
  Timeout timeout;
  timeout.restart(5);
  EXPECT_EQ(timeout.due(), kNever);
  timeout.set(milliseconds(1));
  EXPECT_EQ(timeout.due(), 1'000'005);
  timeout.restart(7);
  EXPECT_EQ(timeout.due(), 1'000'007);
  timeout.set(Nanos{0});
  EXPECT_EQ(timeout.due(), kNever);
}

TEST(IdleTimeout, IsNeverDueUnlessSet) {
  IdleTimeout timeout;
  EXPECT_EQ(timeout.due(12345), kNever);
  timeout.set(milliseconds(1));
  timeout.set(Nanos{0});
  EXPECT_EQ(timeout.due(12345), kNever);
}

TEST(IdleTimeout, IsNeverEarlyAndLittleLate) {
  for (const Nanos span : {Nanos{1}, Nanos{milliseconds(5)}, Nanos{hours(24)}}) {
    for (const std::int64_t begin : {std::int64_t{0}, std::int64_t{(1 << 20) - 1},
                                     std::int64_t{1} << 52, (std::int64_t{1} << 52) - 1}) {
      IdleTimeout timeout;
      timeout.set(span);
      timeout.restart(begin);
      const std::int64_t due = timeout.due(begin + span.count());
      EXPECT_GE(due, begin + span.count());
      EXPECT_LE(due, begin + span.count() + kLate);
    }
  }
}

TEST(IdleTimeout, IsDueAtOnceIfNegative) {
  IdleTimeout timeout;
  timeout.set(Nanos{-1});
  timeout.restart(0);
  EXPECT_LE(timeout.due(0), kLate);
}

}  // namespace
}  // namespace spate
