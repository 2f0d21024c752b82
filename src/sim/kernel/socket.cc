#include "sim/kernel/socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace spate::sim {

namespace {

constexpr int kSwitches[] = {SO_REUSEADDR, SO_KEEPALIVE, SO_BROADCAST,
                             SO_OOBINLINE, SO_DONTROUTE, SO_PASSCRED};
constexpr int kReadOnly[] = {SO_ERROR, SO_TYPE, SO_DOMAIN, SO_PROTOCOL, SO_ACCEPTCONN};

// The bit of a switch, 0 of other options.
unsigned bit_of(int name) {
  const auto* const found = std::ranges::find(kSwitches, name);
  return found == std::end(kSwitches) ? 0u : 1u << (found - std::begin(kSwitches));
}

}  // namespace

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
  if (level != SOL_SOCKET || std::ranges::count(kReadOnly, name) != 0) return no_option(level);
  const unsigned bit = bit_of(name);
  switches_ = number != 0 ? switches_ | bit : switches_ & ~bit;
  if (name != SO_SNDBUF && name != SO_RCVBUF) return 0;
  const auto wanted = static_cast<std::size_t>(std::max(number, 0));
  set_buffer(name == SO_SNDBUF, std::clamp(wanted, kLeastBuffer, kMostBuffer));
  return 0;
}

std::optional<int> Socket::option(int level, int name) {
  if (level != SOL_SOCKET) return std::nullopt;
  if (const unsigned bit = bit_of(name)) return (switches_ & bit) != 0 ? 1 : 0;
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

long Socket::no_option(int) const { return -ENOPROTOOPT; }

long Socket::get_option(int level, int name, void* value, socklen_t* size) {
  const std::optional<int> found = option(level, name);
  if (!found) return no_option(level);
  return copy_option(*found, value, size);
}

}  // namespace spate::sim
