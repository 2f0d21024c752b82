// Proxy: a proxy of a Client. ProxySettings: which proxy is used for which URL.
// Threads: any, one at a time for each object.
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
  http,         // Receives the whole URL for http, and CONNECT for https.
  http_tunnel,  // Always receives CONNECT.
  socks5,       // RFC 1928. The proxy resolves names.
};

struct SPATE_EXPORT Proxy {
  ProxyKind kind = ProxyKind::none;
  std::string host{};
  std::uint16_t port = 0;
  std::string user{};  // Empty: no credentials. With SOCKS5 at most 255 bytes each.
  std::string password{};

  // Parses "http://host:3128" or "socks5://user:password@host". The default ports are 80 and 1080.
  // Percent-encoded credentials are decoded. "socks5h" is socks5. Errors: EINVAL for another
  // scheme, or a path; those of Url::parse().
  static Result<Proxy> parse(std::string_view url);

  bool operator==(const Proxy&) const = default;
};

struct SPATE_EXPORT ProxySettings {
  Proxy proxy{};
  std::optional<Proxy> for_https{};  // Replaces `proxy` for https.
  // Hosts that are reached directly, separated by commas or blanks: "example.org" with all names
  // below it (also ".example.org", "*.example.org"), "10.1.2.3", "10.0.0.0/8", "::1", each
  // optionally with a port ("example.org:8080", "[::1]:80"); "*" is every host. Invalid entries are
  // ignored.
  std::string no_proxy{};

  // Reads the environment, which no other function does: http_proxy, https_proxy, all_proxy for
  // both, no_proxy. The last three are also read in capitals. HTTP_PROXY is not, because a client
  // of a CGI program can set it. The default scheme is "http://". Loopback is reached directly. No
  // thread may change the environment meanwhile. Errors: EINVAL for an invalid proxy.
  static Result<ProxySettings> from_environment();

  // Returns the proxy for `url`; ProxyKind::none if it is reached directly.
  Proxy proxy_for(const Url& url) const;
};

}  // namespace spate::http
