// Datagrams in a World: the guarantees of UDP there, and their absence.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "spate/loop.h"
#include "spate/net/bytes.h"
#include "spate/net/datagram.h"
#include "spate/sim/world.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using sim::Host;
using sim::World;

constexpr std::uint16_t kMailPort = 5353;

// A socket that keeps the packets it receives.
struct Mailbag final : DatagramHandler {
  Mailbag(Host& host, const Address& local, const DatagramOptions& options = {})
      : socket(host.run([&](Loop& loop) { return must(Datagram::create(loop, local, options)); })) {
    host.run([&](Loop&) { socket.start(*this); });
  }
  void on_packets(std::span<const Packet> packets) override {
    for (const Packet& packet : packets) {
      texts.emplace_back(text_of(packet.bytes));
      peers.push_back(packet.peer);
      locals.push_back(packet.local);
      marks.push_back(packet.ecn);
      cut += packet.truncated;
      if (answers) EXPECT_FALSE(socket.send(packet.bytes, packet.peer));
    }
  }
  void on_error(std::error_code error) override { errors.push_back(error); }

  Datagram socket;
  bool answers = false;
  int cut = 0;
  std::vector<std::string> texts;
  std::vector<Address> peers;
  std::vector<Address> locals;
  std::vector<Ecn> marks;
  std::vector<std::error_code> errors;
};

class SimPackets : public ::testing::Test {
 protected:
  World world_{1};
  Host& here_ = world_.add_host("here");
  Host& there_ = world_.add_host("there");
};

TEST_F(SimPackets, TravelBothWays) {
  Mailbag server(here_, Address::any_ipv4(kMailPort));
  server.answers = true;
  Mailbag client(there_, Address::any_ipv4(0));
  EXPECT_FALSE(client.socket.send(bytes_of("hello"), here_.address(kMailPort)));
  EXPECT_FALSE(client.socket.send(bytes_of(""), here_.address(kMailPort)));
  world_.run_for(1s);
  EXPECT_EQ(server.texts, (std::vector<std::string>{"hello", ""}));
  EXPECT_EQ(client.texts, server.texts);
  EXPECT_EQ(client.peers.at(0), here_.address(kMailPort));
  EXPECT_EQ(server.peers.at(0), there_.address(client.socket.local_address().port()));
}

TEST_F(SimPackets, Ipv6SocketCarriesIpv4) {
  Mailbag server(here_, Address::any_ipv6(kMailPort), {.local_address = true, .ecn = true});
  server.answers = true;
  Mailbag client(there_, Address::any_ipv4(0));
  Mailbag six(there_, Address::any_ipv6(0));
  EXPECT_FALSE(client.socket.set_ecn(Ecn::capable_0));
  EXPECT_FALSE(client.socket.send(bytes_of("four"), here_.address(kMailPort)));
  world_.run_for(1s);
  EXPECT_FALSE(six.socket.send(bytes_of("six"), here_.address_ipv6(kMailPort)));
  world_.run_for(1s);
  EXPECT_EQ(server.texts, (std::vector<std::string>{"four", "six"}));
  EXPECT_EQ(client.texts, std::vector<std::string>{"four"});
  EXPECT_EQ(six.texts, std::vector<std::string>{"six"});
  EXPECT_EQ(server.locals.at(0), here_.address(0));
  EXPECT_EQ(server.locals.at(1), here_.address_ipv6(0));
  EXPECT_EQ(server.marks, (std::vector{Ecn::capable_0, Ecn::not_capable}));
}

TEST_F(SimPackets, ArriveInBatches) {
  Mailbag server(here_, Address::any_ipv4(kMailPort));
  Mailbag client(there_, Address::any_ipv4(0));
  const Address to = here_.address(kMailPort);
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.push_back(std::to_string(i));
  std::vector<Outgoing> packets;
  for (const std::string& text : texts) packets.push_back({bytes_of(text), &to});
  EXPECT_EQ(client.socket.send(packets), 100u);
  world_.run_for(1s);
  EXPECT_EQ(server.texts, texts);
}

TEST_F(SimPackets, AreSplitIntoSegments) {
  Mailbag server(here_, Address::any_ipv4(kMailPort));
  Mailbag client(there_, Address::any_ipv4(0));
  const std::string text(2500, 'x');
  EXPECT_EQ(client.socket.send_segments(bytes_of(text), 1000, here_.address(kMailPort)), 2500u);
  world_.run_for(1s);
  ASSERT_EQ(server.texts.size(), 3u);
  EXPECT_EQ(server.texts.back().size(), 500u);
}

TEST_F(SimPackets, BatchKeepsSourceMarkAndSegmentsOfEach) {
  Mailbag server(here_, Address::any_ipv6(kMailPort), {.ecn = true});
  Mailbag client(there_, Address::any_ipv6(0));
  const Address v4 = here_.address(kMailPort);
  const Address v6 = here_.address_ipv6(kMailPort);
  const Address local = there_.address(0);
  const Address foreign = here_.address(0);
  const Outgoing packets[] = {
      {.bytes = bytes_of("aab"), .peer = &v4, .local = &local, .ecn = Ecn::congested, .segment = 2},
      {.bytes = bytes_of("c"), .peer = &v6, .ecn = Ecn::capable_0},
      {.bytes = bytes_of("d"), .peer = &v4, .local = &foreign}};
  std::error_code error;
  EXPECT_EQ(client.socket.send(packets, &error), 2u);
  EXPECT_EQ(error, std::errc::invalid_argument);
  world_.run_for(1s);
  EXPECT_EQ(server.texts, (std::vector<std::string>{"aa", "b", "c"}));
  EXPECT_EQ(server.marks, (std::vector<Ecn>{Ecn::congested, Ecn::congested, Ecn::capable_0}));
  EXPECT_EQ(server.peers.at(0).unmapped().host(), local.host());
}

TEST_F(SimPackets, AreNotFragmentedIfForbidden) {
  Mailbag server(here_, Address::any_ipv4(kMailPort));
  Mailbag client(there_, Address::any_ipv4(0), {.dont_fragment = true});
  EXPECT_FALSE(client.socket.connect(here_.address(kMailPort)));
  EXPECT_EQ(client.socket.path_mtu(), 1500u);
  const std::string most(1500 - 28, 'x');
  EXPECT_FALSE(client.socket.send(bytes_of(most)));
  EXPECT_EQ(client.socket.send(bytes_of(most + 'x')), std::errc::message_size);
  Mailbag other(there_, Address::any_ipv4(0));
  EXPECT_FALSE(other.socket.send(bytes_of(most + 'x'), here_.address(kMailPort)));
  world_.run_for(1s);
  EXPECT_EQ(server.texts.size(), 2u);
}

TEST_F(SimPackets, AreCountedWhenDropped) {
  Mailbag server(here_, Address::any_ipv4(kMailPort));
  Mailbag client(there_, Address::any_ipv4(0));
  here_.run([&](Loop&) { server.socket.pause(); });
  const std::string text(1000, 'x');
  int sent = 0;
  for (; sent < 1000; ++sent)
    if (client.socket.send(bytes_of(text), here_.address(kMailPort))) break;
  world_.run_for(1s);
  EXPECT_GT(server.socket.dropped().value_or(0), 0u);
  here_.run([&](Loop&) { server.socket.resume(); });
  world_.run_for(1s);
  EXPECT_EQ(server.texts.size() + *server.socket.dropped(), static_cast<std::size_t>(sent));
}

TEST_F(SimPackets, AreTruncatedToPacketSize) {
  Mailbag server(here_, Address::any_ipv4(kMailPort), {.packet_size = 4});
  Mailbag client(there_, Address::any_ipv4(0));
  EXPECT_FALSE(client.socket.send(bytes_of("longer"), here_.address(kMailPort)));
  EXPECT_FALSE(client.socket.send(bytes_of("four"), here_.address(kMailPort)));
  world_.run_for(1s);
  EXPECT_EQ(server.texts, (std::vector<std::string>{"long", "four"}));
  EXPECT_EQ(server.cut, 1);
}

TEST_F(SimPackets, AreRefusedIfTooLarge) {
  Mailbag client(there_, Address::any_ipv4(0));
  const std::string most(65507, 'x');
  EXPECT_FALSE(client.socket.send(bytes_of(most), here_.address(kMailPort)));
  EXPECT_EQ(client.socket.send(bytes_of(most + 'x'), here_.address(kMailPort)),
            std::errc::message_size);
}

TEST_F(SimPackets, RequireReachableDestination) {
  Mailbag client(there_, Address::any_ipv4(0));
  EXPECT_EQ(client.socket.send(bytes_of("hello")), std::errc::destination_address_required);
  for (const char* address : {"192.0.2.1", "10.0.0.3"}) {  // Neither, and one of a third host.
    const Address to = must(Address::ip(address, kMailPort));
    EXPECT_EQ(client.socket.send(bytes_of("hello"), to), std::errc::network_unreachable);
    EXPECT_EQ(client.socket.connect(to), std::errc::network_unreachable);
  }
  EXPECT_EQ(client.socket.send(bytes_of("hello"), here_.address_ipv6(kMailPort)),
            std::errc::address_family_not_supported);
}

TEST_F(SimPackets, ConnectedSocketReceivesConnectionRefused) {
  Mailbag client(there_, Address::any_ipv4(0));
  EXPECT_FALSE(client.socket.send(bytes_of("hello"), here_.address(kMailPort)));
  world_.run_for(1s);
  EXPECT_TRUE(client.errors.empty());
  EXPECT_FALSE(client.socket.connect(here_.address(kMailPort)));
  EXPECT_FALSE(client.socket.send(bytes_of("hello")));
  world_.run_for(1s);
  ASSERT_EQ(client.errors.size(), 1u);
  EXPECT_EQ(client.errors[0], std::errc::connection_refused);
}

TEST_F(SimPackets, ConnectedSocketReceivesOnlyFromItsPeer) {
  Mailbag server(here_, Address::any_ipv4(kMailPort));
  Mailbag other(here_, Address::any_ipv4(0));
  Mailbag client(there_, Address::any_ipv4(7));
  EXPECT_FALSE(client.socket.connect(here_.address(kMailPort)));
  EXPECT_EQ(client.socket.local_address(), there_.address(7));
  EXPECT_FALSE(other.socket.send(bytes_of("not heard"), there_.address(7)));
  EXPECT_FALSE(server.socket.send(bytes_of("heard"), there_.address(7)));
  world_.run_for(1s);
  EXPECT_EQ(client.texts, std::vector<std::string>{"heard"});
  EXPECT_FALSE(client.socket.connect(Address()));
  EXPECT_FALSE(other.socket.send(bytes_of("now heard"), there_.address(7)));
  world_.run_for(1s);
  EXPECT_EQ(client.texts.size(), 2u);
}

TEST_F(SimPackets, PortIsBoundOnceOrShared) {
  Mailbag server(here_, Address::any_ipv4(kMailPort));
  const auto twice =
      here_.run([](Loop& loop) { return Datagram::create(loop, Address::any_ipv4(kMailPort)); });
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error(), std::errc::address_in_use);

  Mailbag one(here_, Address::any_ipv4(8), {.reuse_port = true});
  Mailbag other(here_, Address::any_ipv4(8), {.reuse_port = true});
  std::vector<std::unique_ptr<Mailbag>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<Mailbag>(there_, Address::any_ipv4(0)));
    for (int twice_each = 0; twice_each < 2; ++twice_each)
      EXPECT_FALSE(clients.back()->socket.send(bytes_of("hello"), here_.address(8)));
  }
  world_.run_for(1s);
  EXPECT_EQ(one.texts.size() + other.texts.size(), 40u);
  EXPECT_GT(one.texts.size(), 0u);
  EXPECT_GT(other.texts.size(), 0u);
  for (const Address& sender : one.peers)  // The sender determines the socket.
    EXPECT_EQ(std::ranges::count(other.peers, sender), 0);
}

TEST_F(SimPackets, AreDroppedBeyondReceiveBuffer) {
  Mailbag server(here_, Address::any_ipv4(kMailPort));
  EXPECT_FALSE(server.socket.set_kernel_buffers(0, 10'000));
  Mailbag client(there_, Address::any_ipv4(0));
  server.socket.pause();
  const std::string text(1000, 'x');
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(client.socket.send(bytes_of(text), here_.address(kMailPort)));
  world_.run_for(1s);
  server.socket.resume();
  world_.run_for(1s);
  EXPECT_EQ(server.texts.size(), 8u);  // Each counts 1,256 bytes; some room was left for the last.
}

TEST_F(SimPackets, ReachHostItself) {
  Mailbag server(here_, Address::loopback_ipv4(kMailPort));
  Mailbag client(here_, Address::any_ipv4(0));
  EXPECT_FALSE(client.socket.send(bytes_of("hello"), Address::loopback_ipv4(kMailPort)));
  world_.run_for(1s);
  EXPECT_EQ(server.texts, std::vector<std::string>{"hello"});
  EXPECT_EQ(server.peers.at(0).with_port(0), Address::loopback_ipv4(0));
}

TEST_F(SimPackets, AreDroppedDuringCut) {
  Mailbag server(here_, Address::any_ipv4(kMailPort));
  Mailbag client(there_, Address::any_ipv4(0));
  world_.cut(here_, there_);
  EXPECT_FALSE(client.socket.send(bytes_of("lost"), here_.address(kMailPort)));
  world_.run_for(1s);
  world_.heal(here_, there_);
  EXPECT_FALSE(client.socket.send(bytes_of("found"), here_.address(kMailPort)));
  world_.run_for(1min);
  EXPECT_EQ(server.texts, std::vector<std::string>{"found"});
}

// Returns those of a thousand numbered packets that arrive.
std::vector<std::string> thousand(const sim::LinkOptions& options, Nanos pause = 1ms) {
  World world(7);
  Host& here = world.add_host("here");
  Host& there = world.add_host("there");
  world.link(here, there, options);
  Mailbag server(here, Address::any_ipv4(kMailPort));
  Mailbag client(there, Address::any_ipv4(0));
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(client.socket.send(bytes_of(std::to_string(1000 + i)), here.address(kMailPort)));
    world.run_for(pause);
  }
  world.run_for(1min);
  return server.texts;
}

TEST(SimLossyPackets, AreLostAtConfiguredRate) {
  const std::size_t count = thousand({.loss = 0.3}).size();
  EXPECT_GT(count, 600u);
  EXPECT_LT(count, 800u);
  EXPECT_TRUE(thousand({.loss = 1}).empty());
}

TEST(SimLossyPackets, AreDuplicated) {
  const std::size_t count = thousand({.duplicates = 0.3}).size();
  EXPECT_GT(count, 1200u);
  EXPECT_LT(count, 1400u);
}

TEST(SimLossyPackets, StayInOrderUnlessConfiguredOtherwise) {
  const auto in_order = thousand({.latency = 5ms, .jitter = 50ms});
  EXPECT_EQ(in_order.size(), 1000u);
  EXPECT_TRUE(std::ranges::is_sorted(in_order));
  const auto mixed = thousand({.latency = 5ms, .reorder = 0.1});
  EXPECT_EQ(mixed.size(), 1000u);
  EXPECT_FALSE(std::ranges::is_sorted(mixed));
}

TEST(SimLossyPackets, AreDroppedBeyondBandwidth) {
  // 32 bytes each, of which 100 a second pass, and 200 ms may be queued.
  const std::size_t count = thousand({.bytes_per_second = 3'200}).size();
  EXPECT_GT(count, 100u);
  EXPECT_LT(count, 150u);
  EXPECT_EQ(thousand({.bytes_per_second = 3'200}, 10ms).size(), 1000u);
}

}  // namespace
}  // namespace spate::testing
