// Proxy: through which a Client connects. ProxySettings: which one, and when none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "spate/error.h"
#include "spate/export.h"

namespace spate::http {

class Url;

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

  // "http://host:3128", "socks5://user:password@host"; without a port 80 or 1080. What is in
  // escapes there is decoded. "socks5h" is socks5. Errors: EINVAL for another scheme, or a path;
  // those of Url::parse().
  static Result<Proxy> parse(std::string_view url);

  bool operator==(const Proxy&) const = default;
};

struct SPATE_EXPORT ProxySettings {
  Proxy proxy{};
  std::optional<Proxy> for_https{};  // In its place for https.
  // What is reached without a proxy, separated by commas or blanks: "example.org" with all names
  // below it (also ".example.org", "*.example.org"), "10.1.2.3", "10.0.0.0/8", "::1", each perhaps
  // with a port ("example.org:8080", "[::1]:80"); "*" is everything. What is none of these does
  // nothing.
  std::string no_proxy{};

  // What the environment says, which nothing else looks at: http_proxy, https_proxy, all_proxy for
  // both, no_proxy; the last three also in capitals, but not HTTP_PROXY, which a client of a CGI
  // program can set. Without a scheme "http://" is meant. Loopback is reached without a proxy. No
  // thread may change the environment meanwhile. Errors: EINVAL for what is no proxy.
  static Result<ProxySettings> from_environment();

  // Of kind `none`, if it is to be reached without.
  Proxy proxy_for(const Url& url) const;
};

}  // namespace spate::http
