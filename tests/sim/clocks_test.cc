// Hosts whose clocks differ from the World's.
#include <gtest/gtest.h>

#include "sim/kernel/clock.h"
#include "spate/sim/world.h"
#include "spate/timer.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Host;
using sim::World;

WallTime wall_of(Host& host) {
  return host.run([](Loop& loop) {
    loop.update_now();
    return loop.wall_now();
  });
}

TEST(SimClocks, WallClockKeepsItsOffset) {
  World world(1);
  Host& here = world.add_host("here");
  Host& there = world.add_host("there");
  there.set_clock({.ahead = 3s});
  EXPECT_EQ(wall_of(there) - wall_of(here), 3s);
  world.run_for(24h);
  EXPECT_EQ(wall_of(there) - wall_of(here), 3s);
  there.set_clock({.ahead = -1h});
  EXPECT_EQ(wall_of(there) - wall_of(here), -1h);
}

TEST(SimClocks, WallClockDriftsWithItsHost) {
  World world(1);
  Host& here = world.add_host("here");
  Host& fast = world.add_host("fast");
  fast.set_clock({.ahead = 3s, .drift = 100'000});
  world.run_for(10s);
  EXPECT_EQ(wall_of(fast) - wall_of(here), 4s);
}

TEST(SimClocks, FasterClockFiresTimersEarlierInWorldTime) {
  World world(1);
  Host& fast = world.add_host("fast");
  fast.set_clock({.drift = 100'000});
  Nanos called{0};
  fast.loop().after(11s, [&] { called = world.now(); });
  world.run_for(1min);
  EXPECT_GE(called, 10s);
  EXPECT_LE(called, 10s + 2ms);
}

TEST(SimClocks, TimersAreNotEarlyByTheirOwnClock) {
  for (const int drift : {-500'000, -137, -1, 0, 1, 333, 77'777, 1'000'000}) {
    World world(1);
    Host& host = world.add_host("host");
    host.set_clock({.drift = drift});
    int early = 0;
    int calls = 0;
    for (int i = 1; i < 200; ++i) {
      const Nanos span = i * 12'345'677ns;
      host.run([&](Loop& loop) {
        const Nanos due = loop.now() + span;
        loop.after(span, [&calls, &early, &loop, due] {
          ++calls;
          early += loop.now() < due ? 1 : 0;
        });
      });
    }
    EXPECT_EQ(world.run_for(1min), sim::Outcome::limit) << drift;
    EXPECT_EQ(calls, 199) << drift;
    EXPECT_EQ(early, 0) << drift;
  }
}

TEST(SimClocks, MonotonicClockDoesNotJump) {
  World world(1);
  Host& host = world.add_host("host");
  world.run_for(1h);
  host.run([](Loop& loop) { loop.update_now(); });
  const Nanos before = host.loop().now();
  host.set_clock({.ahead = 24h, .drift = 500});
  host.set_clock({.ahead = -24h, .drift = -500});
  host.run([](Loop& loop) { loop.update_now(); });
  EXPECT_EQ(host.loop().now(), before);
}

TEST(SimClocks, RestartDoesNotChangeClocks) {
  World world(1);
  Host& here = world.add_host("here");
  Host& there = world.add_host("there");
  there.set_clock({.ahead = 5s});
  there.crash();
  there.restart();
  EXPECT_EQ(wall_of(there) - wall_of(here), 5s);
}

TEST(SimClocks, NestedLoopSleepsByClockOfItsHost) {
  World world(1);
  Host& slow = world.add_host("slow");
  slow.set_clock({.drift = -500'000});
  slow.run([](Loop&) {
    auto loop = must(Loop::create());
    EXPECT_FALSE(loop->after(10s, [] {}));
    EXPECT_FALSE(loop->run());
  });
  EXPECT_GE(world.now(), 20s);
  EXPECT_LE(world.now(), 20s + 5ms);
}

TEST(SimClocks, ZeroDelayIsDueNow) {
  sim::Clocks clocks;
  clocks.set(0, 1h, 0s, -89'496);
  for (Nanos now = 1h; now < 1h + 10us; now += 7ns) EXPECT_EQ(clocks.deadline(0, now, 0s), now);
}

TEST(SimClocks, WhenIsInverseOfAt) {
  for (const int drift : {-500'000, -3, 7, 999'999}) {
    const sim::Clock clock{.since = 5s, .monotonic = 100s, .drift = drift};
    for (std::int64_t i = 0; i < 10'000; ++i) {
      const Nanos time = 100s + Nanos{i * i * 977};
      const Nanos found = clock.when(time);
      ASSERT_GE(clock.at(found), time);
      ASSERT_LT(clock.at(found - 3ns), time) << drift << ' ' << i;
    }
    EXPECT_EQ(clock.when(kForever), kForever);
  }
}

// At first polling takes no time, whatever another World on this thread has polled.
TEST(SimClocks, FirstPollsAreFreeInEachWorld) {
  for (int worlds = 0; worlds < 3; ++worlds) {
    World world(1);
    Host& host = world.add_host("host");
    host.run([](Loop& loop) {
      loop.ref();
      for (int look = 0; look < 40; ++look) (void)loop.run(Run::no_wait);
      loop.unref();
    });
    EXPECT_EQ(world.now(), 0ns);
  }
}

}  // namespace
}  // namespace spate::testing
