#include "base/backoff.h"

#include <gtest/gtest.h>

#include <climits>

namespace spate {
namespace {

TEST(Backoff, DoublesUpToTheMost) {
  EXPECT_EQ(doubled(Nanos{3}, Nanos{20}, 0), Nanos{3});
  EXPECT_EQ(doubled(Nanos{3}, Nanos{20}, 2), Nanos{12});
  EXPECT_EQ(doubled(Nanos{3}, Nanos{20}, 3), Nanos{20});
  EXPECT_EQ(doubled(Nanos{30}, Nanos{20}, 0), Nanos{20});
}

TEST(Backoff, DoesNotOverflow) {
  EXPECT_EQ(doubled(Nanos{0}, Nanos{20}, UINT_MAX), Nanos{0});
  EXPECT_EQ(doubled(Nanos{1}, Nanos{INT64_MAX}, UINT_MAX), Nanos{INT64_MAX});
}

}  // namespace
}  // namespace spate
