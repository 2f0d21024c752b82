// The library in a World: it must behave as on a machine.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/echo.h"
#include "spate/error.h"
#include "spate/io.h"
#include "spate/net/listener.h"
#include "spate/periodic.h"
#include "spate/sim/world.h"
#include "spate/timer.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kPort = 7000;

auto serve_echo(Host& host) {
  return host.run([](Loop& loop) { return must(serve<Echo>(loop, Address::any_ipv6(kPort))); });
}

class WorldTest : public ::testing::Test {
 protected:
  Outcome echo(EchoClient& client, const ConnectOptions& options = {}) {
    there_.run([&](Loop& loop) { client.start(loop, here_.address(kPort), options); });
    return world_.run_until([&] { return client.is_done(); }, 1h);
  }

  World world_{1};
  Host& here_ = world_.add_host("here");
  Host& there_ = world_.add_host("there");
};

TEST(RealSockets, EchoesOnRealSocketsOutsideOfWorld) {
  auto loop = must(Loop::create());
  auto server = must(serve<Echo>(*loop, Address::loopback_ipv4(0)));
  EchoClient client(std::string(100'000, 'x'));
  client.start(*loop, server.address());
  while (!client.is_done()) loop->run(Run::once);
  EXPECT_TRUE(client.has_all());
}

TEST_F(WorldTest, SameSourceEchoesInWorld) {
  auto server = serve_echo(here_);
  EchoClient client(std::string(100'000, 'x'));
  EXPECT_EQ(echo(client), Outcome::done);
  EXPECT_TRUE(client.has_all());
  EXPECT_FALSE(client.error());
  EXPECT_GT(world_.now(), 0ns);
  EXPECT_LT(world_.now(), 1s);
}

TEST_F(WorldTest, NestedLoopLetsOthersProgress) {
  auto server = serve_echo(here_);
  EchoClient client("hello");
  there_.run([&](Loop&) {
    auto loop = must(Loop::create());
    client.start(*loop, here_.address(kPort));
    EXPECT_FALSE(loop->run());
  });
  EXPECT_TRUE(client.has_all());
}

// It polls for events instead of waiting for them, and the World makes progress all the same.
TEST_F(WorldTest, PollingLoopInsideCallbackLetsOthersProgress) {
  auto server = serve_echo(here_);
  std::error_code failure;
  for (const Spin& spin : {Spin::fixed(10s), Spin::adaptive(0.5)}) {
    bool has_run = false;
    there_.run([&](Loop& loop) {
      loop.post([&, spin] {
        auto own = must(Loop::create({.spin = spin}));
        EchoClient inside("hello");
        inside.start(*own, here_.address(kPort));
        failure = own->run();
        has_run = inside.has_all();
      });
    });
    EXPECT_EQ(world_.run_until([&] { return has_run; }, 1min), Outcome::done);
    EXPECT_FALSE(failure);
  }
}

TEST_F(WorldTest, PollingInsideCallbackLetsOthersProgress) {
  auto server = serve_echo(here_);
  bool has_run = false;
  there_.run([&](Loop& loop) {
    loop.post([&] {
      EchoClient inside("hello");
      inside.start(there_.loop(), here_.address(kPort));
      while (!inside.is_done()) there_.loop().run(Run::no_wait);
      has_run = inside.has_all();
    });
  });
  EXPECT_EQ(world_.run_until([&] { return has_run; }, 1min), Outcome::done);
}

TEST_F(WorldTest, Ipv6AndSelfConnectionsWork) {
  auto server = serve_echo(here_);
  EchoClient six("six");
  EchoClient self("self");
  there_.run([&](Loop& loop) { six.start(loop, here_.address_ipv6(kPort)); });
  here_.run([&](Loop& loop) { self.start(loop, Address::loopback_ipv4(kPort)); });
  world_.run_until([&] { return six.is_done() && self.is_done(); }, 1min);
  EXPECT_TRUE(six.has_all());
  EXPECT_TRUE(self.has_all());
}

TEST_F(WorldTest, SimulatedDayElapsesAtOnce) {
  auto server = serve_echo(here_);
  EchoClient client("hello");
  client.keep_open();
  there_.run([&](Loop& loop) {
    client.start(loop, here_.address(kPort));
    client.stream().set_idle_timeout(24h);
  });
  EXPECT_EQ(world_.run_until([&] { return client.is_done(); }, 48h), Outcome::done);
  EXPECT_EQ(client.error(), Error::idle_timeout);
  EXPECT_GE(world_.now(), 24h);
  EXPECT_LE(world_.now(), 24h + 10ms);
}

TEST_F(WorldTest, PrivateLoopNeedsNoHost) {
  auto loop = must(Loop::create());
  int calls = 0;
  Timer timer(*loop, [&] { ++calls; });
  timer.start(1h, 1h);
  EXPECT_FALSE(loop->run_for(24h));
  EXPECT_EQ(calls, 24);
  EXPECT_EQ(world_.now(), 24h);
}

TEST_F(WorldTest, WallClockAdvancesWithMonotonicClock) {
  const WallTime before = here_.loop().wall_now();
  world_.run_for(24h);
  EXPECT_EQ(here_.loop().wall_now() - before, 24h);
}

TEST_F(WorldTest, PortWithoutListenerRefusesConnections) {
  EchoClient client("hello");
  EXPECT_EQ(echo(client), Outcome::done);
  EXPECT_EQ(client.error(), std::errc::connection_refused);
}

TEST_F(WorldTest, AddressWithoutHostIsUnreachable) {
  for (const char* address : {"192.0.2.1", "10.0.0.3"}) {  // Neither, and one of a third host.
    EchoClient client("hello");
    there_.run([&](Loop& loop) { client.start(loop, must(Address::ip(address, kPort))); });
    world_.run_until([&] { return client.is_done(); }, 1h);
    EXPECT_EQ(client.error(), std::errc::network_unreachable) << address;
  }
}

TEST_F(WorldTest, LoopbackDoesNotReachOtherHosts) {
  auto server = serve_echo(here_);
  EchoClient client("hello");
  there_.run([&](Loop& loop) { client.start(loop, Address::loopback_ipv4(kPort)); });
  world_.run_until([&] { return client.is_done(); }, 1h);
  EXPECT_EQ(client.error(), std::errc::connection_refused);
}

TEST_F(WorldTest, SocketNeedsHost) {
  const auto listener =
      Listener::create(here_.loop(), Address::any_ipv4(kPort), [](Stream, const Address&) {});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error(), std::errc::network_down);
}

TEST_F(WorldTest, AddressIsBoundOnce) {
  auto server = serve_echo(here_);
  const auto twice =
      here_.run([](Loop& loop) { return serve<Echo>(loop, Address::any_ipv4(kPort)); });
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error(), std::errc::address_in_use);
  EXPECT_TRUE(there_.run([](Loop& loop) { return serve<Echo>(loop, Address::any_ipv4(kPort)); }));
}

TEST_F(WorldTest, AddressOfAnotherHostCannotBeBound) {
  const auto server =
      here_.run([&](Loop& loop) { return serve<Echo>(loop, there_.address(kPort)); });
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error(), std::errc::address_not_available);
}

TEST_F(WorldTest, CutEndsWithConnectTimeout) {
  auto server = serve_echo(here_);
  world_.cut(here_, there_);
  EchoClient client("hello");
  EXPECT_EQ(echo(client, {.timeout = 30s}), Outcome::done);
  EXPECT_EQ(client.error(), Error::connect_timeout);
  EXPECT_EQ(std::chrono::round<std::chrono::seconds>(world_.now()), 30s);
}

TEST_F(WorldTest, CutMidwayEndsWithStreamDeadline) {
  auto server = serve_echo(here_);
  EchoClient client(std::string(1'000'000, 'x'));
  world_.at(1ms, [&] { world_.cut(here_, there_); });
  there_.run([&](Loop& loop) {
    client.start(loop, here_.address(kPort));
    client.stream().set_deadline(1min);
  });
  EXPECT_EQ(world_.run_until([&] { return client.is_done(); }, 1h), Outcome::done);
  EXPECT_EQ(client.error(), Error::deadline);
  EXPECT_GT(client.echoed().size(), 0u);
}

TEST_F(WorldTest, DataSentDuringCutArrivesAfterIt) {
  auto server = serve_echo(here_);
  EchoClient client(std::string(1'000'000, 'x'));
  world_.at(1ms, [&] { world_.cut(here_, there_); });
  world_.at(10min, [&] { world_.heal(there_, here_); });
  there_.run([&](Loop& loop) { client.start(loop, here_.address(kPort)); });
  EXPECT_EQ(world_.run_until([&] { return client.is_done(); }, 2h), Outcome::done);
  EXPECT_TRUE(client.has_all());
  EXPECT_GT(world_.now(), 10min);
}

TEST_F(WorldTest, LinkHasLatency) {
  auto server = serve_echo(here_);
  world_.link(here_, there_, {.latency = 5s});
  EchoClient client("hello");
  client.keep_open();
  there_.run([&](Loop& loop) { client.start(loop, here_.address(kPort)); });
  EXPECT_EQ(world_.run_until([&] { return client.has_all(); }, 1h), Outcome::done);
  EXPECT_EQ(world_.now(), 20s);  // The handshake, and the message: there and back.
}

TEST_F(WorldTest, CloseWithUnreadInputResetsPeer) {
  Stream accepted;
  auto listener = here_.run([&](Loop& loop) {
    return must(
        Listener::create(loop, Address::any_ipv4(kPort),
                         [&](Stream stream, const Address&) { accepted = std::move(stream); }));
  });
  EchoClient client("never read");
  there_.run([&](Loop& loop) { client.start(loop, here_.address(kPort)); });
  world_.run_for(1s);
  ASSERT_TRUE(accepted.is_open());
  accepted.abort();
  world_.run_for(1s);
  EXPECT_EQ(client.error(), std::errc::connection_reset);
}

// Sends without end, and counts the bytes that the kernel has taken.
struct Flood : Session {
  void on_open() override { stream().write(std::string(8'000'000, 'x')); }
  std::size_t on_data(Bytes bytes) override { return bytes.size(); }
};

TEST_F(WorldTest, PeerThatDoesNotReadBlocksSender) {
  auto server =
      here_.run([](Loop& loop) { return must(serve<Flood>(loop, Address::any_ipv4(kPort))); });
  EchoClient client("");
  client.keep_open();
  there_.run([&](Loop& loop) {
    client.start(loop, here_.address(kPort));
    client.stream().pause();
  });
  world_.run_for(1h);
  std::size_t queued = 0;
  server.sessions().for_each([&](Flood& session) { queued = session.stream().queued(); });
  EXPECT_GT(queued, 7'500'000u);
  client.stream().resume();
  world_.run_until([&] { return client.echoed().size() == 8'000'000; }, 1h);
  EXPECT_EQ(client.echoed().size(), 8'000'000u);
}

TEST_F(WorldTest, PostsFromAnotherHostWakeLoop) {
  int calls = 0;
  here_.loop().after(1s, [&] { there_.loop().post([&] { ++calls; }); });
  world_.run_for(1s);
  EXPECT_EQ(calls, 1);
}

TEST_F(WorldTest, AbsenceOfEventsIsReportedAtOnce) {
  EXPECT_EQ(world_.run_until([] { return false; }, 1h), Outcome::stuck);
  EXPECT_EQ(world_.run_for(1h), Outcome::limit);
}

TEST_F(WorldTest, SpinningLoopIsDetected) {
  std::function<void()> again = [&] { here_.loop().after(0s, [&] { again(); }); };
  again();
  EXPECT_EQ(world_.run_for(1h), Outcome::spinning);
}

TEST_F(WorldTest, WaitWithoutEventsIsDeadlock) {
  auto loop = must(Loop::create());
  loop->ref();
  EXPECT_EQ(loop->run(), std::errc::resource_deadlock_would_occur);
}

TEST_F(WorldTest, AllDescriptorsAreClosedAtEnd) {
  const std::size_t before = world_.open_descriptors();
  {
    auto server = serve_echo(here_);
    EchoClient client("hello");
    echo(client);
    EXPECT_GT(world_.open_descriptors(), before);
    world_.run_for(1s);
  }
  world_.run_for(1s);
  EXPECT_EQ(world_.open_descriptors(), before);
}

// A seed determines a run completely: times, order and bytes.
std::uint64_t trace_of(std::uint64_t seed) {
  World world(seed);
  Host& here = world.add_host("here");
  std::vector<Host*> others = {&world.add_host("a"), &world.add_host("b"), &world.add_host("c")};
  auto server = serve_echo(here);
  std::vector<std::unique_ptr<EchoClient>> clients;
  for (Host* host : others) {
    world.link(here, *host, {.latency = 1ms, .jitter = 5ms});
    clients.push_back(std::make_unique<EchoClient>(std::string(5'000 * clients.size() + 1, 'x')));
    host->run([&](Loop& loop) { clients.back()->start(loop, here.address(kPort)); });
  }
  world.at(10ms, [&] { world.cut(here, *others[0]); });
  world.at(1s, [&] { world.heal(here, *others[0]); });
  world.run_for(1min);
  for (const auto& client : clients) EXPECT_TRUE(client->has_all());
  return world.trace();
}

TEST(Trace, IsSameForOneSeed) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(trace_of(seed), trace_of(seed));
}

TEST(Trace, DiffersFromSeedToSeed) { EXPECT_NE(trace_of(1), trace_of(2)); }

}  // namespace
}  // namespace spate::testing
