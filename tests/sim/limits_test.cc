// A host's limits: ports, places in a backlog, memory, and timeouts.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "sim/echo.h"
#include "sim/kernels.h"
#include "spate/error.h"
#include "spate/net/datagram.h"
#include "spate/net/listener.h"
#include "spate/sim/world.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Host;
using sim::Outcome;
using sim::World;

constexpr std::uint16_t kLimitPort = 7000;

class SimLimits : public ::testing::Test {
 protected:
  EchoClient& start(const ConnectOptions& options = {}) {
    EchoClient& client = *clients_.emplace_back(std::make_unique<EchoClient>("hello"));
    client.keep_open();
    there_.run([&](Loop& loop) { client.start(loop, here_.address(kLimitPort), options); });
    return client;
  }
  EchoClient& open(const ConnectOptions& options = {}) {
    EchoClient& client = start(options);
    EXPECT_EQ(world_.run_until([&] { return client.has_all() || client.is_done(); }, 1h),
              Outcome::done);
    return client;
  }
  // Returns the time until the client's connection is closed.
  Nanos waited(const EchoClient& client) {
    const Nanos begin = world_.now();
    EXPECT_EQ(world_.run_until([&] { return client.is_done(); }, 24h), Outcome::done);
    return std::chrono::round<std::chrono::seconds>(world_.now() - begin);
  }
  std::error_code listen_at(const Address& address) {
    return there_.run([&](Loop& loop) {
      const auto made = Listener::create(loop, address, [](Stream, const Address&) {});
      return made ? std::error_code() : made.error();
    });
  }

  World world_{1};
  Host& here_ = world_.add_host("here");
  Host& there_ = world_.add_host("there");
  Server<Echo> server_ =
      here_.run([](Loop& loop) { return must(serve<Echo>(loop, Address::any_ipv6(kLimitPort))); });
  std::vector<std::unique_ptr<EchoClient>> clients_;
};

// ---- ports

TEST_F(SimLimits, ExhaustedPortsAreNotAvailable) {
  there_.set_port_range(5000, 5002);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(open().error());
  EXPECT_EQ(open().error(), std::errc::address_not_available);
  EXPECT_EQ(listen_at(Address::any_ipv4(0)), std::errc::address_in_use);
}

TEST_F(SimLimits, PortMayConnectToSeveralDestinations) {
  there_.set_port_range(5000, 5000);
  EXPECT_FALSE(open().error());
  EchoClient other("hello");
  there_.run([&](Loop& loop) { other.start(loop, here_.address_ipv6(kLimitPort)); });
  EXPECT_EQ(world_.run_until([&] { return other.is_done(); }, 1min), Outcome::done);
  EXPECT_TRUE(other.has_all());
}

TEST_F(SimLimits, ActiveCloserKeepsItsPortForOneMinute) {
  there_.set_port_range(5000, 5000);
  open().stream().close();
  world_.run_for(59s);
  EXPECT_EQ(open().error(), std::errc::address_not_available);
  world_.run_for(2s);
  EXPECT_FALSE(open().error());
}

TEST_F(SimLimits, ResetReleasesPort) {
  there_.set_port_range(5000, 5000);
  open().stream().abort();
  world_.run_for(1s);
  EXPECT_FALSE(open().error());
}

TEST_F(SimLimits, PassiveCloserReleasesItsPort) {
  there_.set_port_range(5000, 5000);
  EchoClient& client = open();
  here_.run(
      [&](Loop&) { server_.sessions().for_each([](Echo& session) { session.stream().end(); }); });
  waited(client);
  world_.run_for(1s);
  EXPECT_FALSE(open().error());
}

TEST_F(SimLimits, PortInTimeWaitMayBeReusedForListening) {
  // As Linux with SO_REUSEADDR, which Listeners set and connecting sockets do not.
  there_.set_port_range(5000, 5000);
  open().stream().close();
  world_.run_for(1s);
  EXPECT_EQ(listen_at(Address::any_ipv4(5000)), std::errc::address_in_use);
  here_.run([&](Loop&) { server_ = Server<Echo>(); });
  world_.run_for(1s);
  const auto again = here_.run([](Loop& loop) {
    return Listener::create(loop, Address::any_ipv6(kLimitPort), [](Stream, const Address&) {});
  });
  EXPECT_TRUE(again);
}

// ---- a full backlog

TEST_F(SimLimits, ConnectToFullBacklogRetriesAndTimesOut) {
  const auto listener = here_.run([](Loop& loop) {
    auto made = must(Listener::create(loop, Address::any_ipv4(7001), [](Stream, const Address&) {},
                                      {.backlog = 1}));
    made.pause();
    return made;
  });
  EchoClient first("hello");
  EchoClient second("hello");
  EchoClient third("hello");
  there_.run([&](Loop& loop) {
    for (EchoClient* client : {&first, &second, &third})
      client->start(loop, here_.address(7001), {.timeout = 1h});
  });
  EXPECT_EQ(waited(third), 127s);
  EXPECT_EQ(third.error(), std::errc::timed_out);
  EXPECT_FALSE(first.is_done() || second.is_done());
}

TEST_F(SimLimits, ConnectToFullBacklogSucceedsOnRetry) {
  std::vector<Stream> accepted;
  auto listener = here_.run([&](Loop& loop) {
    auto made = must(Listener::create(
        loop, Address::any_ipv4(7001),
        [&](Stream stream, const Address&) { accepted.push_back(std::move(stream)); },
        {.backlog = 0}));
    made.pause();
    return made;
  });
  EchoClient first("hello");
  EchoClient second("hello");
  there_.run([&](Loop& loop) {
    for (EchoClient* client : {&first, &second})
      client->start(loop, here_.address(7001), {.timeout = 1h});
  });
  world_.run_for(4s);
  here_.run([&](Loop&) { listener.resume(); });
  world_.run_for(2s);
  EXPECT_EQ(accepted.size(), 1u);
  EXPECT_EQ(world_.run_until([&] { return accepted.size() == 2; }, 1min), Outcome::done);
  EXPECT_EQ(std::chrono::round<std::chrono::seconds>(world_.now()), 7s);  // After 1, 3 and 7.
}

// ---- timeouts

TEST_F(SimLimits, KeepAliveDetectsCut) {
  EchoClient& client = open();
  there_.run([&](Loop&) { EXPECT_FALSE(client.stream().set_keep_alive(10s, 5s, 3)); });
  world_.cut(here_, there_);
  EXPECT_EQ(waited(client), 25s);
  EXPECT_EQ(client.error(), std::errc::timed_out);
}

TEST_F(SimLimits, KeepAliveSetDuringCutDetectsIt) {
  EchoClient& client = open();
  world_.cut_one_way(here_, there_);
  there_.run([&](Loop&) { EXPECT_FALSE(client.stream().set_keep_alive(10s, 5s, 3)); });
  EXPECT_EQ(waited(client), 25s);
}

// An idle end needs 15 s to 25 s to time out, since a cut may begin right before a probe is due.
TEST_F(SimLimits, KeepAliveSurvivesHealedCut) {
  EchoClient& client = open();
  there_.run([&](Loop&) { EXPECT_FALSE(client.stream().set_keep_alive(10s, 5s, 3)); });
  for (int i = 0; i < 5; ++i) {
    world_.cut(here_, there_);
    world_.run_for(14s);
    world_.heal(here_, there_);
    world_.run_for(20s);
  }
  EXPECT_FALSE(client.is_done());
  EXPECT_EQ(world_.run_until([] { return false; }, 24h), Outcome::stuck) << "somebody still probes";
}

TEST_F(SimLimits, KeepAliveDetectsCrashAndRestart) {
  EchoClient& crashed = open();
  there_.run([&](Loop&) { EXPECT_FALSE(crashed.stream().set_keep_alive(10s, 5s, 3)); });
  here_.crash();
  EXPECT_EQ(waited(crashed), 25s);
  EXPECT_EQ(crashed.error(), std::errc::timed_out);
  here_.restart();
}

TEST_F(SimLimits, ProbeAfterRestartIsReset) {
  EchoClient& client = open();
  there_.run([&](Loop&) { EXPECT_FALSE(client.stream().set_keep_alive(10s, 5s, 3)); });
  world_.run_for(1s);
  here_.crash();
  here_.restart();
  EXPECT_EQ(waited(client), 9s);
  EXPECT_EQ(client.error(), std::errc::connection_reset);
}

TEST_F(SimLimits, IdlePeerIsNotNotifiedWithoutKeepAlive) {
  EchoClient& client = open();
  here_.crash();
  EXPECT_EQ(world_.run_until([&] { return client.is_done(); }, 24h * 365), Outcome::stuck);
}

TEST_F(SimLimits, UserTimeoutLimitsUnacknowledgedData) {
  EchoClient& client = open();
  there_.run([&](Loop&) { EXPECT_FALSE(client.stream().set_user_timeout(20s)); });
  world_.cut(here_, there_);
  there_.run([&](Loop&) { client.stream().write("more"); });
  EXPECT_EQ(waited(client), 20s);
  EXPECT_EQ(client.error(), std::errc::timed_out);
}

TEST_F(SimLimits, UserTimeoutDoesNotExtendConnecting) {
  world_.cut(here_, there_);
  const Address to = here_.address(kLimitPort);
  const int fd = there_.run([&](Loop&) {
    const int made = spate_sim_socket(AF_INET, SOCK_STREAM, 0);
    const int half_hour_ms = 30 * 60 * 1000;
    EXPECT_EQ(spate_sim_setsockopt(made, IPPROTO_TCP, TCP_USER_TIMEOUT, &half_hour_ms,
                                   sizeof(half_hour_ms)),
              0);
    EXPECT_EQ(spate_sim_connect(made, static_cast<const sockaddr*>(to.data()),
                                static_cast<socklen_t>(to.size())),
              -1);
    return made;
  });
  const auto error = [&] {
    int found = -1;
    socklen_t size = sizeof(found);
    EXPECT_EQ(spate_sim_getsockopt(fd, SOL_SOCKET, SO_ERROR, &found, &size), 0);
    return found;
  };
  world_.run_for(126s);
  EXPECT_EQ(error(), 0);
  world_.run_for(2s);
  EXPECT_EQ(error(), ETIMEDOUT);
  EXPECT_EQ(spate_sim_close(fd), 0);
}

TEST_F(SimLimits, UserTimeoutLimitsClosedWindow) {
  EchoClient& client = open();
  here_.pause();
  there_.run([&](Loop&) {
    EXPECT_FALSE(client.stream().set_user_timeout(20s));
    client.stream().write(std::string(1'000'000, 'x'));
  });
  EXPECT_EQ(waited(client), 20s);
  EXPECT_EQ(client.error(), std::errc::timed_out);
  here_.resume();
}

TEST_F(SimLimits, BlockedSenderDetectsCrash) {
  EchoClient& client = open();
  here_.pause();
  there_.run([&](Loop&) { client.stream().write(std::string(1'000'000, 'x')); });
  world_.run_for(1min);
  here_.resume();
  here_.crash();
  const Nanos time = waited(client);
  EXPECT_EQ(client.error(), std::errc::timed_out);
  EXPECT_GT(time, 15min);
  EXPECT_LT(time, 17min);
}

TEST_F(SimLimits, UnreadBytesAreBoundedAfterReads) {
  EchoClient client(std::string(5'000'000, 'x'));
  there_.run([&](Loop& loop) { client.start(loop, here_.address(kLimitPort)); });
  EXPECT_EQ(world_.run_until([&] { return client.echoed().size() > 1'000'000; }, 1h),
            Outcome::done);
  here_.pause();
  world_.run_for(10s);
  for (const sim::ConnectionInfo& info : world_.connections()) EXPECT_LE(info.unread, 64u * 1024);
  here_.resume();
  EXPECT_EQ(world_.run_until([&] { return client.is_done(); }, 1h), Outcome::done);
  EXPECT_TRUE(client.has_all());
}

TEST_F(SimLimits, TimeoutOptionsAreValidatedAndReturned) {
  here_.run([&](Loop&) {
    const int fd = spate_sim_socket(AF_INET, SOCK_STREAM, 0);
    const auto set = [fd](int name, int value) {
      return spate_sim_setsockopt(fd, IPPROTO_TCP, name, &value, sizeof(value)) == 0 ? 0 : errno;
    };
    const auto get = [fd](int level, int name) {
      int value = -1;
      socklen_t size = sizeof(value);
      return spate_sim_getsockopt(fd, level, name, &value, &size) == 0 ? value : -errno;
    };
    EXPECT_EQ(get(IPPROTO_TCP, TCP_KEEPIDLE), 7200);
    EXPECT_EQ(get(IPPROTO_TCP, TCP_KEEPINTVL), 75);
    EXPECT_EQ(get(IPPROTO_TCP, TCP_KEEPCNT), 9);
    EXPECT_EQ(get(SOL_SOCKET, SO_KEEPALIVE), 0);
    for (const int name : {TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT}) {
      EXPECT_EQ(set(name, 0), EINVAL);
      EXPECT_EQ(set(name, 1'000'000), EINVAL);
      EXPECT_EQ(set(name, 12), 0);
      EXPECT_EQ(get(IPPROTO_TCP, name), 12);
    }
    EXPECT_EQ(set(TCP_USER_TIMEOUT, -1), EINVAL);
    EXPECT_EQ(set(TCP_USER_TIMEOUT, 1500), 0);
    EXPECT_EQ(get(IPPROTO_TCP, TCP_USER_TIMEOUT), 1500);
    EXPECT_EQ(spate_sim_close(fd), 0);
  });
}

// ---- memory

TEST_F(SimLimits, NothingIsOpenedOrSentWithoutMemory) {
  EchoClient& client = open();
  Datagram packets =
      there_.run([](Loop& loop) { return must(Datagram::create(loop, Address::any_ipv4(0))); });
  here_.pause();
  there_.limit_memory(10'000);
  there_.run([&](Loop&) { client.stream().write(std::string(200'000, 'x')); });
  world_.run_for(1s);
  EXPECT_EQ(there_.used_memory(), 10'000u);
  EXPECT_EQ(open().error(), std::errc::no_buffer_space);
  here_.resume();
  EXPECT_EQ(world_.run_until([&] { return client.echoed().size() == 200'005; }, 1h), Outcome::done);
  EXPECT_EQ(there_.used_memory(), 0u);
  EXPECT_FALSE(open().error());
}

TEST_F(SimLimits, TransfersAreSlowButCompleteWithLittleMemory) {
  here_.limit_memory(5'000);
  there_.limit_memory(3'000);
  EchoClient client(std::string(500'000, 'x'));
  there_.run([&](Loop& loop) { client.start(loop, here_.address(kLimitPort)); });
  EXPECT_EQ(world_.run_until([&] { return client.is_done(); }, 1h), Outcome::done);
  EXPECT_TRUE(client.has_all());
  world_.run_for(1min);
  EXPECT_EQ(here_.used_memory(), 0u);
  EXPECT_EQ(there_.used_memory(), 0u);
}

TEST_F(SimLimits, AcceptIsDelayedByLackOfMemory) {
  EchoClient& client = open();
  there_.run([&](Loop&) { client.stream().pause(); });
  here_.limit_memory(20'000);
  there_.run([&](Loop&) { client.stream().write(std::string(400'000, 'x')); });
  world_.run_for(10s);
  EXPECT_GE(here_.used_memory(), 20'000u);
  EchoClient& late = start({.timeout = 1h});
  world_.run_for(10s);
  EXPECT_FALSE(late.has_all());
  there_.run([&](Loop&) { client.stream().resume(); });
  EXPECT_EQ(world_.run_until([&] { return late.has_all(); }, 1h), Outcome::done);
  EXPECT_EQ(world_.run_until([&] { return client.echoed().size() == 400'005; }, 1h), Outcome::done);
}

TEST_F(SimLimits, PacketsBeyondMemoryLimitAreDropped) {
  const auto packets =
      here_.run([](Loop& loop) { return must(Datagram::create(loop, Address::any_ipv4(7002))); });
  auto sender =
      there_.run([](Loop& loop) { return must(Datagram::create(loop, Address::any_ipv4(0))); });
  here_.limit_memory(10'000);
  there_.run([&](Loop&) {
    const std::string text(1'000, 'x');
    for (int i = 0; i < 20; ++i) sender.send(bytes_of(text), here_.address(7002));
  });
  world_.run_for(1s);
  EXPECT_GT(here_.used_memory(), 8'000u);
  EXPECT_LE(here_.used_memory(), 10'000u);
  here_.limit_memory(0);
}

TEST_F(SimLimits, ReceivedPacketsFreeTheirMemory) {
  auto packets =
      here_.run([](Loop& loop) { return must(Datagram::create(loop, Address::any_ipv4(7002))); });
  auto sender =
      there_.run([](Loop& loop) { return must(Datagram::create(loop, Address::any_ipv4(0))); });
  std::size_t received = 0;
  EXPECT_FALSE(packets.start(
      {.on_packets = [&](std::span<const Packet> some) { received += some.size(); }}));
  there_.run([&](Loop&) {
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(sender.send(bytes_of("x"), here_.address(7002)));
  });
  world_.run_for(1s);
  EXPECT_EQ(received, 20u);
  EXPECT_EQ(here_.used_memory(), 0u);
}

}  // namespace
}  // namespace spate::testing
