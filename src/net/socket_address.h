// Addresses of sockets, as the kernel tells them. One that it does not tell is empty.
#pragma once

#include "spate/net/address.h"
#include "sys/socket.h"

namespace spate {

Address address_of(const sys::SystemAddress& system);
Address local_address_of(int fd);
Address peer_address_of(int fd);

}  // namespace spate
