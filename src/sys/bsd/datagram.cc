#include "sys/datagram.h"

#include <cstring>

#include "sys/control_message.h"

namespace spate::sys {

namespace {

void note_ipv4(cmsghdr* header, PacketInfo& info) {
#ifdef IP_RECVPKTINFO
  if (header->cmsg_type == IP_PKTINFO) info.local = made_of(payload<in_pktinfo>(header).ipi_addr);
#else
  if (header->cmsg_type == IP_RECVDSTADDR) info.local = made_of(payload<in_addr>(header));
#endif
#ifdef IP_RECVTOS
  if (header->cmsg_type == IP_RECVTOS) info.ecn = payload<std::uint8_t>(header) & 3;
#endif
}

void note_ipv6(cmsghdr* header, PacketInfo& info) {
  if (header->cmsg_type == IPV6_PKTINFO) {
    info.local = made_of(payload<in6_pktinfo>(header).ipi6_addr);
  } else if (header->cmsg_type == IPV6_TCLASS) {
    info.ecn = payload<int>(header) & 3;
  }
}

// A dual-stack socket takes mapped addresses only.
in6_pktinfo source_of(const sockaddr& local) {
  in6_pktinfo info{};
  if (local.sa_family == AF_INET6) {
    const auto& system = reinterpret_cast<const sockaddr_in6&>(local);
    info.ipi6_addr = system.sin6_addr;
    info.ipi6_ifindex = system.sin6_scope_id;
  } else {
    info.ipi6_addr.s6_addr[10] = info.ipi6_addr.s6_addr[11] = 0xff;
    std::memcpy(info.ipi6_addr.s6_addr + 12, &reinterpret_cast<const sockaddr_in&>(local).sin_addr,
                sizeof(in_addr));
  }
  return info;
}

}  // namespace

PacketInfo packet_info(msghdr& message) {
  PacketInfo info;
  info.local.size = 0;
  for_each_control(message, [&info](cmsghdr* header) {
    if (header->cmsg_level == IPPROTO_IP) note_ipv4(header, info);
    if (header->cmsg_level == IPPROTO_IPV6) note_ipv6(header, info);
  });
  return info;
}

// There is no error queue.
long take_queued_error(int) { return -EAGAIN; }

void add_info(msghdr& message, SendControl& control, const SendInfo& info, bool is_ipv6_socket) {
  ControlWriter writer(message, control);
  if (info.local != nullptr && is_ipv6_socket) {
    writer.add(IPPROTO_IPV6, IPV6_PKTINFO, source_of(*info.local));
  } else if (info.local != nullptr && info.local->sa_family == AF_INET) {
    const in_addr source = reinterpret_cast<const sockaddr_in&>(*info.local).sin_addr;
#if defined(IP_SENDSRCADDR)
    writer.add(IPPROTO_IP, IP_SENDSRCADDR, source);
#else
    in_pktinfo packet{};
    packet.ipi_spec_dst = source;
    writer.add(IPPROTO_IP, IP_PKTINFO, packet);
#endif
  }
  if (info.ecn >= 0 && is_ipv6_socket) writer.add(IPPROTO_IPV6, IPV6_TCLASS, info.ecn);
  if (info.ecn >= 0 && !is_ipv6_socket)
    writer.add(IPPROTO_IP, IP_TOS, static_cast<unsigned char>(info.ecn));
}

long forbid_fragments(int fd, bool is_ipv6) {
#ifdef IP_DONTFRAG
  return is_ipv6 ? set_option(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1)
                 : set_option(fd, IPPROTO_IP, IP_DONTFRAG, 1);
#else
  return is_ipv6 ? set_option(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1) : -ENOPROTOOPT;
#endif
}

// The kernel returns the MTU of IPv6 only.
long path_mtu(int fd, bool is_ipv6) {
  if (!is_ipv6) return -EOPNOTSUPP;
  ip6_mtuinfo info{};
  const long result = get_option(fd, IPPROTO_IPV6, IPV6_PATHMTU, info);
  return result < 0 ? result : static_cast<long>(info.ip6m_mtu);
}

long steer_group(int, std::uint16_t, std::uint32_t, std::uint32_t) { return -EOPNOTSUPP; }

long dropped_packets(int) { return -EOPNOTSUPP; }

#ifdef MCAST_JOIN_GROUP

long change_membership(int fd, const sockaddr& group, std::size_t size, std::uint32_t interface,
                       bool join) {
  group_req request{};
  request.gr_interface = interface;
  std::memcpy(&request.gr_group, &group, size);
  request.gr_group.ss_len = static_cast<std::uint8_t>(size);  // Must be right, unlike elsewhere.
  return set_option(fd, group.sa_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP,
                    join ? MCAST_JOIN_GROUP : MCAST_LEAVE_GROUP, request);
}

#else

// IPv4 names an interface by an address; 0.0.0.<index> is its number.
long change_membership(int fd, const sockaddr& group, std::size_t, std::uint32_t interface,
                       bool join) {
  if (group.sa_family == AF_INET6) {
    ipv6_mreq request{};
    request.ipv6mr_multiaddr = reinterpret_cast<const sockaddr_in6&>(group).sin6_addr;
    request.ipv6mr_interface = interface;
    return set_option(fd, IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, request);
  }
  ip_mreq request{};
  request.imr_multiaddr = reinterpret_cast<const sockaddr_in&>(group).sin_addr;
  request.imr_interface.s_addr = htonl(interface);
  return set_option(fd, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, request);
}

#endif

long set_multicast_interface(int fd, bool is_ipv6, std::uint32_t interface) {
  if (is_ipv6) return set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, interface);
#ifdef __NetBSD__
  return set_option(fd, IPPROTO_IP, IP_MULTICAST_IF, in_addr{.s_addr = htonl(interface)});
#else
  ip_mreqn request{};
  request.imr_ifindex = static_cast<decltype(request.imr_ifindex)>(interface);
  return set_option(fd, IPPROTO_IP, IP_MULTICAST_IF, request);
#endif
}

}  // namespace spate::sys
