// Packets in batches, and what comes beside them.
#pragma once

#include <linux/udp.h>

#include <cstdint>
#include <span>

#include "sys/socket.h"

namespace spate::sys {

// What a received packet carries beside its bytes.
struct PacketInfo {
  SystemAddress local;        // Its size is 0 if the kernel did not say.
  std::uint8_t ecn = 0;       // The two bits of the IP header.
  std::uint16_t segment = 0;  // Not 0: several packets of this size were joined.
};

PacketInfo packet_info(msghdr& message);

// Room for all of that.
inline constexpr std::size_t kControlSpace =
    CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(int));

inline long receive_messages(int fd, std::span<mmsghdr> messages) {
  if (const int error = injected(Call::receive)) return -error;
  return result_of(::recvmmsg(fd, messages.data(), static_cast<unsigned>(messages.size()),
                              MSG_DONTWAIT, nullptr));
}

inline long send_messages(int fd, std::span<mmsghdr> messages) {
  if (const int error = injected(Call::send)) return -error;
  return result_of(
      ::sendmmsg(fd, messages.data(), static_cast<unsigned>(messages.size()), MSG_NOSIGNAL));
}

// One message that the kernel splits into packets of `segment` bytes.
long send_joined(int fd, const msghdr& message, std::uint16_t segment);

}  // namespace spate::sys
