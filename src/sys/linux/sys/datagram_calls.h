// Packets in batches, and the options of UDP, where systems differ.
#pragma once

#include <linux/udp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <span>

#include "sys/descriptor.h"

namespace spate::sys {

// A packet of a batch: `msg_hdr`, and `msg_len`, how many bytes were received or sent.
using Message = mmsghdr;

inline long receive_messages(int fd, std::span<Message> messages) {
  if (const int error = injected(SystemCall::receive)) return -error;
  return result_of(::recvmmsg(fd, messages.data(), static_cast<unsigned>(messages.size()),
                              MSG_DONTWAIT, nullptr));
}

inline long send_messages(int fd, std::span<Message> messages) {
  if (const int error = injected(SystemCall::send)) return -error;
  return result_of(
      ::sendmmsg(fd, messages.data(), static_cast<unsigned>(messages.size()), MSG_NOSIGNAL));
}

// Options that enable control messages, or make the kernel join packets.
inline constexpr int kTellLocalAddress = IP_PKTINFO;
inline constexpr int kTellTos = IP_RECVTOS;
inline constexpr int kJoinArrivals = UDP_GRO;

// Whether the IPv4 packets of a dual-stack socket have the options and the control messages of
// IPv4.
inline constexpr bool kHasOptionsOfBoth = true;

}  // namespace spate::sys
