#include "sys/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>

namespace spate::sys {
namespace {

bool exists(const char* path) { return ::access(path, F_OK) == 0; }

TEST(LockFile, ExistsWhileLocked) {
  const char* const path = "spate_lock_file_test";
  std::remove(path);
  std::optional<LockFile> first(std::in_place);
  EXPECT_EQ(first->lock(path), 0);
  EXPECT_TRUE(exists(path));
  {
    LockFile second;
    EXPECT_EQ(second.lock(path), -EAGAIN);
  }
  EXPECT_TRUE(exists(path)) << "removed by one that did not have it";
  first.reset();
  EXPECT_FALSE(exists(path));
  LockFile third;
  EXPECT_EQ(third.lock(path), 0);
}

TEST(LockFile, LocksFileLeftByKilledProcess) {
  const char* const path = "spate_lock_file_left_test";
  const Descriptor left(::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(left.is_open());
  {
    LockFile lock;
    EXPECT_EQ(lock.lock(path), 0);
  }
  EXPECT_FALSE(exists(path));
}

TEST(LockFile, DoesNotFollowLinks) {
  const char* const path = "spate_lock_file_link_test";
  std::remove(path);
  ASSERT_EQ(::symlink("spate_lock_file_target", path), 0);
  {
    LockFile lock;
    EXPECT_EQ(lock.lock(path), -ELOOP);
  }
  EXPECT_FALSE(exists("spate_lock_file_target"));
  std::remove(path);
}

}  // namespace
}  // namespace spate::sys
