// The PROXY protocol, versions 1 and 2: a header in which a load balancer sends the addresses of
// the connection that it forwards, before all other bytes.
//
// A server reads it with ServeOptions::proxy_protocol (server.h), or with
// http::ServerOptions::proxy_protocol. The functions here are for programs that accept connections
// by themselves, and for those that forward connections.
//
// Threads: any, except that read_proxy_header() belongs to the thread of the stream's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/net/address.h"
#include "spate/net/bytes.h"
#include "spate/net/connect.h"
#include "spate/net/network.h"
#include "spate/net/stream.h"
#include "spate/time.h"

namespace spate {

// Whether connections begin with a PROXY protocol header, version 1 or 2, which carries the
// client's address from a load balancer. The header is trusted without verification: accept it only
// from your own load balancers.
enum class ProxyProtocol : std::uint8_t {
  off,
  from_proxies,  // Required from the addresses in `proxies`, not expected from others.
  always,        // Required on all connections: where only the load balancer can connect.
};

// Returns whether a connection of `peer` must begin with a header.
SPATE_EXPORT bool expects_proxy_header(ProxyProtocol protocol, std::span<const Network> proxies,
                                       const Address& peer);

inline constexpr std::size_t kMostProxyLine = 107;              // Version 1, with CRLF.
inline constexpr std::size_t kMostProxyHeader = 16 + 4 * 1024;  // Version 2.

struct ProxyHeader {
  enum class State : std::uint8_t {
    unfinished,  // At least `size` bytes are needed.
    whole,       // It occupies `size` bytes.
    broken,      // Invalid or too long: close the connection.
  };

  State state = State::broken;
  std::size_t size = 0;
  // Without a family, both of them: use the connection's own addresses. The connection is the
  // balancer's own (LOCAL), or its addresses are unknown or unsupported.
  Address source = {};
  Address destination = {};
  // Version 2: repeated type, 2-byte length and value. Their lengths were checked, not their
  // contents. A view into the bytes that were parsed.
  Bytes extensions = {};
};

// Parses the header at the front; pass in the bytes again with more until it is whole. Bytes that
// cannot begin one are broken at once.
SPATE_EXPORT ProxyHeader parse_proxy_header(Bytes bytes);

enum class ProxyVersion : std::uint8_t { v1 = 1, v2 = 2 };

// Returns a header, to be sent before all other bytes. `source` is the client's address, and
// `destination` the address to which the client connected. IPv4 and IPv6 together are both written
// as IPv6. Without two addresses of one kind it has none: UNKNOWN in version 1, which has no unix
// sockets, and LOCAL in version 2.
SPATE_EXPORT std::string proxy_header(const Address& source, const Address& destination,
                                      ProxyVersion version = ProxyVersion::v2);

// `header.extensions` is valid until the callback returns.
using OnProxyHeader = Function<void(Result<Stream> stream, ProxyHeader header)>;

// Reads the header of an accepted Stream, which was not started, and not one byte more. The Stream
// passed to the callback is not started either: begin TLS on it, or start it. Destroying the
// Connecting cancels, and resets the connection.
//
// The loop calls `callback` once. When memory runs out at the beginning, or for a closed Stream,
// the Connecting is not pending, and the callback is not called.
//
// Errors: EBADMSG for a malformed header; Error::deadline after `timeout`, zero is none; ECONNRESET
// if the peer ends before it is complete; ENOTSOCK in memory; other errors of read(2). After an
// error the connection is reset.
SPATE_EXPORT Connecting read_proxy_header(Stream stream, Nanos timeout, OnProxyHeader callback);

}  // namespace spate
