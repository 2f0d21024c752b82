// The PROXY protocol, versions 1 and 2: what a load balancer says, before anything else, about the
// connection that it forwards. Only to be believed where no one else can connect.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spate/net/address.h"
#include "spate/net/bytes.h"

namespace spate::http {

inline constexpr std::size_t kMostProxyLine = 107;              // Of version 1, with its CRLF.
inline constexpr std::size_t kMostProxyHeader = 16 + 4 * 1024;  // Of version 2.

struct ProxyHeader {
  enum class State : std::uint8_t {
    unfinished,  // At least `size` bytes are needed.
    whole,       // It takes up `size` bytes.
    broken,      // It is none, or too long: close the connection.
  };

  State state = State::broken;
  std::size_t size = 0;
  // Both without a family: the connection's own addresses count. It is the balancer's (LOCAL), or
  // something that it does not know or name.
  Address source = {};
  Address destination = {};
  // Of version 2: type, length of 2 bytes, value; again. They fit; what they say is not checked.
  Bytes extensions = {};
};

// Reads the header at the front; shown again with more bytes until it is whole. Bytes that cannot
// begin one are broken at once.
ProxyHeader parse_proxy_header(Bytes bytes);

}  // namespace spate::http
