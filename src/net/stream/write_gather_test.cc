#include "net/stream/write_gather.h"

#include <gtest/gtest.h>

#include <string>

namespace spate {
namespace {

class WriteGatherTest : public ::testing::Test {
 protected:
  WriteGatherTest() { EXPECT_TRUE(gather_.open()); }

  std::string take() {
    Bytes pieces[2];
    const std::size_t count = gather_.take(pieces);
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += text_of(pieces[i]);
    return text;
  }

  WriteGather gather_;
};

TEST_F(WriteGatherTest, CopiesAreLimitedToCapacity) {
  gather_.begin(nullptr, {});
  const std::string piece(WriteGather::kLargestCopied, 'x');
  for (std::size_t size = 0; size < WriteGather::kCapacity; size += piece.size())
    EXPECT_TRUE(gather_.add(bytes_of(piece)));
  EXPECT_EQ(gather_.size(), WriteGather::kCapacity);
  EXPECT_FALSE(gather_.add(bytes_of("y")));
  EXPECT_EQ(take(), std::string(WriteGather::kCapacity, 'x'));
  EXPECT_TRUE(gather_.add(bytes_of("y"))) << "there is room again";
  EXPECT_EQ(take(), "y");
}

TEST_F(WriteGatherTest, LargeWritesAreNotCopied) {
  gather_.begin(nullptr, {});
  EXPECT_FALSE(gather_.add(bytes_of(std::string(WriteGather::kLargestCopied + 1, 'x'))));
  EXPECT_TRUE(gather_.empty());
}

TEST_F(WriteGatherTest, ReceivedDataIsWrittenWithoutCopy) {
  const std::string arrived(2 * WriteGather::kCapacity, 'a');
  gather_.begin(nullptr, bytes_of(arrived));
  EXPECT_TRUE(gather_.add(bytes_of(arrived).first(20'000)));
  EXPECT_TRUE(gather_.add(bytes_of(arrived).subspan(20'000)));
  EXPECT_TRUE(gather_.add(bytes_of("copied")));
  EXPECT_EQ(gather_.size(), arrived.size() + 6);
  EXPECT_FALSE(gather_.add(bytes_of(arrived))) << "too large to be copied behind a copy";
  EXPECT_EQ(take(), arrived + "copied");
}

TEST_F(WriteGatherTest, DroppedDataIsNotSent) {
  const std::string arrived = "arrived";
  gather_.begin(nullptr, bytes_of(arrived));
  EXPECT_TRUE(gather_.add(bytes_of(arrived)) && gather_.add(bytes_of("copied")));
  gather_.drop();
  EXPECT_TRUE(gather_.empty());
  EXPECT_EQ(take(), "");
  gather_.end();
}

}  // namespace
}  // namespace spate
