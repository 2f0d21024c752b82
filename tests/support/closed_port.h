// A port that refuses connections and packets. A port that a test used before is not one: the
// kernel may give it to another test at once, and a TCP port may be used while its UDP port is not.
#pragma once

#include <cstdint>
#include <string>

#include "spate/net/address.h"

namespace spate::testing {

inline constexpr std::uint16_t kClosedPort = 1;  // tcpmux (RFC 1078): no program listens there.

inline Address closed_ipv4() { return Address::loopback_ipv4(kClosedPort); }
inline Address closed_ipv6() { return Address::loopback_ipv6(kClosedPort); }
inline std::string closed_url() { return "http://" + closed_ipv4().to_string() + "/"; }

}  // namespace spate::testing
