#include "base/backoff.h"

#include <gtest/gtest.h>

#include <climits>

namespace spate {
namespace {

TEST(Backoff, DoublesUpToMaximum) {
  EXPECT_EQ(doubled(Nanos{3}, Nanos{20}, 0), Nanos{3});
  EXPECT_EQ(doubled(Nanos{3}, Nanos{20}, 2), Nanos{12});
  EXPECT_EQ(doubled(Nanos{3}, Nanos{20}, 3), Nanos{20});
  EXPECT_EQ(doubled(Nanos{30}, Nanos{20}, 0), Nanos{20});
}

TEST(Backoff, DoesNotOverflow) {
  EXPECT_EQ(doubled(Nanos{0}, Nanos{20}, UINT_MAX), Nanos{0});
  EXPECT_EQ(doubled(Nanos{1}, Nanos{INT64_MAX}, UINT_MAX), Nanos{INT64_MAX});
}

TEST(Backoff, JitterShortensDelays) {
  Backoff backoff(1);
  EXPECT_EQ(backoff.after(0, Nanos{100}, Nanos{1000}, 0), Nanos{100});
  EXPECT_EQ(backoff.after(3, Nanos{100}, Nanos{1000}, 0), Nanos{400});
  for (int i = 0; i < 100; ++i) {
    const Nanos delay = backoff.after(9, Nanos{100}, Nanos{1000}, 0.5);
    EXPECT_GE(delay, Nanos{500});
    EXPECT_LE(delay, Nanos{1000});
  }
  EXPECT_NE(backoff.after(1, kForever, kForever, 1), backoff.after(1, kForever, kForever, 1));
}

}  // namespace
}  // namespace spate
