#include "sim/net/ip_socket.h"

#include <cerrno>
#include <cstring>

namespace spate::sim {

bool IpSocket::is_bound_to(const Ip& own, const Ip& ip) const {
  if (own == ip) return true;
  if (!own.is_any()) return false;
  return own.is_v4() ? ip.is_v4() : !ip.is_v4() || v6_only_ == 0;
}

// As in Linux, a socket for all of IPv4 conflicts with a dual socket, even one that has connected
// from an IPv6 address.
bool IpSocket::overlaps(const Ip& ip, const Ip& other, bool other_is_dual) const {
  return is_bound_to(ip, other) || (family_ == AF_INET && ip.is_any() && other_is_dual);
}

bool IpSocket::shares_port(const IpSocket& other) const {
  if (shares_port_ != 0 && other.shares_port_ != 0) return true;
  const bool may_listen_alone = protocol_ == Protocol::udp || !other.is_listening();
  return may_listen_alone && shares_address_ != 0 && other.shares_address_ != 0;
}

bool IpSocket::shares_port(const PortReservation& reservation) const {
  return (shares_port_ != 0 && reservation.shares_port) ||
         (shares_address_ != 0 && reservation.shares_address);
}

void IpSocket::inherit(const IpSocket& listener) {
  v6_only_ = listener.v6_only_;
  shares_port_ = listener.shares_port_;
  shares_address_ = listener.shares_address_;
}

PortReservation IpSocket::own_reservation() const {
  PortReservation reservation;
  reservation.is_named = is_bound_;
  reservation.shares_address = shares_address_ != 0;
  reservation.shares_port = shares_port_ != 0;
  reservation.is_dual = is_dual();
  return reservation;
}

// ---- addresses

long IpSocket::bind(const sockaddr* address, socklen_t size) {
  std::optional<SocketAddress> wanted = SocketAddress::from_system(family_, address, size);
  if (has_port() || !wanted) return -EINVAL;
  if (family_ == AF_INET6 && wanted->ip.is_v4() && v6_only_ != 0) return -EINVAL;
  if (draws_port_late_ != 0 && wanted->port == 0) return bind_address(*wanted);
  is_port_drawn_ = wanted->port == 0;
  if (const long result = network_.bind(*this, *wanted); result < 0) {
    if (result == -EADDRINUSE) local_.ip = any_ip();  // Linux forgets the address then.
    return result;
  }
  take_address(*wanted);
  is_bound_ = true;
  return 0;
}

// As in Linux, a socket with an IPv6 address becomes v6-only.
void IpSocket::take_address(const SocketAddress& address) {
  local_ = address;
  has_address_ = address.ip != any_ip();
  if (family_ == AF_INET6 && !address.ip.is_v4() && !address.ip.is_any()) v6_only_ = 1;
}

// connect() selects the port.
long IpSocket::bind_address(const SocketAddress& address) {
  if (!address.ip.is_any() && address.ip.host(host_) != host_) return -EADDRNOTAVAIL;
  take_address(address);
  return 0;
}

long IpSocket::bind_to_listen() {
  if (is_bound_) return network_.may_listen(*this) ? 0 : -EADDRINUSE;
  SocketAddress address{local_.ip, 0};
  if (const long result = network_.bind(*this, address); result < 0) return result;
  local_ = address;
  is_bound_ = is_port_drawn_ = true;
  return 0;
}

void IpSocket::unbind() {
  if (std::exchange(is_bound_, false)) network_.unbind(*this);
}

long IpSocket::may_connect(Ip& to) const {
  const bool is_own = to.is_any() && to.is_v4() && local_.ip.is_v4() && !local_.ip.is_any();
  if (to.is_any()) to = is_own ? local_.ip : Ip::loopback(to.is_v4() || is_mapped());
  if (family_ == AF_INET6 && to.is_v4() && v6_only_ != 0) return -ENETUNREACH;
  return is_mapped() && !to.is_v4() ? -EAFNOSUPPORT : 0;
}

Ip IpSocket::own_like(const Ip& ip) const {
  if (ip.is_loopback()) return Ip::loopback(ip.is_v4());
  return ip.is_v4() ? Ip::v4_of(host_) : Ip::v6_of(host_);
}

long IpSocket::local_address(sockaddr* address, socklen_t* size) const {
  local_.to_system(family_, address, size);
  return 0;
}

// ---- options

long IpSocket::set_option(int level, int name, const void* value, socklen_t size) {
  if (level == IPPROTO_IPV6 && family_ == AF_INET) return -ENOPROTOOPT;
  int* remembered = nullptr;
  if (level == SOL_SOCKET && name == SO_REUSEPORT) remembered = &shares_port_;
  if (level == SOL_SOCKET && name == SO_REUSEADDR) remembered = &shares_address_;
  if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY) remembered = &v6_only_;
  if (level == IPPROTO_IP && name == IP_BIND_ADDRESS_NO_PORT) remembered = &draws_port_late_;
  if (remembered == nullptr) return Socket::set_option(level, name, value, size);
  if (size < sizeof(*remembered)) return -EINVAL;
  if (remembered == &v6_only_ && has_port()) return -EINVAL;  // Too late after bind().
  std::memcpy(remembered, value, sizeof(*remembered));
  return 0;
}

std::optional<int> IpSocket::option(int level, int name) {
  if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY) return v6_only_;
  if (level != SOL_SOCKET) return std::nullopt;
  switch (name) {
    case SO_PROTOCOL:
      return protocol_ == Protocol::tcp ? IPPROTO_TCP : IPPROTO_UDP;
    case SO_REUSEPORT:
      return shares_port_;
    case SO_REUSEADDR:
      return shares_address_;
    default:
      return Socket::option(level, name);
  }
}

}  // namespace spate::sim
