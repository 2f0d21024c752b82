// GatewayCore: what a Gateway is the handle of: its client, and all that it forwards.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "spate/http/client.h"
#include "spate/http/gateway.h"
#include "spate/loop.h"

namespace spate::http {

class Forwarding;

class GatewayCore {
 public:
  GatewayCore(Client client, GatewayOptions options)
      : client_(std::move(client)), options_(std::move(options)) {}
  GatewayCore(const GatewayCore&) = delete;
  GatewayCore& operator=(const GatewayCore&) = delete;
  ~GatewayCore();

  void forward(Exchange exchange, std::string_view upstream, OnUnreached on_unreached);
  GatewayMetrics metrics() const { return counts_; }

  // ---- what is forwarded uses

  Client& client() { return client_; }
  const GatewayOptions& options() const { return options_; }
  GatewayMetrics& counts() { return counts_; }
  // Destroys it.
  void remove(Forwarding& forwarding);

 private:
  Client client_;
  const GatewayOptions options_;
  Forwarding* first_ = nullptr;
  GatewayMetrics counts_;
};

}  // namespace spate::http
