// The address of a socket: an IP address and a port.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace spate::sim {

// IPv4 is stored as ::ffff:a.b.c.d.
struct Ip {
  std::array<std::uint8_t, 16> bytes{};

  // Return 10.0.0.1 and fd00::1 for the host with index 0.
  static Ip v4_of(int host);
  static Ip v6_of(int host);
  static Ip any_v4();
  static Ip of(const in_addr& address);
  static Ip of(const in6_addr& address);
  static Ip loopback(bool is_v4);
  // Returns the host with this address; -1 if none. Loopback addresses belong to `asking`.
  int host(int asking) const;

  bool is_v4() const;
  bool is_any() const;  // 0.0.0.0 or ::
  bool is_loopback() const;
  bool operator==(const Ip&) const = default;
};

struct SocketAddress {
  Ip ip;
  std::uint16_t port = 0;

  bool operator==(const SocketAddress&) const = default;

  // Returns nullopt if it is not of `family`, AF_INET or AF_INET6.
  static std::optional<SocketAddress> from_system(int family, const sockaddr* address,
                                                  socklen_t size);
  // As getsockname(): truncated to `size`, which becomes the full size.
  void to_system(int family, sockaddr* address, socklen_t* size) const;
};

}  // namespace spate::sim
