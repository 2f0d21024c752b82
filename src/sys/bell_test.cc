#include "sys/bell.h"

#include <gtest/gtest.h>

namespace spate::sys {
namespace {

TEST(SysBell, IsReadableUntilSilenced) {
  Bell bell;
  ASSERT_EQ(bell.open(), 0);
  EXPECT_EQ(look_for_input(bell.fd()), 0);
  bell.ring();
  bell.ring();
  EXPECT_EQ(look_for_input(bell.fd()), POLLIN);
  bell.silence();
  EXPECT_EQ(look_for_input(bell.fd()), 0);
}

TEST(SysBell, DoesNotBlockWhenUnread) {
  Bell bell;
  ASSERT_EQ(bell.open(), 0);
  for (int i = 0; i < 100'000; ++i) bell.ring();
  EXPECT_EQ(look_for_input(bell.fd()), POLLIN);
  bell.silence();
  EXPECT_EQ(look_for_input(bell.fd()), 0);
}

TEST(SysBell, IsSilentWhenReopened) {
  Bell bell;
  ASSERT_EQ(bell.open(), 0);
  bell.ring();
  ASSERT_EQ(bell.open(), 0);
  EXPECT_EQ(look_for_input(bell.fd()), 0);
}

}  // namespace
}  // namespace spate::sys
