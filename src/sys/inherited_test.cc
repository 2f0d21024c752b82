#include "sys/inherited.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace spate::sys {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Not;

std::vector<int> inherited(int first) {
  std::vector<int> found;
  EXPECT_EQ(for_each_inherited(first,
                               [&found](int fd) {
                                 found.push_back(fd);
                                 return 0;
                               }),
            0);
  return found;
}

TEST(SysInherited, FindsOnlyDescriptorsWithoutCloseOnExec) {
  const Descriptor kept(::fcntl(0, F_DUPFD, 3));
  const Descriptor closed(::fcntl(0, F_DUPFD_CLOEXEC, 3));
  ASSERT_TRUE(kept.is_open() && closed.is_open());
  const std::vector<int> found = inherited(3);
  EXPECT_THAT(found, Contains(kept.get()));
  EXPECT_THAT(found, Not(Contains(closed.get())));
  EXPECT_THAT(found, Each(Ge(3)));
  EXPECT_THAT(inherited(kept.get() + 1), Not(Contains(kept.get())));
}

TEST(SysInherited, OmitsItsOwnDescriptor) {
  const std::vector<int> before = inherited(0);
  EXPECT_EQ(inherited(0), before);
  for (const int fd : before) EXPECT_GE(::fcntl(fd, F_GETFD), 0) << fd;
}

TEST(SysInherited, EndsAtFirstError) {
  const Descriptor one(::fcntl(0, F_DUPFD, 3));
  const Descriptor other(::fcntl(0, F_DUPFD, 3));
  ASSERT_TRUE(one.is_open() && other.is_open());
  int calls = 0;
  EXPECT_EQ(for_each_inherited(3, [&calls](int) { return ++calls == 1 ? ENOMEM : 0; }), ENOMEM);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace spate::sys
