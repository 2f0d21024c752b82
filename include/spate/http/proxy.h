// Proxy: through which a Client connects.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "spate/error.h"
#include "spate/export.h"

namespace spate::http {

enum class ProxyKind : std::uint8_t {
  none,
  http,         // Is told the whole URL of http, and asked for a tunnel (CONNECT) for https.
  http_tunnel,  // Is asked for a tunnel always.
  socks5,       // RFC 1928. Names are resolved by the proxy.
};

struct SPATE_EXPORT Proxy {
  ProxyKind kind = ProxyKind::none;
  std::string host{};
  std::uint16_t port = 0;
  std::string user{};  // Empty: without credentials. Of SOCKS5 at most 255 bytes each.
  std::string password{};

  // "http://host:3128" or "socks5://host:1080"; without a port 80 or 1080. Errors: EINVAL for
  // another scheme; those of Url::parse().
  static Result<Proxy> parse(std::string_view url);

  bool operator==(const Proxy&) const = default;
};

}  // namespace spate::http
