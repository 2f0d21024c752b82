// Addresses of sockets, as returned by the kernel; empty if it returns none.
#pragma once

#include <cstring>

#include "spate/net/address.h"
#include "sys/address.h"
#include "sys/socket.h"

namespace spate {

Address address_of(const sys::SystemAddress& system);
Address local_address_of(int fd);
Address peer_address_of(int fd);

// Lets the kernel write an address directly into an Address.
class AddressRoom {
 public:
  static constexpr std::size_t kSize = Address::kCapacity;

  static void* of(Address& address) { return address.bytes_; }
  // Completes an Address after the kernel has written `size` bytes; empty if they are invalid. Fast
  // path for valid IP addresses, which are most frequent.
  static void settle(Address& address, std::size_t size) {
    sa_family_t family;
    std::memcpy(&family, address.bytes_ + sys::kFamilyAt, sizeof(family));
    if ((family == AF_INET && size == sizeof(sockaddr_in)) ||
        (family == AF_INET6 && size == sizeof(sockaddr_in6))) {
      address.size_ = static_cast<std::uint32_t>(size);
    } else {
      settle_another(address, size);
    }
  }

  // As above, for a packet's Address that was valid before: if the size is the same, nothing needs
  // to be changed. (No packet's size is 2, that of an empty Address.)
  static void settle_next(Address& address, std::size_t size) {
    if (size != address.size_) settle(address, size);
  }

 private:
  static void settle_another(Address& address, std::size_t size);
};

}  // namespace spate
