// The credentials of a proxy, and their checks.
#pragma once

#include <cstddef>
#include <string>

#include "http/codec/base64.h"
#include "spate/http/proxy.h"

namespace spate::http {

// The limit of a name and a password in SOCKS5.
inline constexpr std::size_t kMostSocksText = 255;

inline bool is_valid(const Proxy& proxy) {
  if (proxy.kind == ProxyKind::none) return true;
  if (proxy.host.empty() || proxy.port == 0) return false;
  return proxy.kind != ProxyKind::socks5 ||
         (proxy.user.size() <= kMostSocksText && proxy.password.size() <= kMostSocksText);
}

// Returns credentials for Basic authentication (RFC 7617).
inline std::string basic_credentials(const Proxy& proxy) {
  return "Basic " + base64(proxy.user + ":" + proxy.password);
}

}  // namespace spate::http
