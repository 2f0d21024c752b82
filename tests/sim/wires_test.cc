// Rules for single packets, and their effects on packets and connections.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sim/echo.h"
#include "spate/net/datagram.h"
#include "spate/sim/world.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Delivery;
using sim::Host;
using sim::InFlight;
using sim::PacketKind;
using sim::WirePacket;
using sim::World;

constexpr std::uint16_t kWirePort = 7000;

class SimWires : public ::testing::Test {
 protected:
  void start(EchoClient& client) {
    there_.run([&](Loop& loop) { client.start(loop, here_.address(kWirePort)); });
  }
  Nanos finish(EchoClient& client) {
    const Nanos begin = world_.now();
    EXPECT_EQ(world_.run_until([&] { return client.is_done(); }, 24h), sim::Outcome::done);
    return world_.now() - begin;
  }
  auto open(Host& host) {
    return host.run(
        [](Loop& loop) { return must(Datagram::create(loop, Address::any_ipv4(kWirePort))); });
  }

  World world_{1};
  Host& here_ = world_.add_host("here");
  Host& there_ = world_.add_host("there");
  Server<Echo> server_ =
      here_.run([](Loop& loop) { return must(serve<Echo>(loop, Address::any_ipv6(kWirePort))); });
};

// ---- rules

TEST_F(SimWires, RuleMayDropPackets) {
  int answers = 0;
  world_.set_rule([&](const WirePacket& packet) {
    const bool is_answer = packet.kind == PacketKind::data && &packet.from == &here_;
    return Delivery{.is_lost = is_answer && packet.attempt == 0 && ++answers == 1};
  });
  EchoClient client("hello");
  start(client);
  EXPECT_GE(finish(client), 200ms);  // The second attempt was answered.
  EXPECT_TRUE(client.has_all());
  EXPECT_EQ(answers, 1);
}

TEST_F(SimWires, RuleThatDropsAllMakesSenderTimeOut) {
  world_.set_rule([](const WirePacket&) { return Delivery{.is_lost = true}; });
  EchoClient client("hello");
  start(client);
  finish(client);
  EXPECT_EQ(client.error(), std::errc::timed_out);
}

TEST_F(SimWires, RuleMayDelayPackets) {
  world_.set_rule([](const WirePacket& packet) {
    return Delivery{.delay = packet.kind == PacketKind::syn ? 3s : -1s};
  });
  EchoClient client("hello");
  start(client);
  const Nanos span = finish(client);
  EXPECT_GE(span, 3s);
  EXPECT_LE(span, 4s);
}

TEST_F(SimWires, RuleReceivesEndpointsAndPayload) {
  std::vector<std::string> seen;
  world_.set_rule([&](const WirePacket& packet) {
    if (packet.kind == PacketKind::datagram)
      seen.push_back(std::string(packet.from.name()) + ' ' + packet.source.to_string() + ' ' +
                     std::string(packet.to.name()) + ' ' + packet.destination.to_string() + ' ' +
                     std::string(text_of(packet.bytes)));
    return Delivery{};
  });
  Datagram from = open(there_);
  EXPECT_FALSE(from.send(bytes_of("hello"), here_.address(9)));
  world_.set_rule({});
  EXPECT_FALSE(from.send(bytes_of("unseen"), here_.address(9)));
  EXPECT_EQ(seen, std::vector<std::string>{"there 10.0.0.2:7000 here 10.0.0.1:9 hello"});
}

// ---- a limit of sizes

TEST_F(SimWires, SmallerMtuSplitsStreamIntoSmallerSegments) {
  world_.link(here_, there_, {.mtu = 152});
  std::size_t longest = 0;
  std::size_t segments = 0;
  world_.set_rule([&](const WirePacket& packet) {
    longest = std::max(longest, packet.bytes.size());
    segments += packet.kind == PacketKind::data ? 1 : 0;
    return Delivery{};
  });
  EchoClient client(std::string(1000, 'x'));
  start(client);
  finish(client);
  EXPECT_TRUE(client.has_all());
  EXPECT_EQ(longest, 100u);
  EXPECT_GE(segments, 20u);
}

TEST_F(SimWires, VectoredWriteIsOneSegment) {
  EchoClient client("hello");
  client.keep_open();
  start(client);
  world_.run_for(1s);
  int segments = 0;
  world_.set_rule([&](const WirePacket& packet) {
    segments += packet.kind == PacketKind::data && &packet.from == &there_ ? 1 : 0;
    return Delivery{};
  });
  there_.run([&](Loop&) {
    const Bytes pieces[] = {bytes_of("one"), bytes_of("two")};
    EXPECT_TRUE(client.stream().write(pieces));
  });
  world_.run_for(1s);
  world_.set_rule({});  // Connections that are still open end after this test.
  EXPECT_EQ(segments, 1);
}

TEST_F(SimWires, LongPacketIsLostWithAnyFragment) {
  world_.link(here_, there_, {.loss = 0.05, .mtu = 1500});
  Datagram into = open(here_);
  Datagram from = open(there_);
  int small = 0;
  int large = 0;
  EXPECT_FALSE(into.start({.on_packets = [&](std::span<const Packet> packets) {
    for (const Packet& packet : packets) ++(packet.bytes.size() < 1000 ? small : large);
  }}));
  const std::string text(30'000, 'x');
  for (int i = 0; i < 200; ++i) {
    EXPECT_FALSE(from.send(bytes_of("x"), here_.address(kWirePort)));
    EXPECT_FALSE(from.send(bytes_of(text), here_.address(kWirePort)));
    world_.run_for(10ms);
  }
  EXPECT_GT(small, 170);  // 95 % of 200.
  EXPECT_LT(large, 110);  // 0.95^21 of them: 34 %.
  EXPECT_GT(large, 30);
}

// ---- data in flight when a link is cut

class SimInFlight : public SimWires {
 protected:
  // Cuts the link while a packet of UDP and the bytes of a stream are in flight.
  void cut(InFlight in_flight) {
    world_.link(here_, there_, {.latency = 1s});
    start(client_);
    world_.run_until([&] { return !client_.stream().is_connecting(); }, 1min);
    EXPECT_FALSE(into_.start(
        {.on_packets = [&](std::span<const Packet> some) { packets_ += some.size(); }}));
    EXPECT_FALSE(from_.send(bytes_of("x"), here_.address(kWirePort)));
    world_.run_for(500ms);
    world_.cut(here_, there_, in_flight);
    begin_ = world_.now();
    world_.run_for(10s);
    heard_meanwhile_ = packets_;
    world_.heal(here_, there_);
  }

  Datagram into_ = open(here_);
  Datagram from_ = open(there_);
  EchoClient client_{"hello"};
  std::size_t packets_ = 0;
  std::size_t heard_meanwhile_ = 0;
  Nanos begin_{0};
};

TEST_F(SimInFlight, ArrivesByDefault) {
  cut(InFlight::arrives);
  EXPECT_EQ(heard_meanwhile_, 1u);
}

TEST_F(SimInFlight, IsLostAndRetransmittedByTcp) {
  cut(InFlight::lost);
  finish(client_);
  EXPECT_TRUE(client_.has_all());
  EXPECT_EQ(packets_, 0u);
}

TEST_F(SimInFlight, IsHeldUntilLinkIsHealed) {
  cut(InFlight::held);
  EXPECT_EQ(heard_meanwhile_, 0u);
  world_.run_for(0s);
  EXPECT_EQ(packets_, 1u);
  EXPECT_LE(finish(client_), 3s);
  EXPECT_TRUE(client_.has_all());
}

TEST_F(SimWires, DataAfterPermanentlyLostSegmentIsNotDelivered) {
  world_.set_rule([](const WirePacket& packet) {
    return Delivery{.is_lost = packet.kind == PacketKind::data && text_of(packet.bytes) == "two"};
  });
  EchoClient client("one");
  client.keep_open();
  start(client);
  world_.run_for(1s);
  for (const char* text : {"two", "three"}) {
    there_.run([&](Loop&) { client.stream().write(text); });
    world_.run_for(1s);
  }
  EXPECT_EQ(client.echoed(), "one");
  finish(client);
  EXPECT_EQ(client.error(), std::errc::timed_out);
  EXPECT_EQ(client.echoed(), "one");
}

TEST_F(SimWires, CrashedHostDoesNotRetransmit) {
  std::string heard;
  world_.set_rule([&](const WirePacket& packet) {
    if (packet.kind == PacketKind::data && &packet.from == &here_) heard += text_of(packet.bytes);
    const bool is_two = packet.kind == PacketKind::data && text_of(packet.bytes) == "two";
    return Delivery{.is_lost = is_two && packet.attempt == 0};
  });
  EchoClient client("one");
  client.keep_open();
  start(client);
  world_.run_for(1s);
  there_.run([&](Loop&) { client.stream().write("two"); });
  world_.run_for(100ms);
  there_.crash();
  world_.run_for(1h);
  EXPECT_EQ(heard, "one");
}

// ---- connections

TEST_F(SimWires, ConnectionsAreListedByHost) {
  EchoClient client("hello");
  client.keep_open();
  start(client);
  world_.run_until([&] { return client.has_all(); }, 1s);
  const std::vector<sim::ConnectionInfo> all = world_.connections();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].host, &here_);
  EXPECT_EQ(all[0].state, sim::ConnectionState::listening);
  EXPECT_EQ(all[0].local, Address::any_ipv6(kWirePort));
  EXPECT_EQ(all[1].host, &here_);
  EXPECT_EQ(all[1].state, sim::ConnectionState::open);
  EXPECT_EQ(all[1].local, here_.address(kWirePort));
  EXPECT_EQ(all[2].host, &there_);
  EXPECT_EQ(all[2].peer, here_.address(kWirePort));
  EXPECT_EQ(all[2].local, all[1].peer);
  client.stream() = Stream();
  world_.run_for(1s);
  EXPECT_EQ(world_.connections().size(), 1u);
}

TEST_F(SimWires, UnreadAndUnsentBytesAreCounted) {
  EchoClient client(std::string(1'000'000, 'x'));
  here_.pause();
  start(client);
  world_.run_for(10s);
  std::size_t unread = 0;
  std::size_t unsent = 0;
  std::size_t waiting = 0;
  for (const sim::ConnectionInfo& info : world_.connections()) {
    if (info.state == sim::ConnectionState::listening) {
      waiting += info.unread;
    } else {
      unread += info.unread;
      unsent += info.unsent;
    }
  }
  EXPECT_EQ(waiting, 1u);
  EXPECT_GT(unread, 60'000u);
  EXPECT_GT(unsent, 60'000u);
  world_.cut(here_, there_);
}

TEST_F(SimWires, ConnectingSocketIsListedAsConnecting) {
  world_.cut(here_, there_);
  EchoClient client("hello");
  start(client);
  const std::vector<sim::ConnectionInfo> all = world_.connections();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back().state, sim::ConnectionState::connecting);
}

// ---- capture

// Returns the packets of a pcap file, after checking its header.
std::vector<std::string> packets_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, all.data() + at, sizeof(value));
    return value;
  };
  EXPECT_GE(all.size(), 24u);
  EXPECT_EQ(number(0), 0xa1b23c4du);
  EXPECT_EQ(number(20), 101u);
  std::vector<std::string> packets;
  for (std::size_t at = 24; at + 16 <= all.size(); at += 16 + number(at + 8)) {
    EXPECT_EQ(number(at + 8), number(at + 12));
    EXPECT_LT(number(at + 4), 1'000'000'000u);
    packets.push_back(all.substr(at + 16, number(at + 8)));
  }
  return packets;
}

// Returns the ones' complement sum over the bytes, which is 0xffff if their checksum is right.
std::uint32_t sum_over(const std::string& bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    sum += static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (i % 2 == 0 ? 8 : 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

bool has_right_checksums(const std::string& packet) {
  const bool is_v4 = (packet[0] & 0xf0) == 0x40;
  const std::string content = packet.substr(is_v4 ? 20 : 40);
  std::string pseudo = is_v4 ? packet.substr(12, 8) : packet.substr(8, 32);
  pseudo += {0, packet[is_v4 ? 9 : 6]};
  pseudo += {static_cast<char>(content.size() >> 8), static_cast<char>(content.size() & 0xff)};
  const bool is_head_right = !is_v4 || sum_over(packet.substr(0, 20)) == 0xffff;
  return is_head_right && sum_over(pseudo + content) == 0xffff;
}

TEST_F(SimWires, CaptureContainsAllPacketsAsSent) {
  const std::string path = ::testing::TempDir() + "spate_wires_" + std::to_string(::getpid());
  ASSERT_FALSE(world_.capture(path));
  EchoClient client("hello");
  start(client);
  finish(client);
  EchoClient six("six");
  there_.run([&](Loop& loop) { six.start(loop, here_.address_ipv6(kWirePort)); });
  finish(six);
  Datagram from = open(there_);
  EXPECT_FALSE(from.send(bytes_of("odd"), here_.address(9)));
  world_.run_for(1s);
  ASSERT_FALSE(world_.capture("/dev/null"));  // The file is closed.
  const std::vector<std::string> packets = packets_in(path);
  ASSERT_GE(packets.size(), 10u);
  int syns = 0;
  int fins = 0;
  int texts = 0;
  for (const std::string& packet : packets) {
    EXPECT_TRUE(has_right_checksums(packet));
    const bool is_v4 = (packet[0] & 0xf0) == 0x40;
    const std::size_t head = is_v4 ? 20 : 40;
    if (packet[is_v4 ? 9 : 6] == 6) {
      syns += packet[head + 13] == 2 ? 1 : 0;
      fins += (packet[head + 13] & 1) != 0 ? 1 : 0;
    }
    texts +=
        packet.ends_with("hello") || packet.ends_with("six") || packet.ends_with("odd") ? 1 : 0;
  }
  EXPECT_EQ(syns, 2);
  EXPECT_EQ(fins, 4);
  EXPECT_EQ(texts, 5);
  ::unlink(path.c_str());
}

TEST_F(SimWires, CaptureFailureIsReported) {
  EXPECT_EQ(world_.capture("/nonexistent/file"), std::errc::no_such_file_or_directory);
}

}  // namespace
}  // namespace spate::testing
