#include "sim/socket.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace spate::sim {

bool Socket::hears(const Ip& own, const Ip& ip) const {
  if (own == ip) return true;
  if (!own.is_any()) return false;
  return own.is_v4() ? ip.is_v4() : !ip.is_v4() || v6_only_ == 0;
}

bool Socket::shares_port(const Socket& other) const {
  if (shares_port_ != 0 && other.shares_port_ != 0) return true;
  return protocol_ == Protocol::udp && shares_address_ != 0 && other.shares_address_ != 0;
}

long Socket::read(std::span<std::byte> room) {
  iovec piece{.iov_base = room.data(), .iov_len = room.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  return receive(message, 0);
}

long Socket::write(std::span<const std::byte> bytes) {
  iovec piece{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  return send(message);
}

// ---- addresses

long Socket::bind(const sockaddr* address, socklen_t size) {
  std::optional<Place> place = Place::from_system(family_, address, size);
  if (is_bound_ || local_.port != 0 || !place) return -EINVAL;
  if (const long result = network_.bind(*this, *place); result < 0) return result;
  local_ = *place;
  is_bound_ = true;
  return 0;
}

void Socket::unbind() {
  if (std::exchange(is_bound_, false)) network_.unbind(*this);
}

Ip Socket::own_like(const Ip& ip) const {
  if (ip.is_loopback()) return ip;
  return ip.is_v4() ? Ip::v4_of(host_) : Ip::v6_of(host_);
}

long Socket::local_address(sockaddr* address, socklen_t* size) const {
  local_.to_system(family_, address, size);
  return 0;
}

// ---- options

long Socket::set_option(int level, int name, const void* value, socklen_t size) {
  int number = 0;
  if (size < sizeof(number)) return -EINVAL;
  std::memcpy(&number, value, sizeof(number));
  if (level == SOL_SOCKET && name == SO_REUSEPORT) {
    shares_port_ = number;
  } else if (level == SOL_SOCKET && name == SO_REUSEADDR) {
    shares_address_ = number;
  } else if (level == SOL_SOCKET && (name == SO_SNDBUF || name == SO_RCVBUF)) {
    const auto wanted = static_cast<std::size_t>(std::max(number, 0));
    set_buffer(name == SO_SNDBUF, std::clamp<std::size_t>(wanted, kSegment, kMostBuffer));
  } else if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY) {
    v6_only_ = number;
  } else if (level != SOL_SOCKET) {
    return -ENOPROTOOPT;
  }
  return 0;
}

std::optional<int> Socket::option(int level, int name) {
  if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY) return v6_only_;
  if (level != SOL_SOCKET) return std::nullopt;
  const bool is_tcp = protocol_ == Protocol::tcp;
  switch (name) {
    case SO_ERROR:
      return take_error();
    case SO_TYPE:
      return is_tcp ? SOCK_STREAM : SOCK_DGRAM;
    case SO_DOMAIN:
      return family_;
    case SO_PROTOCOL:
      return family_ == AF_UNIX ? 0 : is_tcp ? IPPROTO_TCP : IPPROTO_UDP;
    case SO_ACCEPTCONN:
      return is_tcp && is_listening();
    case SO_REUSEPORT:
      return shares_port_;
    case SO_REUSEADDR:
      return shares_address_;
    case SO_SNDBUF:
      return static_cast<int>(buffer(true));
    case SO_RCVBUF:
      return static_cast<int>(buffer(false));
    default:
      return std::nullopt;
  }
}

long Socket::get_option(int level, int name, void* value, socklen_t* size) {
  const std::optional<int> found = option(level, name);
  if (!found) return -ENOPROTOOPT;
  if (*size < sizeof(*found)) return -EINVAL;
  std::memcpy(value, &*found, sizeof(*found));
  *size = sizeof(*found);
  return 0;
}

}  // namespace spate::sim
