// The order in which the addresses of a host are tried (RFC 8305, section 4).
#pragma once

#include <vector>

#include "spate/net/address.h"

namespace spate {

inline bool is_ipv6(const Address& address) { return address.family() == Address::Family::ipv6; }

// Alternates IPv6 and IPv4 while there are both. Keeps the order within a family.
std::vector<Address> by_turns(const std::vector<Address>& addresses, bool ipv6_first);

}  // namespace spate
