// Delta debugging, and plays serialized between processes.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/explore/serialized_play.h"
#include "sim/explore/shrink.h"

namespace spate::testing {
namespace {

using sim::Numbers;

Numbers up_to(std::uint64_t count) {
  Numbers all(count);
  for (std::uint64_t i = 0; i < count; ++i) all[i] = i + 1;
  return all;
}

auto needs(const Numbers& needed, int& asked) {
  return [&needed, &asked](const Numbers& numbers) {
    ++asked;
    return std::ranges::includes(numbers, needed);
  };
}

TEST(SimShrink, FindsNecessaryFaults) {
  for (const Numbers& needed :
       {Numbers{}, Numbers{1}, Numbers{1000}, Numbers{3, 17}, Numbers{499, 500, 501, 1000}}) {
    int asked = 0;
    EXPECT_EQ(sim::shrink(up_to(1000), needs(needed, asked), 1000), needed);
    EXPECT_LT(asked, 300);
  }
}

TEST(SimShrink, KeepsAllIfAllAreNecessary) {
  int asked = 0;
  const Numbers all = up_to(20);
  EXPECT_EQ(sim::shrink(all, needs(all, asked), 1000), all);
}

TEST(SimShrink, RespectsLimitOfRuns) {
  int asked = 0;
  const Numbers needed{3, 17};
  const Numbers found = sim::shrink(up_to(1000), needs(needed, asked), 10);
  EXPECT_LE(asked, 11);
  EXPECT_TRUE(std::ranges::includes(found, needed));
  EXPECT_EQ(sim::shrink({}, needs(needed, asked), 10), Numbers());
}

TEST(SimSerializedPlay, IsReadAsWritten) {
  sim::Play play;
  play.trace = 7;
  play.faults = 3;
  play.time = Nanos{5};
  play.passed = {"one", ""};
  play.events = {"two"};
  play.findings.sometimes = {{"yes", true}, {"no", false}};
  play.findings.failure = {
      .name = "bad", .time = Nanos{-5}, .events = {"a", "b"}, .state = "lines\n"};
  const std::string letter = sim::serialize(play);
  const auto read = sim::parse_play(letter);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->trace, 7u);
  EXPECT_EQ(read->faults, 3u);
  EXPECT_EQ(read->time, Nanos{5});
  EXPECT_EQ(read->passed, play.passed);
  EXPECT_EQ(read->events, play.events);
  EXPECT_EQ(read->findings.sometimes, play.findings.sometimes);
  ASSERT_TRUE(read->findings.failure);
  EXPECT_TRUE(read->findings.failure->is_like(*play.findings.failure));
  EXPECT_EQ(read->findings.failure->events, play.findings.failure->events);
  EXPECT_EQ(read->findings.failure->state, "lines\n");
}

TEST(SimSerializedPlay, IsRejectedUnlessComplete) {
  sim::Play play;
  play.passed = {"one"};
  play.findings.sometimes = {{"yes", true}};
  const std::string letter = sim::serialize(play);
  for (std::size_t size = 0; size < letter.size(); ++size)
    EXPECT_FALSE(sim::parse_play(letter.substr(0, size))) << size;
  EXPECT_FALSE(sim::parse_play(letter + 'x'));
  EXPECT_FALSE(sim::parse_play(std::string(200, '\xff')));
}

}  // namespace
}  // namespace spate::testing
