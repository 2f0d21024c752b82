// explore(): what it finds, and what it says of it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "sim/echo.h"
#include "sim/weather.h"
#include "spate/sim/explore.h"

namespace spate::testing {
namespace {

using sim::Exploration;
using sim::Host;
using sim::World;

// Explorations here are of these seeds, whatever the environment says of those of others.
class SimExplore : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("SPATE_SEED");
    ::unsetenv("SPATE_SEEDS");
  }
};

TEST_F(SimExplore, RunsAllSeedsWhereNothingFails) {
  int runs = 0;
  const Exploration found = sim::explore(10, 20, [&](World&) {
    ++runs;
    sim::always(true, "truth");
    sim::sometimes(runs == 7, "the seventh");
  });
  EXPECT_TRUE(found);
  EXPECT_EQ(found.seeds, 20u);
  EXPECT_EQ(runs, 21);  // The first twice.
  EXPECT_EQ(found.report(), "");
}

TEST_F(SimExplore, StopsAtTheFirstSeedThatFails) {
  const auto program = [](World& world) {
    const std::uint64_t drawn = world.draw(10);
    world.run_for(1500ms);
    sim::always(drawn != 3, "three is never drawn");
    sim::always(drawn != 3, "and nothing else is wrong");
    sim::sometimes(false, "not asked for where something fails");
  };
  const Exploration found = sim::explore(1, 1000, program);
  ASSERT_TRUE(found.failed);
  EXPECT_FALSE(found);
  EXPECT_EQ(found.seeds, *found.failed);
  EXPECT_EQ(found.failure, "three is never drawn");
  EXPECT_EQ(found.time, 1500ms);
  EXPECT_FALSE(found.is_unsteady);
  const std::string seed = std::to_string(*found.failed);
  EXPECT_TRUE(found.report().starts_with("seed " + seed +
                                         ", after 1.500000000 s: not so: three is never drawn\n"))
      << found.report();
  EXPECT_TRUE(found.report().contains("SPATE_SEED=" + seed + ' ')) << found.report();

  ::setenv("SPATE_SEED", seed.c_str(), 1);  // The line that repeats it.
  const Exploration again = sim::explore(1, 1000, program);
  EXPECT_EQ(again.failed, found.failed);
  EXPECT_EQ(again.seeds, 1u);
}

TEST_F(SimExplore, SaysWhatWasNeverSeen) {
  const auto program = [](World&) { sim::sometimes(false, "a blue moon"); };
  const Exploration found = sim::explore(1, 3, program);
  EXPECT_FALSE(found);
  EXPECT_EQ(found.never, std::vector<std::string>{"a blue moon"});
  EXPECT_EQ(found.report(), "never, in 3 seeds: a blue moon\n");
  ::setenv("SPATE_SEED", "2", 1);
  EXPECT_TRUE(sim::explore(1, 3, program));
}

TEST_F(SimExplore, FindsAProgramThatReadsSomethingElse) {
  int runs = 0;
  const Exploration found = sim::explore(1, 3, [&](World&) { sim::note(std::to_string(++runs)); });
  EXPECT_TRUE(found.is_unsteady);
  EXPECT_FALSE(found);
  EXPECT_TRUE(found.report().starts_with("two runs of one seed differ")) << found.report();
}

TEST_F(SimExplore, RunsAsManySeedsAsTheEnvironmentSays) {
  ::setenv("SPATE_SEEDS", "5", 1);
  EXPECT_EQ(sim::explore(1, 3, [](World&) {}).seeds, 5u);
}

TEST_F(SimExplore, OutsideOfAWorldNothingIsKept) {
  sim::always(false, "nobody hears it");
  sim::sometimes(false, "nor this");
  sim::note("nor this");
  EXPECT_TRUE(sim::explore(1, 1, [](World&) {}));
}

// One seed is one trace with any compiler and optimization. The number is recorded: record it anew
// where the library has begun to send other bytes, or at other times, on purpose.
TEST_F(SimExplore, ASeedsTraceIsTheSameInEveryBuild) {
  const Exploration found = sim::explore(1, 20, [](World& world) {
    Host& here = world.add_host("here");
    Host& there = world.add_host("there");
    here.boot([](Loop& loop) { return must(serve<Echo>(loop, Address::any_ipv6(7000))); });
    draw_weather(world, here, there, 1min);
    EchoClient client(std::string(10'000, 'x'));
    there.run([&](Loop& loop) { client.start(loop, here.address(7000), {.timeout = 30s}); });
    world.run_for(1h);
  });
  EXPECT_EQ(found.trace, 8606915051145095259u);
}

}  // namespace
}  // namespace spate::testing
