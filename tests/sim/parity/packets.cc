// The delivery of packets.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "sim/parity/stage.h"
#include "support/closed_port.h"
#include "sys/datagram.h"

namespace spate::parity {

using testing::closed_ipv4;
using testing::closed_ipv6;

namespace {

// Notes each packet: its size, and the contents of small ones.
struct Reader {
  Reader(Stage& noting, Datagram& from) : stage(noting) {
    if (from.fd() < 0) return;
    stage.note("started", from.start({.on_packets =
                                          [this](std::span<const Packet> some) {
                                            for (const Packet& packet : some) take(packet);
                                          },
                                      .on_error =
                                          [this](std::error_code error) {
                                            ++errors;
                                            stage.note("an error", error);
                                          }}));
  }
  void take(const Packet& packet) {
    ++count;
    last_peer = packet.peer;
    const std::string text(
        text_of(packet.bytes.first(std::min<std::size_t>(packet.bytes.size(), 20))));
    stage.note("a packet of " + std::to_string(packet.bytes.size()) + ": " + text +
               (packet.truncated ? ", cut" : "") + ", ecn " +
               std::to_string(static_cast<int>(packet.ecn)));
  }
  Stage& stage;
  std::size_t count = 0;
  std::size_t errors = 0;
  Address last_peer;
};

std::error_code steer(const Datagram& socket, std::uint16_t offset, std::uint32_t mask,
                      std::uint32_t count) {
  const long result = sys::steer_group(socket.fd(), offset, mask, count);
  return {static_cast<int>(-result), std::system_category()};
}

constexpr Scenario kPackets[] = {
    {"AnAnswerToWhoAsks",
     [](Stage& stage) {
       Datagram& here = stage.datagram();
       Datagram& there = stage.datagram();
       Reader reader(stage, here);
       Reader asker(stage, there);
       stage.note("sent", there.send(bytes_of("hello"), here.local_address()));
       stage.until([&] { return reader.count == 1; });
       stage.note("same", reader.last_peer == there.local_address() ? 1u : 0u);
       stage.note("sent", here.send(bytes_of("hello to you"), reader.last_peer));
       stage.until([&] { return asker.count == 1; });
     }},
    {"APacketOfNothing",
     [](Stage& stage) {
       Datagram& here = stage.datagram();
       Reader reader(stage, here);
       stage.note("sent", stage.datagram().send({}, here.local_address()));
       stage.until([&] { return reader.count == 1; });
     }},
    {"PacketsOfBatchKeepTheirOrder",
     [](Stage& stage) {
       Datagram& here = stage.datagram();
       Reader reader(stage, here);
       const Address to = here.local_address();
       const std::array<Outgoing, 3> batch{Outgoing{bytes_of("one"), &to},
                                           Outgoing{bytes_of("two"), &to},
                                           Outgoing{bytes_of("three"), &to}};
       stage.note("sent", stage.datagram().send(batch));
       stage.until([&] { return reader.count == 3; });
     }},
    {"PacketsOfBatchKeepTheirSourceMarkAndSegments",
     [](Stage& stage) {
       Datagram& here = stage.datagram({.local_address = true, .ecn = true});
       Reader reader(stage, here);
       const Address to = here.local_address();
       const Address own = Address::loopback_ipv4(0);
       const std::array<Outgoing, 2> batch{
           Outgoing{.bytes = bytes_of("aabbc"), .peer = &to, .local = &own, .segment = 2},
           Outgoing{.bytes = bytes_of("d"), .peer = &to, .ecn = Ecn::congested}};
       stage.note("sent", stage.datagram().send(batch));
       stage.until([&] { return reader.count == 4; });
     }},
    {"APacketThatIsLongerThanItsRoomIsCut",
     [](Stage& stage) {
       Datagram& here = stage.datagram({.packet_size = 10});
       Reader reader(stage, here);
       stage.note("sent", stage.datagram().send(bytes_of("0123456789abc"), here.local_address()));
       stage.until([&] { return reader.count == 1; });
     }},
    {"TheLongestPacket",
     [](Stage& stage) {
       Datagram& here = stage.datagram({.packet_size = 65536});
       Reader reader(stage, here);
       const std::string text(65507, 'x');
       stage.note("sent", stage.datagram().send(bytes_of(text), here.local_address()));
       stage.until([&] { return reader.count == 1; });
     }},
    {"APacketThatIsTooLong",
     [](Stage& stage) {
       const std::string text(65508, 'x');
       stage.note("sent", stage.datagram().send(bytes_of(text), closed_ipv4()));
     }},
    {"ToNobody",
     [](Stage& stage) {
       Datagram& here = stage.datagram();
       Reader reader(stage, here);
       stage.note("sent", here.send(bytes_of("hello"), closed_ipv4()));
       stage.pass(20ms);
       stage.note("sent", here.send(bytes_of("hello"), closed_ipv4()));
     }},
    {"ToNobodyWhileConnected",
     [](Stage& stage) {
       Datagram& here = stage.datagram();
       Reader reader(stage, here);
       stage.note("connected", here.connect(closed_ipv4()));
       stage.note("sent", here.send(bytes_of("hello")));
       stage.until([&] { return reader.errors == 1; });
     }},
    {"APeerThatHasGoneRefuses",
     [](Stage& stage) {
       Datagram& here = stage.datagram();
       Datagram& there = stage.datagram();
       Reader reader(stage, here);
       Reader peer(stage, there);
       stage.note("connected", here.connect(there.local_address()));
       stage.note("sent", here.send(bytes_of("hello")));
       stage.until([&] { return peer.count == 1; });
       there = Datagram();
       stage.note("sent", here.send(bytes_of("anybody?")));
       stage.until([&] { return reader.errors == 1; });
       stage.note("sent", here.send(bytes_of("anybody?")));
       stage.until([&] { return reader.errors == 2; });
     }},
    {"WithoutAPeer",
     [](Stage& stage) { stage.note("sent", stage.datagram().send(bytes_of("hello"))); }},
    {"ToPortZero",
     [](Stage& stage) {
       stage.note("sent", stage.datagram().send(bytes_of("x"), Address::loopback_ipv4(0)));
     }},
    {"WhoIsConnectedHearsOnlyItsPeer",
     [](Stage& stage) {
       Datagram& here = stage.datagram();
       Datagram& friendly = stage.datagram();
       Reader reader(stage, here);
       stage.note("connected", here.connect(friendly.local_address()));
       stage.note("sent", stage.datagram().send(bytes_of("stranger"), here.local_address()));
       stage.note("sent", friendly.send(bytes_of("friend"), here.local_address()));
       stage.until([&] { return reader.count == 1; });
       stage.pass(20ms);
     }},
    {"WhatComesWhilePausedComesLater",
     [](Stage& stage) {
       Datagram& here = stage.datagram();
       Reader reader(stage, here);
       here.pause();
       stage.note("sent", stage.datagram().send(bytes_of("early"), here.local_address()));
       stage.pass(20ms);
       stage.note("resumes");
       here.resume();
       stage.until([&] { return reader.count == 1; });
     }},
    {"APortThatIsTakenByPackets",
     [](Stage& stage) {
       const auto again = Datagram::create(stage.loop(), stage.datagram().local_address());
       stage.note("bound", again ? std::error_code() : again.error());
     }},
    {"APortThatIsSharedByPackets",
     [](Stage& stage) {
       const auto again =
           Datagram::create(stage.loop(), stage.datagram({.reuse_port = true}).local_address(),
                            {.reuse_port = true});
       stage.note("bound", again ? std::error_code() : again.error());
     }},
    {"PacketsOfSteeredGroupReachTheirSocket",
     [](Stage& stage) {
       Datagram& first = stage.datagram({.reuse_port = true});
       std::vector<Datagram> others;
       for (int i = 0; i < 3; ++i) {
         auto made = Datagram::create(stage.loop(), first.local_address(), {.reuse_port = true});
         if (!made) return stage.note("bound", made.error());
         others.push_back(std::move(*made));
       }
       stage.note("steered", steer(others[1], 1, 0xff, 3));
       std::size_t count = 0;
       const auto note = [&](std::size_t socket) {
         return [&stage, &count, socket](std::span<const Packet> some) {
           for (const Packet& packet : some)
             stage.note(std::string(text_of(packet.bytes)) + " at", socket);
           count += some.size();
         };
       };
       stage.note("started", first.start({.on_packets = note(0)}));
       for (std::size_t i = 0; i < 3; ++i)
         stage.note("started", others[i].start({.on_packets = note(i + 1)}));
       Datagram& there = stage.datagram();
       std::size_t sent = 0;
       for (const std::string_view text : {"...a", "....", "....a", "....b", "....c", "....d..."}) {
         stage.note("sent", there.send(bytes_of(text), first.local_address()));
         ++sent;
         stage.until([&] { return count == sent; });
       }
     }},
    {"SteeringAppliesToSocketsThatJoinLater",
     [](Stage& stage) {
       auto first = Datagram::create(stage.loop(), Address::loopback_ipv4(0), {.reuse_port = true});
       if (!first) return stage.note("bound", first.error());
       const Address address = first->local_address();
       stage.note("steered", steer(*first, 0, 1, 2));
       std::array<Datagram, 2> others;
       std::size_t count = 0;
       for (std::size_t i = 0; i < 2; ++i) {
         auto made = Datagram::create(stage.loop(), address, {.reuse_port = true});
         if (!made) return stage.note("bound", made.error());
         others[i] = std::move(*made);
         stage.note("started", others[i].start({.on_packets = [&, i](std::span<const Packet> some) {
           stage.note("received at", i);
           count += some.size();
         }}));
         *first = Datagram();
       }
       Datagram& there = stage.datagram();
       for (const std::string_view text : {"...0", "...1", "...3", "...2"}) {
         stage.note("sent", there.send(bytes_of(text), address));
         stage.until([&] { return count != 0; });
         count = 0;
       }
     }},
    {"ASteeredGroupNeedsASharedPort",
     [](Stage& stage) { stage.note("steered", steer(stage.datagram(), 0, 1, 2)); }},
    {"AnAddressOfAnotherFamily",
     [](Stage& stage) { stage.note("sent", stage.datagram().send(bytes_of("x"), closed_ipv6())); }},
    {"WhereAPacketWasSentTo",
     [](Stage& stage) {
       auto here = Datagram::create(stage.loop(), Address::any_ipv4(0), {.local_address = true});
       if (!here) return stage.note("bound", here.error());
       std::string local;
       stage.note("started", here->start({.on_packets = [&](std::span<const Packet> some) {
         local = some.front().local.host();
       }}));
       const Address to = Address::loopback_ipv4(here->local_address().port());
       stage.note("sent", stage.datagram().send(bytes_of("x"), to));
       stage.until([&] { return !local.empty(); });
       stage.note(local);
     }},
    {"AMarkOfCongestion",
     [](Stage& stage) {
       Datagram& here = stage.datagram({.ecn = true});
       Datagram& there = stage.datagram();
       if (here.fd() < 0) return;
       std::size_t marks = 0;
       stage.note("started", here.start({.on_packets = [&](std::span<const Packet> some) {
         for (const Packet& packet : some) marks += packet.ecn == Ecn::congested ? 1 : 100;
       }}));
       stage.note("set", there.set_ecn(Ecn::congested));
       stage.note("sent", there.send(bytes_of("x"), here.local_address()));
       stage.until([&] { return marks != 0; });
       stage.note("marks", marks);
     }},
};

}  // namespace

std::span<const Scenario> packets() { return kPackets; }

}  // namespace spate::parity
