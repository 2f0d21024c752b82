// Packets in batches, and their control messages.
#pragma once

#include <linux/udp.h>

#include <cstdint>
#include <span>

#include "sys/socket.h"

namespace spate::sys {

inline int domain_of(int fd) {
  int domain = AF_UNSPEC;
  get_option(fd, SOL_SOCKET, SO_DOMAIN, domain);
  return domain;
}

inline bool is_udp(int fd) {
  int protocol = 0;
  return get_option(fd, SOL_SOCKET, SO_PROTOCOL, protocol) >= 0 && protocol == IPPROTO_UDP;
}

// Whether UDP_GRO is on: the kernel joins incoming packets.
inline bool joins_arrivals(int fd) {
  int on = 0;
  return get_option(fd, IPPROTO_UDP, UDP_GRO, on) >= 0 && on != 0;
}

// The control messages of a received packet.
struct PacketInfo {
  SystemAddress local;        // Its size is 0 if the kernel did not say.
  std::uint8_t ecn = 0;       // The two bits of the IP header.
  std::uint16_t segment = 0;  // Not 0: several packets of this size were joined.
};

PacketInfo packet_info(msghdr& message);

// Room for all of that, for both families at once, as a dual-stack socket has them, and for other
// control messages that an adopted socket may have enabled.
inline constexpr std::size_t kControlSpace = 320;

inline long receive_messages(int fd, std::span<mmsghdr> messages) {
  if (const int error = injected(SystemCall::receive)) return -error;
  return result_of(::recvmmsg(fd, messages.data(), static_cast<unsigned>(messages.size()),
                              MSG_DONTWAIT, nullptr));
}

inline long send_messages(int fd, std::span<mmsghdr> messages) {
  if (const int error = injected(SystemCall::send)) return -error;
  return result_of(
      ::sendmmsg(fd, messages.data(), static_cast<unsigned>(messages.size()), MSG_NOSIGNAL));
}

// UDP_SEGMENT: the kernel splits one message into packets of `segment` bytes.
long send_joined(int fd, const msghdr& message, std::uint16_t segment);

}  // namespace spate::sys
