// Datagram: packets, in batches, with their ancillary data.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cerrno>
#include <deque>

#include "base/fault.h"
#include "streams/datagram_harness.h"
#include "support/closed_port.h"
#include "sys/descriptor.h"

namespace spate::testing {
namespace {

TEST_F(DatagramTest, ReportsSenderOfPackets) {
  Datagram receiver = open();
  Datagram sender = open();
  receiver.start(log_);
  EXPECT_FALSE(sender.send(bytes_of("one"), receiver.local_address()));
  EXPECT_FALSE(sender.send(bytes_of(""), receiver.local_address()));
  EXPECT_FALSE(sender.send(bytes_of("three"), receiver.local_address()));
  run_until(loop_, [&] { return log_.texts.size() == 3; });
  EXPECT_EQ(log_.texts, (std::vector<std::string>{"one", "", "three"}));
  EXPECT_EQ(log_.all[0].peer, sender.local_address());
  EXPECT_FALSE(log_.all[0].truncated);
  EXPECT_EQ(log_.batches, 1);
}

TEST_F(DatagramTest, KeepsPacketsThatArriveBeforeStart) {
  Datagram receiver = open();
  Datagram sender = open();
  {
    FaultPlan plan;
    plan.fail_nth(SystemCall::send, 1, EAGAIN);
    const FaultScope scope(plan);
    EXPECT_TRUE(receiver.send(bytes_of("x"), sender.local_address()));
  }
  EXPECT_FALSE(sender.send(bytes_of("early"), receiver.local_address()));
  run_turns(loop_, 5);
  receiver.start(log_);
  run_until(loop_, [&] { return log_.texts.size() == 1; });
  EXPECT_EQ(log_.texts[0], "early");
}

TEST_F(DatagramTest, SendsAndReceivesInBatches) {
  Datagram receiver = open();
  Datagram sender = open();
  receiver.start(log_);
  const Address to = receiver.local_address();
  std::deque<std::string> texts;
  std::vector<Outgoing> packets;
  for (int i = 0; i < 100; ++i) {
    texts.push_back("packet " + std::to_string(i));
    packets.push_back({.bytes = bytes_of(texts.back()), .peer = &to});
  }
  EXPECT_EQ(sender.send(packets), 100u);
  run_until(loop_, [&] { return log_.texts.size() == 100; });
  EXPECT_TRUE(std::equal(texts.begin(), texts.end(), log_.texts.begin()));
  EXPECT_LE(log_.batches, 5);
}

TEST_F(DatagramTest, ReportsTruncatedPackets) {
  Datagram receiver = open({.packet_size = 4});
  Datagram sender = open();
  receiver.start(log_);
  EXPECT_FALSE(sender.send(bytes_of("too long"), receiver.local_address()));
  run_until(loop_, [&] { return log_.texts.size() == 1; });
  EXPECT_EQ(log_.texts[0], "too ");
  EXPECT_TRUE(log_.all[0].truncated);
  EXPECT_FALSE(sender.send(bytes_of("ok"), receiver.local_address()));
  run_until(loop_, [&] { return log_.texts.size() == 2; });
  EXPECT_EQ(log_.texts[1], "ok");
  EXPECT_FALSE(log_.all[1].truncated) << "it arrived where the other had";
}

TEST_F(DatagramTest, SplitsSegmentedSends) {
  for (const bool coalesce : {false, true}) {
    Datagram receiver = open({.coalesce = coalesce});
    Datagram sender = open();
    Collector log;
    receiver.start(log);
    const std::string bytes(100 * 150 + 7, 'x');
    const auto sent = sender.send_segments(bytes_of(bytes), 100, receiver.local_address());
    ASSERT_TRUE(sent);
    EXPECT_EQ(*sent, bytes.size());
    run_until(loop_, [&] { return log.texts.size() == 151; });
    EXPECT_EQ(log.texts.front().size(), 100u);
    EXPECT_EQ(log.texts.back().size(), 7u);
  }
}

TEST_F(DatagramTest, SendsFromChosenSource) {
  Datagram sender = open_dual();
  for (const auto& [to, source] : {std::pair("127.0.0.1", "127.0.0.2"), std::pair("::1", "::1")}) {
    Datagram receiver = open_at(*Address::ip(to, 0));
    Collector log;
    receiver.start(log);
    const Address peer = receiver.local_address();
    const Address local = *Address::ip(source, 1);
    const Outgoing packet{.bytes = bytes_of("x"), .peer = &peer, .local = &local};
    EXPECT_EQ(sender.send({&packet, 1}), 1u);
    run_until(loop_, [&] { return log.texts.size() == 1; });
    EXPECT_EQ(log.all[0].peer, local.with_port(sender.local_address().port()));
  }
}

// As a server does that is bound to all addresses.
TEST_F(DatagramTest, RespondsFromDestinationOfPacket) {
  for (const auto& [any, destination] :
       {std::pair("0.0.0.0", "127.0.0.5"), std::pair("::", "127.0.0.5"), std::pair("::", "::1")}) {
    Datagram server = open_at(*Address::ip(any, 0), {.local_address = true});
    DatagramCallbacks respond;
    respond.on_packets = [&](std::span<const Packet> packets) {
      for (const Packet& packet : packets) {
        const Outgoing response{
            .bytes = packet.bytes, .peer = &packet.peer, .local = &packet.local};
        std::error_code error;
        EXPECT_EQ(server.send({&response, 1}, &error), 1u) << error.message();
      }
    };
    ASSERT_FALSE(server.start(std::move(respond)));
    const Address to = *Address::ip(destination, server.local_address().port());
    Datagram client =
        open_at(*Address::ip(to.family() == Address::Family::ipv4 ? "127.0.0.1" : "::1", 0));
    Collector log;
    client.start(log);
    EXPECT_FALSE(client.send(bytes_of("x"), to));
    run_until(loop_, [&] { return log.texts.size() == 1; });
    EXPECT_EQ(log.all[0].peer, to);
  }
}

TEST_F(DatagramTest, MarksEachPacketOfBatch) {
  for (const char* to : {"127.0.0.1", "::1"}) {
    Datagram receiver = open_at(*Address::ip(to, 0), {.ecn = true});
    Datagram sender = open_dual();
    Collector log;
    receiver.start(log);
    EXPECT_FALSE(sender.set_ecn(Ecn::capable_1));
    const Address peer = receiver.local_address();
    const Outgoing packets[] = {{.bytes = bytes_of("a"), .peer = &peer, .ecn = Ecn::congested},
                                {.bytes = bytes_of("b"), .peer = &peer},
                                {.bytes = bytes_of("c"), .peer = &peer, .ecn = Ecn::not_capable}};
    EXPECT_EQ(sender.send(packets), 3u);
    run_until(loop_, [&] { return log.texts.size() == 3; });
    EXPECT_EQ(log.all[0].ecn, Ecn::congested);
    EXPECT_EQ(log.all[1].ecn, Ecn::capable_1);
    EXPECT_EQ(log.all[2].ecn, Ecn::not_capable);
  }
}

TEST_F(DatagramTest, SplitsPacketsOfBatchForEachPeer) {
  Datagram first = open();
  Datagram second = open();
  Datagram sender = open();
  Collector one;
  Collector two;
  first.start(one);
  second.start(two);
  const Address to_first = first.local_address();
  const Address to_second = second.local_address();
  const Address local = *Address::ip("127.0.0.3", 0);
  const Outgoing packets[] = {
      {.bytes = bytes_of("aabbc"), .peer = &to_first, .segment = 2},
      {.bytes = bytes_of("ddd"), .peer = &to_second, .segment = 3},
      {.bytes = bytes_of("eeefff"), .peer = &to_second, .local = &local, .segment = 3},
      {.bytes = {}, .peer = &to_first, .segment = 9}};
  EXPECT_EQ(sender.send(packets), 4u);
  run_until(loop_, [&] { return one.texts.size() == 4 && two.texts.size() == 3; });
  EXPECT_EQ(one.texts, (std::vector<std::string>{"aa", "bb", "c", ""}));
  EXPECT_EQ(two.texts, (std::vector<std::string>{"ddd", "eee", "fff"}));
  EXPECT_EQ(two.all[2].peer.host(), "127.0.0.3");
}

// As a kernel without UDP_SEGMENT, or a device without checksums, refuses to split.
TEST_F(DatagramTest, SplitsPacketsWhenKernelCannot) {
  Datagram receiver = open();
  Datagram sender = open();
  receiver.start(log_);
  const Address to = receiver.local_address();
  const Outgoing packets[] = {{.bytes = bytes_of("before"), .peer = &to},
                              {.bytes = bytes_of("aabbc"), .peer = &to, .segment = 2},
                              {.bytes = bytes_of("after"), .peer = &to}};
  FaultPlan plan;
  plan.fail_nth(SystemCall::send, 1, EIO);
  {
    const FaultScope scope(plan);
    EXPECT_EQ(sender.send(std::span(packets).subspan(1)), 2u);
  }
  run_until(loop_, [&] { return log_.texts.size() == 4; });
  EXPECT_EQ(log_.texts, (std::vector<std::string>{"aa", "bb", "c", "after"}));
  std::error_code error;
  FaultPlan full;
  full.fail_nth(SystemCall::send, 1, EIO);
  full.fail_nth(SystemCall::send, 2, ENOBUFS);
  const FaultScope scope(full);
  EXPECT_EQ(sender.send(std::span(packets).subspan(1), &error), 0u);
  EXPECT_EQ(error, std::errc::no_buffer_space);
}

TEST_F(DatagramTest, SplitsPacketsOfUnixSockets) {
  Datagram receiver = open_at(own_name("receiver"));
  Datagram sender = open_at(own_name("sender"));
  receiver.start(log_);
  const Address to = receiver.local_address();
  const Outgoing packets[] = {{.bytes = bytes_of("before"), .peer = &to},
                              {.bytes = bytes_of("aabbc"), .peer = &to, .segment = 2}};
  EXPECT_EQ(sender.send(packets), 2u);
  run_until(loop_, [&] { return log_.texts.size() == 4; });
  EXPECT_EQ(log_.texts, (std::vector<std::string>{"before", "aa", "bb", "c"}));
}

TEST_F(DatagramTest, CountsDroppedPackets) {
  Datagram receiver = open();
  Datagram sender = open();
  EXPECT_EQ(receiver.dropped(), 0u);
  ASSERT_FALSE(receiver.set_kernel_buffers(0, 4096));
  const std::string large(1000, 'x');
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(sender.send(bytes_of(large), receiver.local_address()));
  const Result<std::uint32_t> dropped = receiver.dropped();
  ASSERT_TRUE(dropped) << dropped.error().message();
  receiver.start(log_);
  run_until(loop_, [&] { return log_.texts.size() + *dropped == 50; });
  EXPECT_GT(*dropped, 0u);
}

TEST_F(DatagramTest, KnowsPathMtuOfConnectedPeer) {
  Datagram receiver = open();
  for (const bool is_dual : {false, true}) {
    Datagram sender = is_dual ? open_dual({.dont_fragment = true}) : open({.dont_fragment = true});
    EXPECT_EQ(sender.path_mtu().error(), std::errc::not_connected);
    EXPECT_FALSE(sender.connect(receiver.local_address()));
    EXPECT_GE(sender.path_mtu().value_or(0), 1280u);
  }
  Datagram local = open_at(own_name("unix"), {.dont_fragment = true});
  EXPECT_EQ(local.path_mtu().error(), std::errc::operation_not_supported);
}

TEST_F(DatagramTest, ForbidsFragments) {
  for (const bool is_dual : {false, true}) {
    const Datagram socket =
        is_dual ? open_dual({.dont_fragment = true}) : open({.dont_fragment = true});
    int discovery = 0;
    socklen_t size = sizeof(discovery);
    ASSERT_EQ(::getsockopt(socket.fd(), IPPROTO_IP, IP_MTU_DISCOVER, &discovery, &size), 0);
    EXPECT_EQ(discovery, IP_PMTUDISC_PROBE);
    if (!is_dual) continue;
    ASSERT_EQ(::getsockopt(socket.fd(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, &discovery, &size), 0);
    EXPECT_EQ(discovery, IPV6_PMTUDISC_PROBE);
  }
}

TEST_F(DatagramTest, ReportsDestinationAndEcnOfPackets) {
  Datagram receiver = open({.local_address = true, .ecn = true});
  Datagram sender = open();
  receiver.start(log_);
  EXPECT_FALSE(sender.set_ecn(Ecn::capable_0));
  EXPECT_FALSE(sender.send(bytes_of("x"), receiver.local_address()));
  const int urgent = 0xb8 | 1;  // The mark is two of eight bits.
  ASSERT_EQ(::setsockopt(sender.fd(), IPPROTO_IP, IP_TOS, &urgent, sizeof(urgent)), 0);
  EXPECT_FALSE(sender.send(bytes_of("x"), receiver.local_address()));
  run_until(loop_, [&] { return log_.texts.size() == 2; });
  EXPECT_EQ(log_.all[0].local.host(), "127.0.0.1");
  EXPECT_EQ(log_.all[0].ecn, Ecn::capable_0);
  EXPECT_EQ(log_.all[1].ecn, Ecn::capable_1);
}

TEST_F(DatagramTest, ReceivesOnlyFromPeerAndReportsRefusalWhenConnected) {
  // An explicit port: disconnecting would release a port that the kernel chose.
  const Address own = open().local_address();
  Datagram socket = std::move(*Datagram::create(loop_, own));
  socket.start(log_);
  EXPECT_FALSE(socket.connect(closed_ipv4()));
  EXPECT_FALSE(socket.send(bytes_of("anybody there?")));
  run_until(loop_, [&] { return bool(log_.error); });
  EXPECT_EQ(log_.error, std::errc::connection_refused);
  Datagram stranger = open();
  stranger.send(bytes_of("me"), socket.local_address());
  for (int i = 0; i < 5; ++i) loop_.run(Run::no_wait);
  EXPECT_TRUE(log_.texts.empty());
  EXPECT_FALSE(socket.connect(Address()));
  stranger.send(bytes_of("me"), socket.local_address());
  run_until(loop_, [&] { return log_.texts.size() == 1; });
}

TEST_F(DatagramTest, DropsQueuedPacketsFromOthersOnConnect) {
  for (const bool coalesces : {false, true}) {
    Datagram socket = open({.coalesce = coalesces});
    Datagram stranger = open();
    Datagram peer = open();
    for (int i = 0; i < 100; ++i) {
      EXPECT_FALSE(stranger.send(bytes_of("stranger"), socket.local_address()));
      if (i % 10 == 0) EXPECT_FALSE(peer.send(bytes_of("peer"), socket.local_address()));
    }
    EXPECT_FALSE(socket.connect(peer.local_address()));
    Collector log;
    socket.start(log);
    EXPECT_FALSE(stranger.send(bytes_of("stranger"), socket.local_address()));
    EXPECT_FALSE(peer.send(bytes_of("a longer one"), socket.local_address()));
    run_until(loop_, [&] { return log.texts.size() == 11; });
    EXPECT_FALSE(peer.send(bytes_of("the last"), socket.local_address()));
    run_until(loop_, [&] { return log.texts.size() == 12; });
    std::vector<std::string> expected(10, "peer");
    expected.insert(expected.end(), {"a longer one", "the last"});
    EXPECT_EQ(log.texts, expected);
    for (const Seen& seen : log.all) EXPECT_EQ(seen.peer, peer.local_address());
  }
}

// They share the memory that packets arrive in.
TEST_F(DatagramTest, SocketsOfOneLoopUseTheirOwnOptions) {
  Datagram curt = open({.packet_size = 4, .local_address = true});
  Datagram long_winded = open({.packet_size = 100});
  Datagram marked = open({.packet_size = 4, .ecn = true});
  Datagram sender = open();
  sender.set_ecn(Ecn::capable_1);
  Collector curt_log;
  Collector marked_log;
  curt.start(curt_log);
  long_winded.start(log_);
  marked.start(marked_log);
  for (int i = 0; i < 3; ++i) {
    for (const Datagram* to : {&curt, &long_winded, &marked})
      sender.send(bytes_of("12345"), to->local_address());
    run_turns(loop_, 2);
  }
  run_until(loop_, [&] { return curt_log.texts.size() + marked_log.texts.size() == 6; });
  for (const Seen& packet : curt_log.all) {
    EXPECT_TRUE(packet.truncated);
    EXPECT_EQ(packet.local.host(), "127.0.0.1");
    EXPECT_EQ(packet.ecn, Ecn::not_capable);
  }
  for (const Seen& packet : log_.all) {
    EXPECT_FALSE(packet.truncated);
    EXPECT_EQ(packet.local, Address());
    EXPECT_EQ(packet.ecn, Ecn::not_capable);
  }
  for (const Seen& packet : marked_log.all) EXPECT_EQ(packet.ecn, Ecn::capable_1);
  EXPECT_EQ(log_.texts, std::vector<std::string>(3, "12345"));
}

TEST_F(DatagramTest, TruncatesPacketsBeyondPacketSizeEvenIfCoalesced) {
  for (const bool coalesce : {false, true}) {
    Datagram receiver = open({.packet_size = 100, .coalesce = coalesce});
    Datagram sender = open();
    Collector log;
    receiver.start(log);
    for (const std::size_t size : {99u, 100u, 101u, 1000u, 100u})
      sender.send(bytes_of(std::string(size, 'x')), receiver.local_address());
    sender.send_segments(bytes_of(std::string(3 * 150 + 50, 'y')), 150, receiver.local_address());
    run_until(loop_, [&] { return log.texts.size() == 9; });
    std::vector<std::pair<std::size_t, bool>> seen;
    for (std::size_t i = 0; i < log.texts.size(); ++i)
      seen.emplace_back(log.texts[i].size(), log.all[i].truncated);
    EXPECT_EQ(seen, (std::vector<std::pair<std::size_t, bool>>{{99, false},
                                                               {100, false},
                                                               {100, true},
                                                               {100, true},
                                                               {100, false},
                                                               {100, true},
                                                               {100, true},
                                                               {100, true},
                                                               {50, false}}));
  }
}

// Packets that the kernel joined before adopt() are split, however many they are.
TEST_F(DatagramTest, AdoptsSocketWithCoalescedPackets) {
  const sys::Descriptor owned(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const Address any = Address::loopback_ipv4(0);
  const int on = 1;
  const int room = 4 << 20;
  ASSERT_EQ(::bind(owned.get(), static_cast<const sockaddr*>(any.data()), 16), 0);
  if (::setsockopt(owned.get(), IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) != 0)
    GTEST_SKIP() << "UDP_GRO is missing: it needs Linux 5.0";
  ::setsockopt(owned.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
  Datagram receiver = std::move(*Datagram::adopt(loop_, ::dup(owned.get())));
  Datagram sender = open();
  std::size_t sent = 0;
  for (int i = 0; i < 40; ++i) {
    const std::string bytes(40 * 50, static_cast<char>('a' + i % 26));
    sent += sender.send_segments(bytes_of(bytes), 50, receiver.local_address()).value_or(0);
  }
  receiver.start(log_);
  run_until(loop_, [&] { return log_.texts.size() == 40 * 40; });
  EXPECT_EQ(sent, 40u * 40 * 50);
  for (std::size_t i = 0; i < log_.texts.size(); ++i)
    ASSERT_EQ(log_.texts[i], std::string(50, static_cast<char>('a' + i / 40 % 26)));
}

// Simulates an option that was set behind the library: only packets that do not fit are lost.
TEST_F(DatagramTest, StaysWithinItsBufferDespiteCoalescing) {
  Datagram receiver = open({.ecn = true});
  Datagram sender = open();
  const int on = 1;
  if (::setsockopt(receiver.fd(), IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) != 0)
    GTEST_SKIP() << "UDP_GRO is missing: it needs Linux 5.0";
  for (int i = 0; i < 30; ++i)
    sender.send_segments(bytes_of(std::string(40 * 50, 'x')), 50, receiver.local_address());
  receiver.start(log_);
  run_until(loop_, [&] { return log_.batches > 0; });
  EXPECT_TRUE(log_.texts.size() == 128 || log_.texts.size() == 32)  // Full, or none is joined.
      << log_.texts.size();
  for (const std::string& text : log_.texts) EXPECT_EQ(text, std::string(text.size(), 'x'));
  for (const Seen& packet : log_.all) EXPECT_EQ(packet.peer, sender.local_address());
}

TEST_F(DatagramTest, ReportsAndSetsEcnOfBothFamiliesOnOneSocket) {
  for (const bool local_address : {false, true}) {
    for (const bool coalesce : {false, true}) {
      Datagram receiver =
          open_dual({.local_address = local_address, .ecn = true, .coalesce = coalesce});
      Datagram four = open();
      Datagram both = open_dual();
      Collector log;
      receiver.start(log);
      const std::uint16_t port = receiver.local_address().port();
      EXPECT_FALSE(four.set_ecn(Ecn::congested));
      EXPECT_FALSE(both.set_ecn(Ecn::congested));
      EXPECT_FALSE(four.send(bytes_of("from IPv4"), Address::loopback_ipv4(port)));
      EXPECT_FALSE(both.send(bytes_of("mapped"), *Address::ip("::ffff:127.0.0.1", port)));
      EXPECT_FALSE(both.send(bytes_of("as IPv4"), Address::loopback_ipv4(port)));
      EXPECT_FALSE(both.send(bytes_of("IPv6"), Address::loopback_ipv6(port)));
      run_until(loop_, [&] { return log.texts.size() == 4; });
      for (const Seen& packet : log.all) EXPECT_EQ(packet.ecn, Ecn::congested);
      if (!local_address) continue;
      for (int i = 0; i < 3; ++i) EXPECT_EQ(log.all[i].local, Address::loopback_ipv4(0));
      EXPECT_EQ(log.all[3].local, Address::loopback_ipv6(0));
    }
  }
}

TEST_F(DatagramTest, SetsHopsForBothFamilies) {
  Datagram both = open_dual();
  EXPECT_FALSE(both.set_hops(7));
  EXPECT_FALSE(both.set_multicast_hops(0));
  EXPECT_FALSE(both.set_multicast_loop(false));
  const auto option = [&](int level, int name) {
    int value = -1;
    socklen_t size = sizeof(value);
    ::getsockopt(both.fd(), level, name, &value, &size);
    return value;
  };
  EXPECT_EQ(option(IPPROTO_IP, IP_TTL), 7);
  EXPECT_EQ(option(IPPROTO_IPV6, IPV6_UNICAST_HOPS), 7);
  EXPECT_EQ(option(IPPROTO_IP, IP_MULTICAST_TTL), 0);
  EXPECT_EQ(option(IPPROTO_IPV6, IPV6_MULTICAST_HOPS), 0);
  EXPECT_EQ(option(IPPROTO_IP, IP_MULTICAST_LOOP), 0);
  EXPECT_EQ(option(IPPROTO_IPV6, IPV6_MULTICAST_LOOP), 0);
}

TEST_F(DatagramTest, ReceivesManySmallPacketsInSeveralBatches) {
  Datagram receiver = open({.packet_size = 16});
  Datagram sender = open();
  receiver.start(log_);
  for (int i = 0; i < 150; ++i) sender.send(bytes_of(std::to_string(i)), receiver.local_address());
  run_until(loop_, [&] { return log_.texts.size() == 150; });
  for (int i = 0; i < 150; ++i) EXPECT_EQ(log_.texts[i], std::to_string(i));
  EXPECT_EQ(log_.batches, 3);
}

TEST_F(DatagramTest, ReceivesLargestPossiblePacket) {
  Datagram receiver = open({.packet_size = 65536});
  Datagram sender = open();
  receiver.start(log_);
  const std::string bytes = pattern(65507);
  EXPECT_FALSE(sender.send(bytes_of(bytes), receiver.local_address()));
  run_until(loop_, [&] { return log_.texts.size() == 1; });
  EXPECT_TRUE(log_.texts[0] == bytes);
  EXPECT_FALSE(log_.all[0].truncated);
}

TEST_F(DatagramTest, CarriesPacketsBetweenUnixSockets) {
  Datagram receiver =
      open_at(own_name("r"), {.local_address = true, .ecn = true, .coalesce = true});
  Datagram sender = open_at(own_name("s"));
  receiver.start(log_);
  EXPECT_FALSE(sender.send(bytes_of("x"), receiver.local_address()));
  const auto sent = sender.send_segments(bytes_of("aabbc"), 2, receiver.local_address());
  EXPECT_EQ(sent.value_or(0), 5u);
  run_until(loop_, [&] { return log_.texts.size() == 4; });
  EXPECT_EQ(log_.texts, (std::vector<std::string>{"x", "aa", "bb", "c"}));
  EXPECT_EQ(log_.all[0].peer, own_name("s"));
  EXPECT_EQ(log_.all[0].local, Address());
}

TEST_F(DatagramTest, ReceivesFromMulticastGroup) {
  const Address group = *Address::ip("239.255.7.7", 0);
  Result<Datagram> receiver =
      Datagram::create(loop_, Address::any_ipv4(0), {.reuse_address = true});
  ASSERT_TRUE(receiver);
  if (receiver->join(group, 1))
    GTEST_SKIP() << "multicast on loopback is missing: ip link set lo multicast on";
  EXPECT_EQ(receiver->join(group, 1), std::errc::address_in_use);
  receiver->start(log_);
  Datagram sender = open();
  EXPECT_FALSE(sender.set_multicast_interface(1));
  EXPECT_FALSE(sender.set_multicast_hops(1));
  EXPECT_FALSE(sender.set_multicast_loop(true));
  EXPECT_FALSE(sender.send(bytes_of("all"), group.with_port(receiver->local_address().port())));
  run_until(loop_, [&] { return log_.texts.size() == 1; });
  EXPECT_FALSE(receiver->leave(group, 1));
  EXPECT_EQ(receiver->join(Address::loopback_ipv4(0)), std::errc::invalid_argument);
}

}  // namespace
}  // namespace spate::testing
