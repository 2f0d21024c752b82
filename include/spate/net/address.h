// Address: an IPv4 or IPv6 address with a port, or the path or abstract name of a unix socket.
//
// A plain value of 120 bytes, made from text or from parts. It does not resolve names: see
// connect.h. Any thread.
//
// As text:
//   192.0.2.1:80   [2001:db8::1]:80   [fe80::1%eth0]:80   unix:/run/s.sock   unix:@name
// A path that begins with a slash needs no prefix. After "unix:" an @ means the abstract namespace;
// after "path:" it is part of the path, as in path:@name.
//
// parse() reads the output of to_string(), with two exceptions: "none", for an Address without a
// family, and a path of 108 bytes, which only from_system() can return. (A scope's name is valid
// while its interface exists.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/net/bytes.h"

namespace spate {

class SPATE_EXPORT Address {
 public:
  enum class Family : std::uint8_t { none, ipv4, ipv6, local };

  // Makes an Address without a family, as for an unnamed unix socket. Bytes beyond the size are not
  // initialized.
  Address() : size_(2) { bytes_[0] = bytes_[1] = 0; }

  // Parses one of the forms above, with the port. Errors: EINVAL; ERANGE for a port above 65535;
  // ENODEV for a scope that is not an interface; ENAMETOOLONG for a path of more than 107 bytes.
  static Result<Address> parse(std::string_view text);
  // Parses an address to listen at, as given on a command line: one of the forms above, or a port
  // alone, "7000" or ":7000", which is any_ipv6(7000). Errors: as parse().
  static Result<Address> parse_listen(std::string_view text);
  // Makes an Address from "192.0.2.1", "2001:db8::1" or "fe80::1%eth0", and a port. Errors: EINVAL,
  // ENODEV.
  static Result<Address> ip(std::string_view host, std::uint16_t port);
  // Makes an Address from 4 or 16 bytes in network order, as protocols carry them, and a port.
  // Errors: EINVAL.
  static Result<Address> ip(Bytes host, std::uint16_t port);
  // Makes the Address of a unix socket's path: 1 to 107 bytes without NUL. Errors: EINVAL,
  // ENAMETOOLONG.
  static Result<Address> path(std::string_view path);
  // Makes the Address of a name in the abstract namespace: up to 107 bytes of any value. Errors:
  // ENAMETOOLONG; EOPNOTSUPP on systems other than Linux.
  static Result<Address> abstract(std::string_view name);

  static Address any_ipv4(std::uint16_t port);       // 0.0.0.0
  static Address any_ipv6(std::uint16_t port);       // ::, which also accepts IPv4 unless v6_only
  static Address loopback_ipv4(std::uint16_t port);  // 127.0.0.1
  static Address loopback_ipv6(std::uint16_t port);  // ::1

  // Converts a sockaddr, as accept() and getsockname() fill it. An unnamed unix socket and
  // AF_UNSPEC become Address(). Errors: EAFNOSUPPORT, EINVAL for a size that does not fit the
  // family.
  static Result<Address> from_system(const void* address, std::size_t size);
  // Return a sockaddr and its length, for system calls.
  const void* data() const { return bytes_; }
  std::size_t size() const { return size_; }

  Family family() const;
  bool is_ip() const { return family() == Family::ipv4 || family() == Family::ipv6; }
  // Returns 0 if this is not an IP address.
  std::uint16_t port() const;
  Address with_port(std::uint16_t port) const;
  // Returns the IP address without the port: "192.0.2.1", "fe80::1%eth0". Empty if not an IP
  // address.
  std::string host() const;
  // Returns its 4 or 16 bytes in network order, as a view into the Address. Empty if not an IP
  // address.
  Bytes ip_bytes() const;
  // Returns the interface index of a link-local IPv6 address, otherwise 0.
  std::uint32_t scope() const;
  // Returns a unix socket's path, or its abstract name without the leading NUL. Empty if unnamed.
  std::string_view name() const;
  bool is_abstract() const;
  // Converts an IPv4-mapped IPv6 address (::ffff:192.0.2.1) to IPv4. A listener for both families
  // reports IPv4 peers in this form. Returns other addresses unchanged.
  Address unmapped() const;

  std::string to_string() const;

  bool operator==(const Address& other) const;
  // Returns a hash of the IP address without the port, or of the name: equal for all connections of
  // a peer.
  std::size_t host_hash() const;

 private:
  friend class AddressRoom;  // Lets the kernel write into bytes_ and size_.

  static constexpr std::size_t kCapacity = 112;

  template <class System>
  static Address make(const System& system, std::size_t size);
  Result<Address> as_unix() const;
  std::string_view host_bytes() const;

  alignas(std::uint64_t) unsigned char bytes_[kCapacity];
  std::uint32_t size_;
  std::uint32_t : 32;  // Padding, so that 32-bit machines have this layout, too.
};

}  // namespace spate
