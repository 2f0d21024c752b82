#include "spate/version.h"

#include <gtest/gtest.h>

#include <string>

#include "spate.h"

namespace spate {
namespace {

TEST(Version, MatchesHeaders) {
  EXPECT_EQ(version(), SPATE_VERSION_STRING);
  EXPECT_EQ(version_number(), SPATE_VERSION);
  EXPECT_EQ(version(), std::to_string(SPATE_VERSION_MAJOR) + "." +
                           std::to_string(SPATE_VERSION_MINOR) + "." +
                           std::to_string(SPATE_VERSION_PATCH));
}

TEST(Version, MatchesCApi) {
  EXPECT_EQ(version(), spate_version());
  EXPECT_EQ(version_number(), spate_version_number());
}

TEST(Version, IncreasesNumerically) {
  static_assert(SPATE_VERSION_NUMBER(1, 2, 3) == 10203);
  static_assert(SPATE_VERSION_NUMBER(0, 9, 99) < SPATE_VERSION_NUMBER(0, 10, 0));
  static_assert(SPATE_VERSION_NUMBER(0, 99, 99) < SPATE_VERSION_NUMBER(1, 0, 0));
}

}  // namespace
}  // namespace spate
