#include "net/socket_address.h"

namespace spate {

Address address_of(const sys::SystemAddress& system) {
  return Address::from_system(&system.storage, system.size).value_or(Address());
}

void AddressRoom::settle_another(Address& address, std::size_t size) {
  address = Address::from_system(address.bytes_, size).value_or(Address());
}

Address local_address_of(int fd) {
  sys::SystemAddress system;
  return sys::local_address(fd, system) < 0 ? Address() : address_of(system);
}

Address peer_address_of(int fd) {
  sys::SystemAddress system;
  return sys::peer_address(fd, system) < 0 ? Address() : address_of(system);
}

}  // namespace spate
