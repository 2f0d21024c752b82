#include "sys/inotify.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace spate::sys {
namespace {

std::string record_of(int watch, std::uint32_t mask, const std::string& name, std::size_t padding) {
  inotify_event head{};
  head.wd = watch;
  head.mask = mask;
  head.len = static_cast<std::uint32_t>(name.size() + padding);
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
  return bytes + name + std::string(padding, '\0');
}

TEST(InotifyRecord, RecordsAreReadInOrder) {
  const std::string bytes = record_of(1, IN_CREATE, "name", 12) + record_of(2, IN_IGNORED, "", 0);
  InotifyRecord record;
  ASSERT_TRUE(read_record(bytes, 0, record));
  EXPECT_EQ(record.watch, 1);
  EXPECT_EQ(record.mask, static_cast<std::uint32_t>(IN_CREATE));
  EXPECT_EQ(record.name, "name");
  ASSERT_TRUE(read_record(bytes, record.end, record));
  EXPECT_EQ(record.watch, 2);
  EXPECT_EQ(record.name, "");
  EXPECT_FALSE(read_record(bytes, record.end, record));
  EXPECT_FALSE(read_record(bytes, bytes.size() + 1, record));
}

TEST(InotifyRecord, IncompleteRecordIsNotRead) {
  const std::string bytes = record_of(1, IN_CREATE, "name", 4);
  InotifyRecord record;
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(read_record(std::string_view(bytes).substr(0, size), 0, record)) << size;
}

TEST(InotifyRecord, NameWithoutPaddingIsBounded) {
  const std::string bytes = record_of(1, IN_CREATE, "name", 0) + "more";
  InotifyRecord record;
  ASSERT_TRUE(read_record(bytes, 0, record));
  EXPECT_EQ(record.name, "name");
}

}  // namespace
}  // namespace spate::sys
