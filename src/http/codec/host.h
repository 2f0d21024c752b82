// The host of a URI, and the port behind it (RFC 3986 §3.2), as Host and request-targets carry it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spate::http {

inline constexpr std::size_t kMostHost = 255;  // Bytes, without the port.

struct HostPort {
  std::string_view host = {};  // As it was sent; with brackets if it is an IPv6 address.
  std::optional<std::uint16_t> port = {};  // None if it was not sent, or empty: "host" or "host:".
};

// A name (reg-name), an IPv4 address, or an IPv6 address in brackets, then nothing or a port.
// Refuses userinfo, other literals in brackets ("[v1.x]"), zones, ports above 65535, and a port
// without a host. Empty text is an empty host.
std::optional<HostPort> parse_host(std::string_view text);

// Whether `value` may be that of Host (RFC 9110 §7.2). It may be empty, as it is for a target
// without an authority.
bool is_valid_host(std::string_view value);

// Without brackets. Neither takes what inet_aton() would: "127.1", "0x7f000001", "010.0.0.1".
bool is_ipv4(std::string_view text);
bool is_ipv6(std::string_view text);

// Decimal, 0 ... 65535; no sign, nothing else. Leading zeros are allowed, as in RFC 3986.
std::optional<std::uint16_t> parse_port_number(std::string_view text);

}  // namespace spate::http
