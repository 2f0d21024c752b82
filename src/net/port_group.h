// Sockets that share a port, among which the kernel distributes what arrives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "net/socket_address.h"
#include "spate/error.h"
#include "spate/net/address.h"
#include "sys/descriptor.h"
#include "sys/socket.h"

namespace spate {

// When to set SO_REUSEPORT. Sockets can share an address only if all set it before bind(). A socket
// that sets it later makes bind() fail if the address is in use.
enum class Sharing : std::uint8_t { none, once_bound, from_the_start };

inline long allow_sharing(int fd) { return sys::set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1); }

// Makes `count` sockets at one address, each by open(address, sharing). No other socket may be
// there, unless `shares_at_once`: the first one then shares the port before it is bound.
template <class Open>
Result<std::vector<sys::Descriptor>> open_port_group(const Address& address, bool shares_at_once,
                                                     std::size_t count, Open open) {
  std::vector<sys::Descriptor> group;
  Address bound = address;
  Sharing sharing = shares_at_once ? Sharing::from_the_start : Sharing::once_bound;
  while (group.size() < count) {
    Result<sys::Descriptor> socket = open(bound, sharing);
    if (!socket) return std::unexpected(socket.error());
    bound = local_address_of(socket->get());
    sharing = Sharing::from_the_start;
    group.push_back(std::move(*socket));
  }
  return group;
}

}  // namespace spate
