// spate_net.h: datagrams in C.
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "spate_net.h"
#include "support/closed_port.h"
#include "tests/c/net_harness.h"

namespace spate::testing {
namespace {

using namespace std::literals;

struct Packets {
  std::string log;
  bool destroys = false;

  static Packets& of(const spate_datagram* datagram) {
    return *static_cast<Packets*>(spate_datagram_data(datagram));
  }
};

const spate_datagram_callbacks kPackets = {
    sizeof(spate_datagram_callbacks),
    [](spate_datagram* datagram, const spate_packet* packet) {
      Packets& packets = Packets::of(datagram);
      packets.log.append(static_cast<const char*>(packet->bytes), packet->size);
      packets.log += packet->truncated != 0 ? "! " : " ";
      EXPECT_NE(spate_address_port(packet->peer), 0);
      if (packets.destroys) spate_datagram_destroy(datagram);
    },
    [](spate_datagram* datagram, int error) { Packets::of(datagram).log += std::to_string(error); },
    nullptr};

class CDatagramTest : public CNetTest {
 protected:
  CDatagramTest() {
    const spate_address any = address("127.0.0.1:0");
    spate_datagram_options options{};
    options.size = sizeof(options);
    options.packet_size = 8;
    options.local_address = options.ecn = 1;
    EXPECT_EQ(spate_datagram_open(&socket_, loop_.get(), &any, &options), 0);
    EXPECT_EQ(spate_datagram_create(&sender_, loop_.get(), &any, 0), 0);
    EXPECT_EQ(spate_datagram_start(socket_, &kPackets, &packets_), 0);
    spate_datagram_local_address(socket_, &address_);
  }
  ~CDatagramTest() override { spate_datagram_destroy(sender_); }
  void send(std::string_view text) {
    EXPECT_EQ(spate_datagram_send(sender_, text.data(), text.size(), &address_), 0);
  }

  spate_datagram* socket_ = nullptr;
  spate_datagram* sender_ = nullptr;
  spate_address address_;
  Packets packets_;
};

TEST_F(CDatagramTest, PacketsArrive) {
  send("one");
  send("twotwotwotwo");
  spate_datagram_pause(socket_);
  spate_datagram_resume(socket_);
  EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_ONCE), 0);
  EXPECT_EQ(packets_.log, "one twotwotw! ");
  EXPECT_GE(spate_datagram_fd(socket_), 0);
  spate_datagram_destroy(socket_);
}

TEST_F(CDatagramTest, PacketsOfBatchHaveTheirOwnSourceEcnAndSegments) {
  struct Seen {
    std::string text;
    static void note(spate_datagram* datagram, const spate_packet* packet) {
      char peer[64];
      char local[64];
      auto& text = static_cast<Seen*>(spate_datagram_data(datagram))->text;
      text.append(static_cast<const char*>(packet->bytes), packet->size);
      const std::string from = spate_address_text(packet->peer, peer, sizeof(peer));
      const std::string to = spate_address_text(spate_packet_local(packet), local, sizeof(local));
      text += " " + from.substr(0, from.find(':')) + ">" + to.substr(0, to.find(':')) + " ecn " +
              std::to_string(spate_packet_ecn(packet)) + "\n";
    }
  };
  constexpr spate_datagram_callbacks kSeen{sizeof(kSeen), &Seen::note, nullptr, nullptr};
  Seen seen;
  ASSERT_EQ(spate_datagram_start(socket_, &kSeen, &seen), 0);
  EXPECT_EQ(spate_datagram_set_ecn(sender_, 2), 0);
  const spate_address local = address("127.0.0.2:0");
  const spate_outgoing packets[] = {{"aabbc", 5, &address_, &local, 0, 0, 2},
                                    {"d", 1, &address_, nullptr, 1, 3, 0}};
  std::size_t sent = 0;
  EXPECT_EQ(spate_datagram_send_packets(sender_, packets, 2, &sent), 0);
  EXPECT_EQ(sent, 2u);
  EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_ONCE), 0);
  EXPECT_EQ(seen.text,
            "aa 127.0.0.2>127.0.0.1 ecn 2\nbb 127.0.0.2>127.0.0.1 ecn 2\n"
            "c 127.0.0.2>127.0.0.1 ecn 2\nd 127.0.0.1>127.0.0.1 ecn 3\n");
  spate_datagram_destroy(socket_);
}

TEST_F(CDatagramTest, BatchEndsAtFirstInvalidPacket) {
  const spate_outgoing good{"x", 1, &address_, nullptr, 0, 0, 0};
  spate_outgoing bad = good;
  std::size_t sent = 0;
  for (const std::size_t before : {0, 1, 64, 70}) {
    std::vector<spate_outgoing> packets(before, good);
    bad.segment = 65536;
    packets.push_back(bad);
    EXPECT_EQ(spate_datagram_send_packets(sender_, packets.data(), packets.size(), &sent), -EINVAL);
    EXPECT_EQ(sent, before);
  }
  bad = good;
  bad.has_ecn = 1;
  for (const int ecn : {-1, 4, 256, INT_MAX, INT_MIN}) {
    bad.ecn = ecn;
    EXPECT_EQ(spate_datagram_send_packets(sender_, &bad, 1, nullptr), -EINVAL);
    EXPECT_EQ(spate_datagram_set_ecn(sender_, ecn), -EINVAL);
  }
  EXPECT_EQ(spate_datagram_send_packets(sender_, nullptr, 1, nullptr), -EINVAL);
  EXPECT_EQ(spate_datagram_send_packets(sender_, nullptr, 0, &sent), 0);
  EXPECT_EQ(sent, 0u);
  spate_datagram_destroy(socket_);
}

TEST_F(CDatagramTest, ReportsPathMtuAndDroppedPackets) {
  std::size_t mtu = 0;
  std::uint32_t dropped = 1;
  EXPECT_EQ(spate_datagram_path_mtu(sender_, &mtu), -ENOTCONN);
  EXPECT_EQ(spate_datagram_connect(sender_, &address_), 0);
  EXPECT_EQ(spate_datagram_path_mtu(sender_, &mtu), 0);
  EXPECT_GE(mtu, 1280u);
  EXPECT_EQ(spate_datagram_dropped(socket_, &dropped), 0);
  EXPECT_EQ(dropped, 0u);
  spate_datagram_destroy(socket_);
}

TEST_F(CDatagramTest, DestroyedSocketReceivesNoFurtherPackets) {
  send("one");
  send("two");
  packets_.destroys = true;
  run();
  EXPECT_EQ(packets_.log, "one ");
}

TEST_F(CDatagramTest, ErrorsAreReported) {
  EXPECT_EQ(spate_datagram_send(sender_, "x", 1, nullptr), -EDESTADDRREQ);
  EXPECT_EQ(spate_datagram_start(sender_, nullptr, nullptr), -EINVAL);
  const spate_address nobody = address(closed_ipv4().to_string().c_str());
  EXPECT_EQ(spate_datagram_connect(sender_, &nobody), 0);
  EXPECT_EQ(spate_datagram_start(sender_, &kPackets, &packets_), 0);
  EXPECT_EQ(spate_datagram_send(sender_, "x", 1, nullptr), 0);
  EXPECT_EQ(spate_loop_run(loop_.get(), SPATE_RUN_ONCE), 0);
  EXPECT_EQ(packets_.log, std::to_string(-ECONNREFUSED));
  spate_datagram_destroy(socket_);
  spate_datagram* none = nullptr;
  spate_datagram_options options{};
  options.size = sizeof(options);
  options.packet_size = 100'000;
  EXPECT_EQ(spate_datagram_open(&none, loop_.get(), &address_, &options), -EINVAL);
  options.size = 1;
  EXPECT_EQ(spate_datagram_open(&none, loop_.get(), &address_, &options), -EINVAL);
}

}  // namespace
}  // namespace spate::testing
