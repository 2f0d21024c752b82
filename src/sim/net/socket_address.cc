#include "sim/net/socket_address.h"

#include <algorithm>
#include <cstring>

namespace spate::sim {

namespace {

constexpr std::size_t kBeforeV4 = 12;

Ip mapped(const std::uint8_t (&v4)[4]) {
  Ip ip;
  ip.bytes[10] = ip.bytes[11] = 0xff;
  std::ranges::copy(v4, ip.bytes.begin() + kBeforeV4);
  return ip;
}

std::uint8_t number_of(int host) { return static_cast<std::uint8_t>(host + 1); }

}  // namespace

Ip Ip::v4_of(int host) { return mapped({10, 0, 0, number_of(host)}); }

Ip Ip::v6_of(int host) {
  Ip ip;
  ip.bytes[0] = 0xfd;
  ip.bytes[15] = number_of(host);
  return ip;
}

Ip Ip::any_v4() { return mapped({}); }

Ip Ip::of(const in_addr& address) {
  std::uint8_t v4[4];
  std::memcpy(v4, &address, sizeof(v4));
  return mapped(v4);
}

Ip Ip::of(const in6_addr& address) {
  Ip ip;
  std::memcpy(ip.bytes.data(), &address, ip.bytes.size());
  return ip;
}

Ip Ip::loopback(bool is_v4) {
  if (is_v4) return mapped({127, 0, 0, 1});
  Ip ip;
  ip.bytes[15] = 1;
  return ip;
}

int Ip::host(int asking) const {
  if (is_loopback()) return asking;
  const int index = bytes[15] - 1;
  return index >= 0 && (*this == v4_of(index) || *this == v6_of(index)) ? index : -1;
}

bool Ip::is_v4() const {
  return std::memcmp(bytes.data(), mapped({}).bytes.data(), kBeforeV4) == 0;
}

bool Ip::is_any() const { return *this == Ip() || *this == mapped({}); }

bool Ip::is_loopback() const {
  return *this == loopback(false) || (is_v4() && bytes[kBeforeV4] == 127);
}

std::optional<SocketAddress> SocketAddress::from_system(int family, const sockaddr* address,
                                                        socklen_t size) {
  const std::size_t least = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (size < least || address->sa_family != family) return std::nullopt;
  if (family == AF_INET) {
    sockaddr_in system;
    std::memcpy(&system, address, sizeof(system));
    return SocketAddress{Ip::of(system.sin_addr), ntohs(system.sin_port)};
  }
  sockaddr_in6 system;
  std::memcpy(&system, address, sizeof(system));
  return SocketAddress{Ip::of(system.sin6_addr), ntohs(system.sin6_port)};
}

void SocketAddress::to_system(int family, sockaddr* address, socklen_t* size) const {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  std::memcpy(&v4.sin_addr, ip.bytes.data() + kBeforeV4, sizeof(v4.sin_addr));
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  std::memcpy(&v6.sin6_addr, ip.bytes.data(), ip.bytes.size());
  const bool is_v4 = family == AF_INET;
  const socklen_t whole = is_v4 ? sizeof(v4) : sizeof(v6);
  std::memcpy(address, is_v4 ? static_cast<const void*>(&v4) : &v6, std::min(*size, whole));
  *size = whole;
}

}  // namespace spate::sim
