// Where a socket is: an IP address and a port.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace spate::sim {

// IPv4 as ::ffff:a.b.c.d, as a socket of IPv6 has it.
struct Ip {
  std::array<std::uint8_t, 16> bytes{};

  // 10.0.0.1 and fd00::1 of the host with index 0.
  static Ip v4_of(int host);
  static Ip v6_of(int host);
  static Ip any_v4();
  static Ip loopback(bool is_v4);
  // The host that has it; -1 if none has. Loopback addresses are `asking`'s.
  int host(int asking) const;

  bool is_v4() const;
  bool is_any() const;  // 0.0.0.0 or ::
  bool is_loopback() const;
  bool operator==(const Ip&) const = default;
};

struct Place {
  Ip ip;
  std::uint16_t port = 0;

  bool operator==(const Place&) const = default;

  // None if it is none of `family`, AF_INET or AF_INET6.
  static std::optional<Place> from_system(int family, const sockaddr* address, socklen_t size);
  // As getsockname(): cut to `size`, which becomes the whole size.
  void to_system(int family, sockaddr* address, socklen_t* size) const;
};

}  // namespace spate::sim
