// GatewayCore: the state behind a Gateway: its client, and the requests in progress.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/list.h"
#include "http/gateway/health_checks.h"
#include "http/gateway/upstream_pool.h"
#include "http/server/lifetime.h"
#include "spate/http/client.h"
#include "spate/http/gateway.h"
#include "spate/loop.h"

namespace spate::http {

class Forwarding;

class GatewayCore {
 public:
  GatewayCore(Loop& loop, Client client, GatewayOptions options);
  GatewayCore(const GatewayCore&) = delete;
  GatewayCore& operator=(const GatewayCore&) = delete;
  ~GatewayCore();

  // Starts the checks of GatewayOptions::upstreams. Errors: those of HealthChecks::make().
  std::error_code start_checks(Loop& loop, ClientOptions client, HealthCheck options);
  void forward(Exchange exchange);
  void forward(Exchange exchange, std::string_view upstream, OnUnreached on_unreached);
  GatewayMetrics metrics() const { return counts_; }

  // ---- called by Forwarding

  Client& client() { return client_; }
  const GatewayOptions& options() const { return options_; }
  GatewayMetrics& counts() { return counts_; }
  // Null without GatewayOptions::upstreams.
  UpstreamPool* pool() { return pool_ ? &*pool_ : nullptr; }
  Lifetime& lifetime() { return lifetime_; }
  // Destroys `forwarding`.
  void remove(Forwarding& forwarding);

 private:
  Forwarding* admit(Exchange exchange, OnUnreached on_unreached);

  Client client_;
  std::optional<UpstreamPool> pool_;
  GatewayOptions options_;
  List<Forwarding> forwardings_;
  GatewayMetrics counts_;
  Lifetime lifetime_;
  std::unique_ptr<HealthChecks> checks_;
};

}  // namespace spate::http
