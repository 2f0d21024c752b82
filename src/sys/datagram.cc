#include "sys/datagram.h"

#include <cstring>

namespace spate::sys {

namespace {

// Nothing if the kernel had no room for all of it.
template <class T>
T payload(const cmsghdr* header) {
  T value{};
  if (header->cmsg_len >= CMSG_LEN(sizeof(value)))
    std::memcpy(&value, CMSG_DATA(header), sizeof(value));
  return value;
}

template <class System>
SystemAddress made_of(const System& system) {
  SystemAddress address;
  std::memcpy(&address.storage, &system, sizeof(system));
  address.size = sizeof(system);
  return address;
}

void note(const cmsghdr* header, PacketInfo& info) {
  const int level = header->cmsg_level;
  const int type = header->cmsg_type;
  if (level == IPPROTO_IP && type == IP_PKTINFO) {
    sockaddr_in system{};
    system.sin_family = AF_INET;
    system.sin_addr = payload<in_pktinfo>(header).ipi_addr;
    info.local = made_of(system);
  } else if (level == IPPROTO_IPV6 && type == IPV6_PKTINFO) {
    sockaddr_in6 system{};
    system.sin6_family = AF_INET6;
    system.sin6_addr = payload<in6_pktinfo>(header).ipi6_addr;
    info.local = made_of(system);
  } else if (level == IPPROTO_IP && type == IP_TOS) {
    info.ecn = payload<std::uint8_t>(header) & 3;
  } else if (level == IPPROTO_IPV6 && type == IPV6_TCLASS) {
    info.ecn = payload<int>(header) & 3;
  } else if (level == IPPROTO_UDP && type == UDP_GRO) {
    info.segment = static_cast<std::uint16_t>(payload<int>(header));
  }
}

}  // namespace

PacketInfo packet_info(msghdr& message) {
  PacketInfo info;
  info.local.size = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    note(header, info);
  }
  return info;
}

long send_joined(int fd, const msghdr& message, std::uint16_t segment) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(segment))] = {};
  msghdr joined = message;
  joined.msg_control = control;
  joined.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&joined);
  header->cmsg_level = IPPROTO_UDP;
  header->cmsg_type = UDP_SEGMENT;
  header->cmsg_len = CMSG_LEN(sizeof(segment));
  std::memcpy(CMSG_DATA(header), &segment, sizeof(segment));
  return send_message(fd, joined);
}

}  // namespace spate::sys
