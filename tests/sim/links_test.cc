// Links that lose packets, delay them, and are cut in one direction: the effects on streams.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "sim/echo.h"
#include "spate/error.h"
#include "spate/sim/world.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kEchoPort = 7000;

class SimLinks : public ::testing::Test {
 protected:
  explicit SimLinks(std::uint64_t seed = 1) : world_(seed) {}

  Nanos echo(EchoClient& client, const ConnectOptions& options = {}) {
    const Nanos begin = world_.now();
    there_.run([&](Loop& loop) { client.start(loop, here_.address(kEchoPort), options); });
    EXPECT_EQ(world_.run_until([&] { return client.is_done(); }, 24h), Outcome::done);
    return world_.now() - begin;
  }

  World world_;
  Host& here_ = world_.add_host("here");
  Host& there_ = world_.add_host("there");
  Server<Echo> server_ =
      here_.run([](Loop& loop) { return must(serve<Echo>(loop, Address::any_ipv6(kEchoPort))); });
};

TEST_F(SimLinks, LostSegmentsAreRetransmitted) {
  world_.link(here_, there_, {.loss = 0.3});
  EchoClient client(std::string(100'000, 'x'));
  EXPECT_GT(echo(client), 1s);  // A lost segment delays those after it.
  EXPECT_TRUE(client.has_all());
  EXPECT_FALSE(client.error());
}

TEST_F(SimLinks, StreamWithTotalLossTimesOutAsInKernel) {
  EchoClient client("hello");
  client.keep_open();
  there_.run([&](Loop& loop) { client.start(loop, here_.address(kEchoPort)); });
  world_.run_for(1s);
  ASSERT_TRUE(client.has_all());
  world_.link(here_, there_, {.loss = 1});
  there_.run([&](Loop&) { client.stream().write("lost"); });
  EXPECT_EQ(world_.run_until([&] { return client.is_done(); }, 1h), Outcome::done);
  EXPECT_EQ(client.error(), std::errc::timed_out);
  EXPECT_EQ(std::chrono::round<std::chrono::seconds>(world_.now()), 926s);
}

TEST_F(SimLinks, ConnectTimesOutAfterTwoMinutes) {
  world_.link(here_, there_, {.loss = 1});
  EchoClient lost("hello");
  EXPECT_EQ(std::chrono::round<std::chrono::seconds>(echo(lost)), 127s);
  EXPECT_EQ(lost.error(), std::errc::timed_out);

  world_.link(here_, there_, {});
  world_.cut(here_, there_);
  EchoClient cut("hello");
  EXPECT_EQ(std::chrono::round<std::chrono::seconds>(echo(cut)), 127s);
  EXPECT_EQ(cut.error(), std::errc::timed_out);
}

TEST_F(SimLinks, CutOfHalfHourEndsSendingStream) {
  EchoClient client("hello");
  client.keep_open();
  there_.run([&](Loop& loop) { client.start(loop, here_.address(kEchoPort)); });
  world_.run_for(1s);
  world_.cut(here_, there_);
  there_.run([&](Loop&) { client.stream().write("more"); });
  world_.run_for(30min);
  EXPECT_EQ(client.error(), std::errc::timed_out);
}

TEST_F(SimLinks, ConnectRetriesAfterCut) {
  world_.cut(here_, there_);
  world_.at(4s, [&] { world_.heal(here_, there_); });  // Attempts at 0, 1, 3 and 7 s.
  EchoClient client("hello");
  EXPECT_EQ(std::chrono::round<std::chrono::seconds>(echo(client)), 7s);
  EXPECT_TRUE(client.has_all());
}

TEST_F(SimLinks, OneDirectionMayBeCut) {
  EchoClient client("hello");
  world_.cut_one_way(here_, there_);
  there_.run([&](Loop& loop) { client.start(loop, here_.address(kEchoPort)); });
  world_.run_for(1s);
  EXPECT_EQ(server_.sessions().size(), 1u);  // The SYN has reached the server.
  EXPECT_TRUE(client.stream().is_connecting());
  world_.heal_one_way(here_, there_);
  world_.run_until([&] { return client.is_done(); }, 1min);
  EXPECT_TRUE(client.has_all());
}

TEST_F(SimLinks, OneDirectionMayBeSlow) {
  world_.link_one_way(there_, here_, {.latency = 1s});
  EchoClient client("hello");
  EXPECT_EQ(std::chrono::round<std::chrono::seconds>(echo(client)), 3s);  // SYN, ACK, text.
}

TEST_F(SimLinks, HaveBandwidth) {
  world_.link(here_, there_, {.bytes_per_second = 100'000});
  EchoClient client(std::string(1'000'000, 'x'));
  const Nanos time = echo(client);
  EXPECT_GT(time, 10s);
  EXPECT_LT(time, 13s);
  EXPECT_TRUE(client.has_all());
}

TEST_F(SimLinks, MayChangeAtAnyTime) {
  world_.link(here_, there_, {.latency = 10ms});
  world_.at(1s, [&] { world_.link(here_, there_, {.latency = 1s}); });
  EchoClient first("hello");
  EXPECT_LT(echo(first), 100ms);
  world_.run_for(2s);
  EchoClient second("hello");
  EXPECT_GT(echo(second), 4s);
}

TEST(SimLinkDeterminism, LossesAreSameForOneSeed) {
  const auto trace = [](std::uint64_t seed) {
    World world(seed);
    Host& here = world.add_host("here");
    Host& there = world.add_host("there");
    world.link(here, there, {.jitter = 1ms, .loss = 0.2, .bytes_per_second = 1'000'000});
    auto server =
        here.run([](Loop& loop) { return must(serve<Echo>(loop, Address::any_ipv6(kEchoPort))); });
    EchoClient client(std::string(20'000, 'x'));
    there.run([&](Loop& loop) { client.start(loop, here.address(kEchoPort)); });
    EXPECT_EQ(world.run_until([&] { return client.is_done(); }, 24h), Outcome::done);
    EXPECT_TRUE(client.has_all());
    return world.trace();
  };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) EXPECT_EQ(trace(seed), trace(seed));
  EXPECT_NE(trace(1), trace(2));
}

}  // namespace
}  // namespace spate::testing
