// Addresses of sockets, as the kernel tells them. One that it does not tell is empty.
#pragma once

#include <cstring>

#include "spate/net/address.h"
#include "sys/socket.h"

namespace spate {

Address address_of(const sys::SystemAddress& system);
Address local_address_of(int fd);
Address peer_address_of(int fd);

// Has the kernel write an address where it is to be read.
class AddressRoom {
 public:
  static constexpr std::size_t kSize = Address::kCapacity;

  static void* of(Address& address) { return address.bytes_; }
  // What has been written, `size` bytes, becomes an address, or none if it is not one. Nearly all
  // are IP's, and as they should be.
  static void settle(Address& address, std::size_t size) {
    sa_family_t family;
    std::memcpy(&family, address.bytes_, sizeof(family));
    if ((family == AF_INET && size == sizeof(sockaddr_in)) ||
        (family == AF_INET6 && size == sizeof(sockaddr_in6))) {
      address.size_ = static_cast<std::uint32_t>(size);
    } else {
      settle_another(address, size);
    }
  }

  // The same for a packet's, where there has been an address before: one of the same size is right
  // as it stands. (No packet's has two bytes, as none has.)
  static void settle_next(Address& address, std::size_t size) {
    if (size != address.size_) settle(address, size);
  }

 private:
  static void settle_another(Address& address, std::size_t size);
};

}  // namespace spate
