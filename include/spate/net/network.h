// Network: a range of IP addresses, as 10.0.0.0/8 or 2001:db8::/32, or all unix sockets.
//
// A plain value. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/net/address.h"

namespace spate {

class SPATE_EXPORT Network {
 public:
  // Makes a Network that contains nothing.
  Network() = default;
  // Makes the Network of one IP address, whose port is ignored. A unix socket's address makes the
  // Network of all unix sockets. An Address without a family makes an empty one.
  Network(const Address& address);

  // Parses "10.0.0.0/8", "2001:db8::/32", an address without a prefix length, which is a Network of
  // one address, or "unix:", all unix sockets. Bits after the prefix are ignored. Errors: EINVAL,
  // also for a scope ("fe80::1%eth0").
  static Result<Network> parse(std::string_view text);

  // Returns whether an address is in the range; its port and scope are ignored. An IPv4-mapped IPv6
  // address is compared as IPv4, so "::/0" has no IPv4 address. An Address without a family, as of
  // an unnamed unix socket, is a unix socket's.
  bool contains(const Address& address) const;

  // Returns the text that parse() reads; empty for an empty Network.
  std::string to_string() const;

  bool operator==(const Network& other) const = default;

 private:
  enum class Kind : std::uint8_t { none, ip, local };

  Network(const Address& address, unsigned prefix);

  Kind kind_ = Kind::none;
  std::uint8_t prefix_ = 0;      // In bits.
  std::uint8_t size_ = 0;        // 4 or 16 bytes.
  unsigned char bytes_[16] = {};  // In network order; zero after the prefix.
};

}  // namespace spate
