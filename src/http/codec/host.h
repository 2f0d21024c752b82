// The host and the port of a URI (RFC 3986 §3.2), as in Host and in request-targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spate::http {

inline constexpr std::size_t kMostHost = 255;  // Bytes, without the port.

struct HostPort {
  std::string_view host = {};              // As it was sent; an IPv6 address has its brackets.
  std::optional<std::uint16_t> port = {};  // nullopt if absent or empty: "host" or "host:".
};

// Parses a name (reg-name), an IPv4 address, or an IPv6 address in brackets, with an optional port.
// Refuses userinfo, other literals in brackets ("[v1.x]"), zones, ports above 65535, and a port
// without a host. An empty text is an empty host.
std::optional<HostPort> parse_host(std::string_view text);

// Returns whether `value` is a valid Host field (RFC 9110 §7.2). It may be empty, for a target
// without an authority.
bool is_valid_host(std::string_view value);

// Without brackets. The short and non-decimal forms of inet_aton() are refused: "127.1",
// "0x7f000001", "010.0.0.1".
bool is_ipv4(std::string_view text);
bool is_ipv6(std::string_view text);

// Parses a decimal number 0 ... 65535 without a sign. Leading zeros are allowed, as in RFC 3986.
std::optional<std::uint16_t> parse_port_number(std::string_view text);

}  // namespace spate::http
