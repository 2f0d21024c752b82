// Hosts that crash, restart, are suspended, or run out of descriptors.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "sim/echo.h"
#include "spate/net/datagram.h"
#include "spate/net/listener.h"
#include "spate/sim/world.h"
#include "spate/timer.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kHostPort = 7000;

class SimHosts : public ::testing::Test {
 protected:
  void boot() {
    here_.boot([this](Loop& loop) {
      ++boots_;
      return must(serve<Echo>(loop, Address::any_ipv6(kHostPort)));
    });
  }
  Listener listen_without_reading(std::optional<Stream>& accepted) {
    return here_.run([&](Loop& loop) {
      const auto keep = [&](Stream stream, const Address&) { accepted = std::move(stream); };
      return must(Listener::create(loop, Address::any_ipv4(kHostPort), keep));
    });
  }
  void start(EchoClient& client, const ConnectOptions& options = {}) {
    there_.run([&](Loop& loop) { client.start(loop, here_.address(kHostPort), options); });
  }
  void finish(EchoClient& client) {
    EXPECT_EQ(world_.run_until([&] { return client.is_done(); }, 1h), Outcome::done);
  }

  World world_{1};
  Host& here_ = world_.add_host("here");
  Host& there_ = world_.add_host("there");
  int boots_ = 0;
};

TEST_F(SimHosts, CrashedHostDoesNotRespond) {
  boot();
  here_.crash();
  EXPECT_FALSE(here_.is_up());
  EchoClient client("hello");
  start(client);
  finish(client);
  EXPECT_EQ(client.error(), std::errc::timed_out);
  EXPECT_EQ(std::chrono::round<std::chrono::seconds>(world_.now()), 127s);
}

TEST_F(SimHosts, TimeoutsStartedOnIdleHostCountFromNow) {
  boot();
  world_.run_for(1h);
  EchoClient client("hello");
  start(client, {.timeout = 10s});
  finish(client);
  EXPECT_TRUE(client.has_all()) << client.error().message();
}

TEST_F(SimHosts, RestartedHostServesAgain) {
  boot();
  EchoClient before("hello");
  start(before);
  finish(before);
  here_.crash();
  here_.restart();
  EXPECT_EQ(boots_, 2);
  EchoClient after("hello");
  start(after);
  finish(after);
  EXPECT_TRUE(after.has_all());
}

TEST_F(SimHosts, ConnectDuringRestartSucceedsAfterIt) {
  boot();
  here_.crash();
  world_.at(5s, [&] { here_.restart(); });
  EchoClient client("hello");
  start(client);
  finish(client);
  EXPECT_TRUE(client.has_all());
  EXPECT_EQ(std::chrono::round<std::chrono::seconds>(world_.now()), 7s);
}

TEST_F(SimHosts, SendingPeerIsResetAfterRestart) {
  boot();
  EchoClient client("hello");
  client.keep_open();
  start(client);
  world_.run_until([&] { return client.has_all(); }, 1s);
  here_.crash();
  there_.run([&](Loop&) { client.stream().write("more"); });
  world_.run_for(1min);
  EXPECT_FALSE(client.is_done());  // Silence.
  here_.restart();
  finish(client);
  EXPECT_EQ(client.error(), std::errc::connection_reset);
}

TEST_F(SimHosts, SendingPeerTimesOutIfHostStaysDown) {
  boot();
  EchoClient client("hello");
  client.keep_open();
  start(client);
  world_.run_until([&] { return client.has_all(); }, 1s);
  here_.crash();
  there_.run([&](Loop&) { client.stream().write("more"); });
  finish(client);
  EXPECT_EQ(client.error(), std::errc::timed_out);
  EXPECT_GT(world_.now(), 15min);
}

TEST_F(SimHosts, IdlePeerIsNotNotifiedOfRestart) {
  boot();
  EchoClient client("hello");
  client.keep_open();
  start(client);
  world_.run_for(1s);
  here_.crash();
  here_.restart();
  EXPECT_EQ(world_.run_until([&] { return client.is_done(); }, 24h), Outcome::stuck);
}

TEST_F(SimHosts, CrashClosesAllDescriptorsOfHost) {
  const std::size_t before = world_.open_descriptors();
  const std::size_t of_there = there_.open_descriptors();
  boot();
  EchoClient client("hello");
  client.keep_open();
  start(client);
  world_.run_for(1s);
  here_.crash();
  EXPECT_EQ(here_.open_descriptors(), 0u);
  EXPECT_EQ(there_.open_descriptors(), of_there + 1);
  client.stream() = Stream();
  here_.restart();
  world_.run_for(1h);
  EXPECT_EQ(world_.open_descriptors(), before + 1);  // The listener.
}

TEST_F(SimHosts, HandlesOfCrashedHostAreHarmless) {
  EchoClient client("hello");
  auto server =
      here_.run([](Loop& loop) { return must(serve<Echo>(loop, Address::any_ipv6(kHostPort))); });
  client.keep_open();
  start(client);
  world_.run_for(1s);
  int calls = 0;
  Timer timer(there_.loop(), [&] { ++calls; });
  timer.start(1s, 1s);
  there_.crash();
  world_.run_for(1min);
  EXPECT_EQ(calls, 0);
  there_.restart();
  EchoClient again("again");
  start(again);
  client.stream().write("nobody receives it");
  client.stream().close();
  timer.stop();
  finish(again);
  EXPECT_TRUE(again.has_all());
  EXPECT_EQ(calls, 0);
}

// An old Stream closes its number, which no new socket may have.
TEST_F(SimHosts, NumbersOfCrashedSocketsAreNotReused) {
  boot();
  EchoClient client("hello");
  client.keep_open();
  start(client);
  world_.run_for(1s);
  there_.crash();
  there_.restart();
  EchoClient again("again");
  start(again);
  client.stream().abort();
  client.stream() = Stream();
  finish(again);
  EXPECT_TRUE(again.has_all());
}

TEST_F(SimHosts, CrashResetsConnectionsInBacklog) {
  std::optional<Listener> listener = here_.run([](Loop& loop) {
    return must(
        Listener::create(loop, Address::any_ipv4(kHostPort), [](Stream, const Address&) {}));
  });
  here_.pause();
  EchoClient client("hello");
  start(client);
  world_.run_for(1s);
  EXPECT_FALSE(client.stream().is_connecting());
  here_.crash();
  listener.reset();
  here_.restart();
  there_.run([&](Loop&) { client.stream().write("more"); });
  finish(client);
  EXPECT_EQ(client.error(), std::errc::connection_reset);
}

// The kernel's zero-window probes detect the restart.
TEST_F(SimHosts, BlockedSenderDetectsRestart) {
  std::optional<Stream> deaf;
  std::optional<Listener> listener = listen_without_reading(deaf);
  EchoClient client(std::string(10'000'000, 'x'));
  start(client);
  world_.run_for(1min);
  EXPECT_GT(client.stream().queued(), 0u);
  here_.crash();
  world_.run_for(1min);
  EXPECT_FALSE(client.is_done());
  deaf.reset();
  listener.reset();
  here_.restart();
  finish(client);
  EXPECT_EQ(client.error(), std::errc::connection_reset);
}

TEST_F(SimHosts, BlockedSenderTimesOutIfPeerCrashed) {
  std::optional<Stream> deaf;
  std::optional<Listener> listener = listen_without_reading(deaf);
  EchoClient client(std::string(10'000'000, 'x'));
  start(client);
  world_.run_for(1min);
  here_.crash();
  finish(client);
  EXPECT_EQ(client.error(), std::errc::timed_out);
  deaf.reset();
  listener.reset();
}

TEST_F(SimHosts, CrashDropsPackets) {
  const auto open = [](Host& host) {
    return host.run(
        [](Loop& loop) { return must(Datagram::create(loop, Address::any_ipv4(kHostPort))); });
  };
  Datagram server = open(here_);
  Datagram client = open(there_);
  int packets = 0;
  const auto count = [&](std::span<const Packet> some) {
    packets += static_cast<int>(some.size());
  };
  EXPECT_FALSE(server.start({.on_packets = count}));
  here_.crash();
  EXPECT_FALSE(client.send(bytes_of("lost"), here_.address(kHostPort)));
  world_.run_for(1s);
  here_.restart();
  Datagram again = open(here_);  // The port is free again.
  EXPECT_FALSE(again.start({.on_packets = count}));
  EXPECT_FALSE(client.send(bytes_of("found"), here_.address(kHostPort)));
  world_.run_for(1s);
  EXPECT_EQ(packets, 1);
}

TEST_F(SimHosts, PausedHostAcceptsAndReceivesButSendsNothing) {
  boot();
  here_.pause();
  EchoClient client("hello");
  start(client);
  world_.run_for(1h);
  EXPECT_FALSE(client.stream().is_connecting());
  EXPECT_TRUE(client.echoed().empty());
  here_.resume();
  finish(client);
  EXPECT_TRUE(client.has_all());
}

TEST_F(SimHosts, TimersOfPausedHostAreLate) {
  int calls = 0;
  here_.loop().after(1s, [&] { ++calls; });
  here_.pause();
  world_.run_for(1min);
  EXPECT_EQ(calls, 0);
  here_.resume();
  world_.run_for(0s);
  EXPECT_EQ(calls, 1);
}

TEST_F(SimHosts, NothingIsOpenedWithoutDescriptors) {
  here_.limit_descriptors(here_.open_descriptors());
  const auto none = here_.run([](Loop& loop) { return serve<Echo>(loop, Address::any_ipv4(1)); });
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error(), std::errc::too_many_files_open);
  here_.limit_descriptors(here_.open_descriptors(), sim::Shortage::system);
  const auto still = here_.run([](Loop& loop) { return serve<Echo>(loop, Address::any_ipv4(1)); });
  ASSERT_FALSE(still);
  EXPECT_EQ(still.error(), std::errc::too_many_files_open_in_system);
  EXPECT_TRUE(there_.run([](Loop& loop) { return serve<Echo>(loop, Address::any_ipv4(1)); }));
}

TEST_F(SimHosts, PairIsOpenedCompletelyOrNotAtAll) {
  here_.limit_descriptors(here_.open_descriptors() + 1);
  for (int i = 0; i < 3; ++i) {
    const auto pair = here_.run([](Loop& loop) { return Stream::socket_pair(loop); });
    ASSERT_FALSE(pair);
    EXPECT_EQ(pair.error(), std::errc::too_many_files_open);
  }
  EXPECT_TRUE(here_.run([](Loop& loop) { return serve<Echo>(loop, Address::any_ipv4(1)); }));
}

TEST_F(SimHosts, RestartLiftsLimits) {
  boot();
  here_.limit_descriptors(0);
  here_.limit_memory(1);
  here_.crash();
  here_.restart();
  EchoClient client("hello");
  start(client);
  finish(client);
  EXPECT_TRUE(client.has_all());
}

TEST_F(SimHosts, ServerWithoutDescriptorsServesOneByOne) {
  boot();
  here_.limit_descriptors(here_.open_descriptors() + 1);
  EchoClient clients[] = {EchoClient("one"), EchoClient("two"), EchoClient("three")};
  for (EchoClient& client : clients) start(client);
  for (EchoClient& client : clients) finish(client);
  for (EchoClient& client : clients) EXPECT_TRUE(client.has_all()) << client.error().message();
}

}  // namespace
}  // namespace spate::testing
