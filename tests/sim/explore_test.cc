// explore(): its findings and its reports.
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/echo.h"
#include "swarms/weather.h"
#include "spate/sim/explore.h"

namespace spate::testing {
namespace {

using sim::Exploration;
using sim::Host;
using sim::World;

// These explorations use fixed seeds; the environment's seeds are for others, and restored
// afterwards.
class SimExplore : public ::testing::Test {
 protected:
  static constexpr std::array kNames{"SPATE_SEED", "SPATE_SEEDS", "SPATE_ONLY"};

  void SetUp() override {
    for (const char* name : kNames) {
      const char* const value = std::getenv(name);
      said_.push_back(value ? std::optional<std::string>(value) : std::nullopt);
      ::unsetenv(name);
    }
  }

  void TearDown() override {
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (said_[i]) ::setenv(kNames[i], said_[i]->c_str(), 1);
      if (!said_[i]) ::unsetenv(kNames[i]);
    }
  }

 private:
  std::vector<std::optional<std::string>> said_;
};

TEST_F(SimExplore, RunsAllSeedsIfNoneFails) {
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

TEST_F(SimExplore, StopsAtFirstFailingSeed) {
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

TEST_F(SimExplore, ReportsConditionsThatNeverHeld) {
  const auto program = [](World&) { sim::sometimes(false, "a blue moon"); };
  const Exploration found = sim::explore(1, 3, program);
  EXPECT_FALSE(found);
  EXPECT_EQ(found.never, std::vector<std::string>{"a blue moon"});
  EXPECT_EQ(found.report(), "never, in 3 seeds: a blue moon\n");
  ::setenv("SPATE_SEED", "2", 1);
  EXPECT_TRUE(sim::explore(1, 3, program));
}

TEST_F(SimExplore, DetectsNonDeterministicProgram) {
  int runs = 0;
  const Exploration found = sim::explore(1, 3, [&](World&) { sim::note(std::to_string(++runs)); });
  EXPECT_TRUE(found.is_unsteady);
  EXPECT_FALSE(found);
  EXPECT_TRUE(found.report().starts_with("two runs of one seed differ")) << found.report();
}

TEST_F(SimExplore, ReportsFirstDifferingEvent) {
  int runs = 0;
  const Exploration found = sim::explore(1, 3, [&](World& world) {
    sim::note("the same");
    world.run_for(1s);
    sim::note(std::to_string(++runs));
  });
  EXPECT_EQ(found.difference,
            "event 2 of one: 1.000000000 s  note: 3\nevent 2 of the other: 1.000000000 s  note: 4");
}

// ---- the faults that a failure needs

// Fails if the fifth and the ninth of many faults occur.
void need_two(World& world) {
  int struck = 0;
  for (int i = 1; i <= 100; ++i) {
    if (world.inject_fault(0.5, i == 5 || i == 9 ? "needed" : "not needed"))
      struck += i == 5 || i == 9 ? 1 : 0;
  }
  sim::always(struck < 2, "no two of these");
}

TEST_F(SimExplore, OmitsFaultsThatFailureDoesNotNeed) {
  const Exploration found = sim::explore(1, 1000, need_two);
  ASSERT_TRUE(found.failed);
  EXPECT_GT(found.faults, 30u);
  ASSERT_TRUE(found.needed);
  EXPECT_EQ(found.needed->size(), 2u);
  ASSERT_EQ(found.needed_lines.size(), 2u);
  for (const std::string& line : found.needed_lines)
    EXPECT_TRUE(line.contains("strikes: needed (fault ")) << line;
  const std::string only =
      std::to_string(found.needed->front()) + ',' + std::to_string(found.needed->back());
  EXPECT_TRUE(found.report().contains(" SPATE_ONLY=" + only + ' ')) << found.report();

  // The line that repeats it.
  ::setenv("SPATE_SEED", std::to_string(*found.failed).c_str(), 1);
  ::setenv("SPATE_ONLY", only.c_str(), 1);
  EXPECT_TRUE(sim::explore(1, 1000, need_two).failed);
  ::setenv("SPATE_ONLY", std::to_string(found.needed->front()).c_str(), 1);
  EXPECT_FALSE(sim::explore(1, 1000, need_two).failed);
}

TEST_F(SimExplore, FailureThatNeedsNoFaultIsReported) {
  const Exploration found = sim::explore({.seeds = 1, .shrink_runs = 20}, [&](World& world) {
    (void)world.inject_fault(1, "anything");
    sim::always(false, "truth");
  });
  EXPECT_EQ(found.needed, std::vector<std::uint64_t>());
  EXPECT_TRUE(found.report().contains(" SPATE_ONLY=none ")) << found.report();
}

TEST_F(SimExplore, DoesNotShrinkIfDisabled) {
  const Exploration found = sim::explore({.seeds = 1000, .shrink_runs = 0}, need_two);
  EXPECT_TRUE(found.failed);
  EXPECT_FALSE(found.needed);
}

TEST_F(SimExplore, LostSegmentsAreFaults) {
  const Exploration found = sim::explore(1, 1000, [](World& world) {
    Host& here = world.add_host("here");
    Host& there = world.add_host("there");
    world.link(here, there, {.loss = 0.2});
    auto server =
        here.run([](Loop& loop) { return must(serve<Echo>(loop, Address::any_ipv6(7000))); });
    EchoClient client(std::string(20'000, 'x'));
    there.run([&](Loop& loop) { client.start(loop, here.address(7000)); });
    world.run_until([&] { return client.is_done(); }, 3s);
    sim::always(client.is_done(), "it takes no longer than three seconds");
  });
  ASSERT_TRUE(found.failed);
  ASSERT_TRUE(found.needed);
  EXPECT_LE(found.needed->size(), 4u) << found.report();
  EXPECT_GE(found.needed->size(), 1u) << found.report();
  EXPECT_TRUE(found.needed_lines.front().contains(": lost: ")) << found.report();
  EXPECT_TRUE(found.report().contains("the last events:\n"));
  EXPECT_TRUE(found.state.contains("here waits ")) << found.state;
  EXPECT_TRUE(found.state.contains("there: open 10.0.0.2:")) << found.state;
}

// ---- isolated runs

TEST_F(SimExplore, IsolatedWorldsShareNoStatics) {
  static int runs = 0;
  const Exploration found = sim::explore({.seeds = 5, .isolates = true}, [](World&) {
    sim::always(++runs == 1, "nothing is left of another run");
    sim::sometimes(runs == 1, "and what is seen is told");
  });
  EXPECT_TRUE(found) << found.report();
  EXPECT_EQ(found.seeds, 5u);
  EXPECT_EQ(runs, 0);
}

TEST_F(SimExplore, CrashOfIsolatedProgramIsFailure) {
  const Exploration found = sim::explore({.seeds = 5, .isolates = true}, [](World& world) {
    if (world.draw(2) == 0) std::_Exit(7);
  });
  ASSERT_TRUE(found.failed);
  EXPECT_EQ(found.failure, "the program calls exit(7)");
  EXPECT_FALSE(found.is_unsteady);
  const Exploration killed =
      sim::explore({.seeds = 5, .isolates = true}, [](World&) { ::raise(SIGKILL); });
  EXPECT_EQ(killed.failure, "the program ends: Killed");
}

TEST_F(SimExplore, IsolatedRunHasSameResult) {
  const Exploration apart = sim::explore({.seeds = 1000, .isolates = true}, need_two);
  const Exploration here = sim::explore({.seeds = 1000}, need_two);
  EXPECT_EQ(apart.report(), here.report());
  EXPECT_EQ(apart.trace, here.trace);
}

TEST_F(SimExplore, InvalidEnvironmentEndsProgram) {
  ::setenv("SPATE_SEED", "twelve", 1);
  EXPECT_EXIT(sim::explore(1, 1, [](World&) {}), ::testing::ExitedWithCode(2),
              "spate: SPATE_SEED=twelve: a decimal number was expected");
  ::setenv("SPATE_SEED", "1", 1);
  ::setenv("SPATE_ONLY", "3,", 1);
  EXPECT_EXIT(sim::explore(1, 1, [](World&) {}), ::testing::ExitedWithCode(2), "SPATE_ONLY=3,:");
}

TEST_F(SimExplore, RunsSeedsFromEnvironment) {
  ::setenv("SPATE_SEEDS", "5", 1);
  EXPECT_EQ(sim::explore(1, 3, [](World&) {}).seeds, 5u);
  ::setenv("SPATE_SEEDS", "10..12", 1);
  std::vector<std::uint64_t> drawn;
  const Exploration some = sim::explore(1, 3, [&](World& world) {
    drawn.push_back(world.draw(1000));
    world.run_for(2s);
    (void)world.inject_fault(1, "anything");
  });
  EXPECT_EQ(some.seeds, 3u);
  EXPECT_EQ(some.all_faults, 3u);
  EXPECT_EQ(some.all_time, 6s);
  ::unsetenv("SPATE_SEEDS");
  const std::vector<std::uint64_t> before = std::exchange(drawn, {});
  (void)sim::explore(10, 3, [&](World& world) { drawn.push_back(world.draw(1000)); });
  EXPECT_EQ(drawn, before);
}

TEST_F(SimExplore, AssertionsOutsideWorldAreIgnored) {
  sim::always(false, "nobody is_bound_to it");
  sim::sometimes(false, "nor this");
  sim::note("nor this");
  EXPECT_TRUE(sim::explore(1, 1, [](World&) {}));
}

// One seed is one trace with any compiler and optimization. Each backend has another, as it reports
// events in its own order. Record the numbers again if the library sends other bytes, or at other
// times, on purpose.
TEST_F(SimExplore, TraceOfSeedIsSameInEveryBuild) {
  const Exploration found = sim::explore(1, 20, [](World& world) {
    Host& here = world.add_host("here");
    Host& there = world.add_host("there");
    here.boot([](Loop& loop) { return must(serve<Echo>(loop, Address::any_ipv6(7000))); });
    draw_weather(world, here, there, 1min);
    EchoClient client(std::string(10'000, 'x'));
    there.run([&](Loop& loop) { client.start(loop, here.address(7000), {.timeout = 30s}); });
    world.run_for(1h);
  });
  const std::map<std::string_view, std::uint64_t> traces = {{"epoll", 2109912928829874429u},
                                                            {"kqueue", 8859014901706935409u}};
  EXPECT_EQ(found.trace, traces.at(Loop::backends().front()));
}

}  // namespace
}  // namespace spate::testing
