// Route: the target of a connection and the way to it. Calls of one route share connections.
#pragma once

#include <cstdint>
#include <string>

#include "spate/http/proxy.h"
#include "spate/net/address.h"

namespace spate::http {

struct Route {
  bool is_secure = false;
  std::string host{};  // As a resolver takes it.
  std::uint16_t port = 0;
  Proxy proxy{};
  bool is_http1 = false;  // Only HTTP/1.1, for an upgrade.
  Address address{};           // Replaces the host's, if not empty.
  std::string proxy_header{};  // PROXY protocol; empty: none.

  // True if a proxy receives the whole URL by HTTP.
  bool sends_absolute_url() const { return proxy.kind == ProxyKind::http && !is_secure; }
};

}  // namespace spate::http
