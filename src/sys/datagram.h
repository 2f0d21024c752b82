// Packets in batches, and their control messages.
#pragma once

#include <cstdint>

#include "sys/datagram_calls.h"
#include "sys/socket.h"

namespace spate::sys {

inline bool is_udp(int fd) {
  int protocol = 0;
  return find_protocol(fd, protocol) >= 0 && protocol == IPPROTO_UDP;
}

// Returns whether the kernel joins incoming packets.
inline bool joins_arrivals(int fd) {
  int on = 0;
  return get_option(fd, IPPROTO_UDP, kJoinArrivals, on) >= 0 && on != 0;
}

// The control messages of a received packet.
struct PacketInfo {
  SystemAddress local;        // Its size is 0 if the kernel did not return it.
  std::uint8_t ecn = 0;       // The two bits of the IP header.
  std::uint16_t segment = 0;  // Nonzero: several packets of this size were joined.
};

PacketInfo packet_info(msghdr& message);

// Room for all of these, for both families at once, as dual-stack sockets have them, and for other
// control messages that an adopted socket may have enabled.
inline constexpr std::size_t kControlSpace = 320;

// Removes an error from the socket's queue (IP_RECVERR, MSG_ERRQUEUE). Returns its errno, 0 for a
// notification that is not an error (a timestamp, a completed copy), or a negated errno: -EAGAIN if
// the queue is empty. Nothing else removes a queued error, and the socket counts as ready
// meanwhile.
long take_queued_error(int fd);
// The limit per turn: the length of the queue is only bounded by the socket's memory.
inline constexpr std::size_t kMostQueuedErrors = 64;
inline void discard_queued_errors(int fd) {
  for (std::size_t i = 0; i < kMostQueuedErrors && take_queued_error(fd) >= 0; ++i) {
  }
}

// The control messages of a packet to send.
struct SendInfo {
  const sockaddr* local = nullptr;  // The source address.
  int ecn = -1;                     // The two bits of the IP header; negative: the socket's.
  std::uint16_t segment = 0;        // Nonzero: the kernel splits it into packets of this size.
};

// Room for all of them: an IPv6 socket needs the ECN of both families.
struct SendControl {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(in6_pktinfo)) + 2 * CMSG_SPACE(sizeof(int)) +
                              CMSG_SPACE(sizeof(std::uint16_t))];
};

// Writes the control messages to `control`, which must exist until `message` is sent.
void add_info(msghdr& message, SendControl& control, const SendInfo& info, bool is_ipv6_socket);

// Forbids routers to fragment packets, without a limit by the path MTU that the kernel knows.
long forbid_fragments(int fd, bool is_ipv6);
// Returns the path MTU in bytes to the connected peer, or a negated errno.
long path_mtu(int fd, bool is_ipv6);
// Selects the socket of a group that shares a port: (the 4 bytes at `offset` of a packet, in
// network order, & mask) % count, counted in the order of bind(); the first for a packet that ends
// before. `fd` is any socket of the group. Needs no privilege.
long steer_group(int fd, std::uint16_t offset, std::uint32_t mask, std::uint32_t count);
// Joins or leaves a multicast group, an address of `size` bytes. Interface 0: the kernel's choice.
long change_membership(int fd, const sockaddr& group, std::size_t size, std::uint32_t interface,
                       bool join);
// Selects the interface for multicast packets; of both families for an IPv6 socket that has both.
long set_multicast_interface(int fd, bool is_ipv6, std::uint32_t interface);
// Returns how many packets did not fit into the receive buffer, or a negated errno.
long dropped_packets(int fd);

}  // namespace spate::sys
