// Address: where a socket is: an IPv4 or IPv6 address with a port, or a unix socket's path or
// abstract name.
//
// A plain value of 116 bytes, made from text or from parts; it never asks a name server (that is
// connect.h's business). Any thread.
//
// As text:  192.0.2.1:80   [2001:db8::1]:80   [fe80::1%eth0]:80   unix:/run/s.sock   unix:@name
// A path may also stand alone when it begins with a slash. Behind unix: an @ stands for the
// abstract namespace; behind path: it is a path's, as in path:@name.
// What to_string() prints parses to an equal address, with two exceptions, which parse() refuses:
// "none", as an Address of no family prints, and a path of 108 bytes, which only from_system()
// makes. (Where an interface has gone, so has the meaning of a text with its name.)
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

  // None: what an unnamed unix socket has. What lies beyond the size is never looked at.
  Address() : size_(2) { bytes_[0] = bytes_[1] = 0; }

  // One of the forms above, the port included. Errors: EINVAL for anything else, ERANGE for a port
  // beyond 65535, ENODEV for a scope that names no interface here, ENAMETOOLONG for a path beyond
  // 107 bytes.
  static Result<Address> parse(std::string_view text);
  // "192.0.2.1", "2001:db8::1" or "fe80::1%eth0" and a port. Errors: EINVAL, ENODEV.
  static Result<Address> ip(std::string_view host, std::uint16_t port);
  // 4 or 16 bytes in network order, as protocols carry them, and a port. Errors: EINVAL.
  static Result<Address> ip(Bytes host, std::uint16_t port);
  // A path in the file system: 1 to 107 bytes without NUL. Errors: EINVAL, ENAMETOOLONG.
  static Result<Address> path(std::string_view path);
  // A name in Linux's abstract namespace: up to 107 bytes, any. Errors: ENAMETOOLONG.
  static Result<Address> abstract(std::string_view name);

  static Address any_ipv4(std::uint16_t port);       // 0.0.0.0
  static Address any_ipv6(std::uint16_t port);       // ::, which also takes IPv4 unless told not to
  static Address loopback_ipv4(std::uint16_t port);  // 127.0.0.1
  static Address loopback_ipv6(std::uint16_t port);  // ::1

  // From the system's own struct, as accept() and getsockname() fill it; an unnamed unix socket's
  // and one of AF_UNSPEC become Address(). Errors: EAFNOSUPPORT, EINVAL for a size that does not
  // fit the family.
  static Result<Address> from_system(const void* address, std::size_t size);
  // For the system's calls: a sockaddr and its length.
  const void* data() const { return bytes_; }
  std::size_t size() const { return size_; }

  Family family() const;
  bool is_ip() const { return family() == Family::ipv4 || family() == Family::ipv6; }
  // 0 if it is no IP address.
  std::uint16_t port() const;
  Address with_port(std::uint16_t port) const;
  // The IP address without its port: "192.0.2.1", "fe80::1%eth0". Empty if it is none.
  std::string host() const;
  // Its 4 or 16 bytes in network order. Empty if it is none. They end with the Address.
  Bytes ip_bytes() const;
  // The interface of a link-local IPv6 address; 0 for none.
  std::uint32_t scope() const;
  // A unix socket's path, or its abstract name without the leading NUL. Empty if it has none.
  std::string_view name() const;
  bool is_abstract() const;
  // An IPv4 address in IPv6's clothes (::ffff:192.0.2.1), as a listener for both sees its peers,
  // becomes IPv4; any other stays what it is.
  Address unmapped() const;

  std::string to_string() const;

  bool operator==(const Address& other) const;
  // Of the IP address without the port, or of the name: the same for every connection of a peer.
  std::size_t host_hash() const;

 private:
  friend class PacketBatch;  // Has the kernel write into them.

  static constexpr std::size_t kCapacity = 112;

  // What the system has written into bytes_ becomes an address, or none if it is not one.
  void settle(std::size_t size);
  template <class System>
  static Address make(const System& system, std::size_t size);
  Result<Address> as_unix() const;
  std::string_view host_bytes() const;

  alignas(8) unsigned char bytes_[kCapacity];
  std::uint32_t size_;
};

}  // namespace spate
