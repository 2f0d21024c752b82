#include "spate/http/range.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/random.h"

namespace spate::http {
namespace {

using RangeState = Ranges::State;
using RangeList = std::vector<ByteRange>;

RangeList ranges_of(std::string_view value, std::uint64_t size = 1000) {
  const Ranges ranges = Ranges::parse(value, size);
  EXPECT_EQ(ranges.state() == RangeState::some, !ranges.ranges().empty()) << value;
  return {ranges.ranges().begin(), ranges.ranges().end()};
}
RangeState state_of(std::string_view value, std::uint64_t size = 1000) {
  return Ranges::parse(value, size).state();
}

TEST(RangesTest, SingleRangeIsParsed) {
  EXPECT_EQ(ranges_of("bytes=0-499"), (RangeList{{0, 499}}));
  EXPECT_EQ(ranges_of("bytes=500-"), (RangeList{{500, 999}}));
  EXPECT_EQ(ranges_of("bytes=-1"), (RangeList{{999, 999}}));
  EXPECT_EQ(ranges_of("bytes=0-0"), (RangeList{{0, 0}}));
  EXPECT_EQ(ranges_of("Bytes=0-"), (RangeList{{0, 999}}));
}

TEST(RangesTest, LastByteIsLimitedToRepresentation) {
  EXPECT_EQ(ranges_of("bytes=999-2000"), (RangeList{{999, 999}}));
  EXPECT_EQ(ranges_of("bytes=-5000"), (RangeList{{0, 999}}));
  EXPECT_EQ(ranges_of("bytes=1-99999999999999999999999"), (RangeList{{1, 999}}));
  EXPECT_EQ(ranges_of("bytes=-99999999999999999999999"), (RangeList{{0, 999}}));
  EXPECT_EQ(ranges_of("bytes=0-", UINT64_MAX), (RangeList{{0, UINT64_MAX - 1}}));
}

TEST(RangesTest, SeveralRangesAreParsedInOrder) {
  EXPECT_EQ(ranges_of("bytes=500-509, 0-9,-10"), (RangeList{{500, 509}, {0, 9}, {990, 999}}));
  EXPECT_EQ(ranges_of("bytes= ,, 0-9 ,\t20-29,"), (RangeList{{0, 9}, {20, 29}}));
}

TEST(RangesTest, OverlappingAndAdjacentRangesAreMerged) {
  EXPECT_EQ(ranges_of("bytes=50-59,0-9,5-20"), (RangeList{{0, 20}, {50, 59}}));
  EXPECT_EQ(ranges_of("bytes=10-19,0-9"), (RangeList{{0, 19}}));
  EXPECT_EQ(ranges_of("bytes=0-99,10-19"), (RangeList{{0, 99}}));
  EXPECT_EQ(ranges_of("bytes=0-9,11-19"), (RangeList{{0, 9}, {11, 19}}));
}

TEST(RangesTest, RangesBeyondEndAreOmitted) {
  EXPECT_EQ(ranges_of("bytes=1000-,0-9"), (RangeList{{0, 9}}));
  for (const char* value :
       {"bytes=1000-", "bytes=1000-1001,2000-", "bytes=-0", "bytes=18446744073709551616-"})
    EXPECT_EQ(state_of(value), RangeState::unsatisfiable) << value;
}

TEST(RangesTest, MalformedRangesAreIgnored) {
  for (const char* value : {"",
                            "bytes",
                            "bytes=",
                            "bytes=,",
                            "bytes=-",
                            "bytes=a-b",
                            "bytes=1",
                            "bytes=2-1",
                            "bytes=0-9,2-1",
                            "bytes=0-9;1-2",
                            "bytes =0-9",
                            "bytes0-9",
                            "items=0-9",
                            "byte=0-9",
                            "bytes=0-9x",
                            "bytes=+0-9",
                            "bytes=0--9",
                            "bytes=--9",
                            "bytes=0 - 9",
                            "bytes=0-9 20-29",
                            "bytes=0x0-9",
                            "bytes=0-9-"})
    EXPECT_EQ(state_of(value), RangeState::none) << value;
}

TEST(RangesTest, EmptyRepresentationHasNoRanges) {
  for (const char* value : {"bytes=0-", "bytes=-1", "bytes=0-0"})
    EXPECT_EQ(state_of(value, 0), RangeState::none);
}

TEST(RangesTest, TooManyRangesAreIgnored) {
  std::string value = "bytes=0-0";
  for (std::size_t i = 1; i < Ranges::kMost; ++i)
    value += "," + std::to_string(i * 2) + "-" + std::to_string(i * 2);
  EXPECT_EQ(ranges_of(value).size(), Ranges::kMost);
  EXPECT_EQ(state_of(value + ",500-500"), RangeState::none);
  EXPECT_EQ(state_of(value + ",5000-"), RangeState::none);
}

TEST(RangesTest, RangesAsLongAsWholeAreIgnored) {
  EXPECT_EQ(state_of("bytes=0-,0-"), RangeState::none);
  EXPECT_EQ(state_of("bytes=0-599,400-999"), RangeState::none);
  EXPECT_EQ(state_of("bytes=0-499,500-999"), RangeState::none);
  EXPECT_EQ(ranges_of("bytes=0-499,501-999").size(), 2u);
  EXPECT_EQ(state_of("bytes=0-,0-", UINT64_MAX), RangeState::none);
}

TEST(RangesTest, RangesCoverExactlyRequestedBytesOnce) {
  testing::Random random(5);
  for (int i = 0; i < 5000; ++i) {
    std::vector<bool> asked(64);
    std::string value = "bytes=";
    for (std::size_t count = 1 + random.below(6); count > 0; --count) {
      const std::size_t first = random.below(64);
      const std::size_t last = first + random.below(8);
      value += std::to_string(first) + "-" + std::to_string(last) + ",";
      for (std::size_t at = first; at <= last && at < 64; ++at) asked[at] = true;
    }
    const Ranges ranges = Ranges::parse(value, 64);
    if (ranges.state() != RangeState::some) continue;
    std::vector<bool> given(64);
    for (const ByteRange& range : ranges.ranges()) {
      ASSERT_LE(range.last, 63u);
      for (std::uint64_t at = range.first; at <= range.last; ++at) {
        ASSERT_FALSE(given[at]) << value;
        given[at] = true;
      }
    }
    ASSERT_EQ(given, asked) << value;
  }
}

std::string content_range(ByteRange range, std::uint64_t size) {
  char text[kMostContentRange];
  return std::string(format_content_range(range, size, text));
}

TEST(ContentRangeTest, RangeRoundTrips) {
  EXPECT_EQ(content_range({0, 99}, 1234), "bytes 0-99/1234");
  constexpr std::uint64_t kMax = UINT64_MAX;
  EXPECT_LE(content_range({kMax - 1, kMax - 1}, kMax).size(), kMostContentRange);
  EXPECT_EQ(parse_content_range(content_range({kMax - 2, kMax - 1}, kMax)),
            (ContentRange{ByteRange{kMax - 2, kMax - 1}, kMax}));
  char text[kMostContentRange];
  EXPECT_EQ(format_unsatisfied_range(kMax, text), "bytes */18446744073709551615");
  EXPECT_EQ(parse_content_range("bytes */10"), (ContentRange{{}, 10}));
  EXPECT_EQ(parse_content_range("bytes 0-9/*"), (ContentRange{ByteRange{0, 9}, {}}));
}

TEST(ContentRangeTest, MalformedRangeIsRefused) {
  for (const char* value :
       {"", "bytes", "bytes ", "bytes 0-9", "bytes */*", "bytes 0-9/9", "bytes 9-0/10",
        "bytes 0-/10", "bytes -9/10", "bytes=0-9/10", "items 0-9/10", "bytes 0-9/", "bytes 0-9/x",
        "bytes  0-9/10", "bytes 0-9/10 ", "bytes 0-18446744073709551615/*",
        "bytes 0-9/18446744073709551616", "bytes a-b/10", "bytes /10"})
    EXPECT_EQ(parse_content_range(value), std::nullopt) << value;
}

}  // namespace
}  // namespace spate::http
