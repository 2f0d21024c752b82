#include "sys/datagram.h"

#include <linux/errqueue.h>
#include <linux/filter.h>
#include <linux/sock_diag.h>

#include <cstring>
#include <iterator>

#include "sys/control_message.h"

namespace spate::sys {

namespace {

void note(cmsghdr* header, PacketInfo& info) {
  const int level = header->cmsg_level;
  const int type = header->cmsg_type;
  if (level == IPPROTO_IP && type == IP_PKTINFO) {
    info.local = made_of(payload<in_pktinfo>(header).ipi_addr);
  } else if (level == IPPROTO_IPV6 && type == IPV6_PKTINFO) {
    info.local = made_of(payload<in6_pktinfo>(header).ipi6_addr);
  } else if (level == IPPROTO_IP && type == IP_TOS) {
    info.ecn = payload<std::uint8_t>(header) & 3;
  } else if (level == IPPROTO_IPV6 && type == IPV6_TCLASS) {
    info.ecn = payload<int>(header) & 3;
  } else if (level == IPPROTO_UDP && type == UDP_GRO) {
    info.segment = static_cast<std::uint16_t>(payload<int>(header));
  }
}

in_pktinfo source_of(const sockaddr_in& local) {
  in_pktinfo info{};
  info.ipi_spec_dst = local.sin_addr;
  return info;
}

// A link-local address needs its interface.
in6_pktinfo source_of(const sockaddr_in6& local) {
  return {.ipi6_addr = local.sin6_addr, .ipi6_ifindex = local.sin6_scope_id};
}

}  // namespace

PacketInfo packet_info(msghdr& message) {
  PacketInfo info;
  info.local.size = 0;
  for_each_control(message, [&info](cmsghdr* header) { note(header, info); });
  return info;
}

long take_queued_error(int fd) {
  // A unix socket has no error queue: it would ignore the flag, and receive data and descriptors.
  if (is_unix_socket(fd)) return -EAGAIN;
  alignas(cmsghdr) char control[kControlSpace];
  msghdr message{};
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const long result = result_of(::recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT));
  if (result < 0) return result;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    const bool is_error = (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_RECVERR) ||
                          (header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_RECVERR);
    if (!is_error) continue;
    const auto error = payload<sock_extended_err>(header);
    return error.ee_origin <= SO_EE_ORIGIN_ICMP6 ? error.ee_errno : 0;
  }
  return 0;
}

void add_info(msghdr& message, SendControl& control, const SendInfo& info, bool is_ipv6_socket) {
  ControlWriter writer(message, control);
  if (info.local != nullptr && info.local->sa_family == AF_INET) {
    writer.add(IPPROTO_IP, IP_PKTINFO,
               source_of(reinterpret_cast<const sockaddr_in&>(*info.local)));
  } else if (info.local != nullptr) {
    writer.add(IPPROTO_IPV6, IPV6_PKTINFO,
               source_of(reinterpret_cast<const sockaddr_in6&>(*info.local)));
  }
  if (info.ecn >= 0) writer.add(IPPROTO_IP, IP_TOS, info.ecn);
  if (info.ecn >= 0 && is_ipv6_socket) writer.add(IPPROTO_IPV6, IPV6_TCLASS, info.ecn);
  if (info.segment != 0) writer.add(IPPROTO_UDP, UDP_SEGMENT, info.segment);
}

long forbid_fragments(int fd, bool is_ipv6) {
  const long result =
      is_ipv6 ? set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE) : 0;
  return result < 0 ? result : set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
}

long path_mtu(int fd, bool is_ipv6) {
  int mtu = 0;
  const long result = is_ipv6 ? get_option(fd, IPPROTO_IPV6, IPV6_MTU, mtu)
                              : get_option(fd, IPPROTO_IP, IP_MTU, mtu);
  return result < 0 ? result : mtu;
}

// Offsets are relative to UDP's payload. A load behind the packet's end ends the program with 0.
long steer_group(int fd, std::uint16_t offset, std::uint32_t mask, std::uint32_t count) {
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset),
                          BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask),
                          BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, count), BPF_STMT(BPF_RET | BPF_A, 0)};
  const sock_fprog program{.len = std::size(filter), .filter = filter};
  return set_option(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, program);
}

long change_membership(int fd, const sockaddr& group, std::size_t size, std::uint32_t interface,
                       bool join) {
  group_req request{};
  request.gr_interface = interface;
  std::memcpy(&request.gr_group, &group, size);
  return set_option(fd, group.sa_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP,
                    join ? MCAST_JOIN_GROUP : MCAST_LEAVE_GROUP, request);
}

long set_multicast_interface(int fd, bool is_ipv6, std::uint32_t interface) {
  long result = 0;
  if (is_ipv6) result = set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, interface);
  ip_mreqn request{};
  request.imr_ifindex = static_cast<int>(interface);
  return result < 0 ? result : set_option(fd, IPPROTO_IP, IP_MULTICAST_IF, request);
}

long dropped_packets(int fd) {
  std::uint32_t counts[SK_MEMINFO_VARS] = {};
  const long result = get_option(fd, SOL_SOCKET, SO_MEMINFO, counts);
  return result < 0 ? result : counts[SK_MEMINFO_DROPS];
}

}  // namespace spate::sys
