// Route: where a connection leads, and by which way. Calls of one route share connections.
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
  bool is_http1 = false;  // Whatever else the server speaks: for an upgrade.
  Address address{};      // Instead of the host's, if it is not empty.

  // The proxy is told the whole URL, and speaks HTTP with us.
  bool is_told_url() const { return proxy.kind == ProxyKind::http && !is_secure; }
};

}  // namespace spate::http
