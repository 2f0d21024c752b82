// What comes beside a packet, as the kernel writes it, and as far as it had room.
#include "sys/datagram.h"

#include <gtest/gtest.h>

#include <cstring>

namespace spate::sys {
namespace {

// A message with one thing beside it, of which `size` bytes have fitted.
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

TEST(SysDatagram, NothingIsBesideAtFirst) {
  msghdr message{};
  const PacketInfo info = packet_info(message);
  EXPECT_EQ(info.local.size, 0u);
  EXPECT_EQ(info.ecn, 0);
  EXPECT_EQ(info.segment, 0);
}

TEST(SysDatagram, TheMarkIsTwoBits) {
  const std::uint8_t v4 = 0xb9;
  const int v6 = 0xba;
  EXPECT_EQ(info_of(Beside(IPPROTO_IP, IP_TOS, &v4, sizeof(v4))).ecn, 1);
  EXPECT_EQ(info_of(Beside(IPPROTO_IPV6, IPV6_TCLASS, &v6, sizeof(v6))).ecn, 2);
}

TEST(SysDatagram, SaysOfWhatSizeJoinedPacketsAre) {
  const int size = 1200;
  EXPECT_EQ(info_of(Beside(IPPROTO_UDP, UDP_GRO, &size, sizeof(size))).segment, 1200);
}

TEST(SysDatagram, WhatTheKernelHasCutSaysNothing) {
  const int number = 0x03030303;
  EXPECT_EQ(info_of(Beside(IPPROTO_IPV6, IPV6_TCLASS, &number, 2)).ecn, 0);
  EXPECT_EQ(info_of(Beside(IPPROTO_UDP, UDP_GRO, &number, 3)).segment, 0);
  EXPECT_EQ(info_of(Beside(IPPROTO_IP, IP_TOS, &number, 0)).ecn, 0);
}

TEST(SysDatagram, HasRoomForAllThatADualStackSocketIsTold) {
  EXPECT_GE(kControlSpace, CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(in_pktinfo)) +
                               3 * CMSG_SPACE(sizeof(int)));
}

}  // namespace
}  // namespace spate::sys
