#include "spate/http/gateway.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "http/codec/characters.h"
#include "http/codec/syntax.h"
#include "http/codec/system_error.h"
#include "http/gateway/forwarded_fields.h"
#include "http/gateway/forwarding.h"
#include "http/gateway/gateway_core.h"

namespace spate::http {

// ---- GatewayCore

GatewayCore::GatewayCore(Loop& loop, Client client, GatewayOptions options)
    : client_(std::move(client)), options_(std::move(options)) {
  if (options_.upstreams) pool_.emplace(loop, std::move(*options_.upstreams));
}

std::error_code GatewayCore::start_checks(Loop& loop, ClientOptions client, HealthCheck options) {
  std::string header;
  if (options_.proxy_protocol) header = proxy_header({}, {}, *options_.proxy_protocol);
  auto checks =
      HealthChecks::make(loop, *pool_, std::move(client), std::move(options), std::move(header));
  if (!checks) return checks.error();
  checks_ = std::move(*checks);
  return {};
}

GatewayCore::~GatewayCore() {
  while (Forwarding* forwarding = forwardings_.first()) remove(*forwarding);
}

// Returns null if the exchange is over. When memory runs out, it is destroyed, which responds 500.
Forwarding* GatewayCore::admit(Exchange exchange, OnUnreached on_unreached) {
  if (!exchange.is_open()) return nullptr;
  if (exchange.request().method() == Method::connect) {
    exchange.respond(Status::not_implemented);
    return nullptr;
  }
  if (is_at_last_hop(exchange.request())) {
    const bool is_options = exchange.request().method() == Method::options;
    exchange.respond(is_options ? Status::no_content : Status::method_not_allowed);
    return nullptr;
  }
  auto* forwarding =
      new (std::nothrow) Forwarding(*this, std::move(exchange), std::move(on_unreached));
  if (forwarding == nullptr) return nullptr;
  forwardings_.push_front(*forwarding);
  ++counts_.forwarding;
  ++counts_.forwarded;
  return forwarding;
}

void GatewayCore::forward(Exchange exchange, std::string_view upstream, OnUnreached on_unreached) {
  Forwarding* forwarding = admit(std::move(exchange), std::move(on_unreached));
  if (forwarding != nullptr) forwarding->begin(upstream);
}

void GatewayCore::forward(Exchange exchange) {
  Forwarding* forwarding = admit(std::move(exchange), {});
  if (forwarding != nullptr) forwarding->begin_at_any();
}

void GatewayCore::remove(Forwarding& forwarding) {
  forwarding.unlink();
  --counts_.forwarding;
  counts_.tunnels -= forwarding.is_tunnel();
  delete &forwarding;
}

// ---- Gateway

Gateway::Gateway() = default;
Gateway::Gateway(std::unique_ptr<GatewayCore> core) : core_(std::move(core)) {}
Gateway::Gateway(Gateway&& other) noexcept = default;
Gateway& Gateway::operator=(Gateway&& other) noexcept = default;
Gateway::~Gateway() = default;

Result<Gateway> Gateway::create(Loop& loop, GatewayOptions options) {
  const bool has_tls = static_cast<bool>(options.client.tls);
  const bool is_valid = options.client.jar == nullptr && is_token(options.name) &&
                        std::ranges::all_of(options.upgrades, is_protocol) &&
                        (!options.upstreams || http::is_valid(*options.upstreams, has_tls));
  if (!is_valid) return std::unexpected(system_error(EINVAL));
  std::optional<HealthCheck> check;
  if (options.upstreams) check = options.upstreams->health_check;
  Result<ClientOptions> of_checks;
  if (check) of_checks = health_check_client(options.client);
  if (!of_checks) return std::unexpected(of_checks.error());
  Result<Client> client = Client::create(loop, std::move(options.client));
  if (!client) return std::unexpected(client.error());
  std::unique_ptr<GatewayCore> core(new (std::nothrow)
                                        GatewayCore(loop, std::move(*client), std::move(options)));
  if (core == nullptr) return std::unexpected(system_error(ENOMEM));
  if (check) {
    const auto error = core->start_checks(loop, std::move(*of_checks), std::move(*check));
    if (error) return std::unexpected(error);
  }
  return Gateway(std::move(core));
}

void Gateway::forward(Exchange exchange, std::string_view upstream, OnUnreached on_unreached) {
  core_->forward(std::move(exchange), upstream, std::move(on_unreached));
}

void Gateway::forward(Exchange exchange) { core_->forward(std::move(exchange)); }

std::vector<UpstreamMetrics> Gateway::upstreams() const {
  return core_->pool() == nullptr ? std::vector<UpstreamMetrics>() : core_->pool()->metrics();
}

GatewayMetrics Gateway::metrics() const { return core_->metrics(); }

}  // namespace spate::http
