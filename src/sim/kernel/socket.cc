#include "sim/kernel/socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace spate::sim {

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

long Socket::set_option(int level, int name, const void* value, socklen_t size) {
  int number = 0;
  if (size < sizeof(number)) return -EINVAL;
  std::memcpy(&number, value, sizeof(number));
  if (level != SOL_SOCKET) return -ENOPROTOOPT;
  if (name != SO_SNDBUF && name != SO_RCVBUF) return 0;
  const auto wanted = static_cast<std::size_t>(std::max(number, 0));
  set_buffer(name == SO_SNDBUF, std::clamp(wanted, kLeastBuffer, kMostBuffer));
  return 0;
}

std::optional<int> Socket::option(int level, int name) {
  if (level != SOL_SOCKET) return std::nullopt;
  switch (name) {
    case SO_ERROR:
      return take_error();
    case SO_TYPE:
      return type_;
    case SO_DOMAIN:
      return family_;
    case SO_PROTOCOL:
      return 0;
    case SO_ACCEPTCONN:
      return type_ == SOCK_STREAM && is_listening();
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
