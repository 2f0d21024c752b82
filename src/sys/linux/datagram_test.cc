// Tests of the control messages of a packet: as the kernel writes them, and cut at any size.
#include "sys/datagram.h"

#include <gtest/gtest.h>

#include <cstring>

namespace spate::sys {
namespace {

// A message with one control message, of which `size` bytes were written.
struct Beside {
  Beside(int level, int type, const void* bytes, std::size_t size) {
    std::memset(control, 0xff, sizeof(control));
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = level;
    header->cmsg_type = type;
    header->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(header), bytes, size);
  }

  alignas(cmsghdr) char control[kControlSpace];
  msghdr message{};
};

PacketInfo info_of(Beside&& beside) { return packet_info(beside.message); }

TEST(SysDatagram, ReportsNoPacketInfoWithoutControlMessages) {
  msghdr message{};
  const PacketInfo info = packet_info(message);
  EXPECT_EQ(info.local.size, 0u);
  EXPECT_EQ(info.ecn, 0);
  EXPECT_EQ(info.segment, 0);
}

TEST(SysDatagram, ReadsEcnMarkFromTwoBits) {
  const std::uint8_t v4 = 0xb9;
  const int v6 = 0xba;
  EXPECT_EQ(info_of(Beside(IPPROTO_IP, IP_TOS, &v4, sizeof(v4))).ecn, 1);
  EXPECT_EQ(info_of(Beside(IPPROTO_IPV6, IPV6_TCLASS, &v6, sizeof(v6))).ecn, 2);
}

TEST(SysDatagram, ReportsSegmentSizeOfCoalescedPackets) {
  const int size = 1200;
  EXPECT_EQ(info_of(Beside(IPPROTO_UDP, UDP_GRO, &size, sizeof(size))).segment, 1200);
}

TEST(SysDatagram, IgnoresTruncatedControlMessages) {
  const int number = 0x03030303;
  EXPECT_EQ(info_of(Beside(IPPROTO_IPV6, IPV6_TCLASS, &number, 2)).ecn, 0);
  EXPECT_EQ(info_of(Beside(IPPROTO_UDP, UDP_GRO, &number, 3)).segment, 0);
  EXPECT_EQ(info_of(Beside(IPPROTO_IP, IP_TOS, &number, 0)).ecn, 0);
}

TEST(SysDatagram, HasRoomForAllControlMessagesOfDualStackSocket) {
  EXPECT_GE(kControlSpace, CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(in_pktinfo)) +
                               3 * CMSG_SPACE(sizeof(int)));
}

TEST(SysDatagram, ReadsQueuedErrorsWithoutConsumingUnixSocketData) {
  for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, type, 0, ends), 0);
    ASSERT_EQ(::send(ends[1], "x", 1, 0), 1);
    EXPECT_EQ(take_queued_error(ends[0]), -EAGAIN);
    char byte = 0;
    EXPECT_EQ(::recv(ends[0], &byte, 1, MSG_DONTWAIT), 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
}

}  // namespace
}  // namespace spate::sys
