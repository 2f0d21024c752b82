#include "spate/http/inspector.h"

#include <algorithm>
#include <string>
#include <utility>

#include "http/inspector/inspector_core.h"
#include "spate/http/client.h"
#include "spate/http/gateway.h"
#include "spate/offload.h"

namespace spate::http {

namespace {

template <class Number>
void gauge(Readings& readings, std::string_view name, Number value,
           Readings::Labels labels = {}) {
  readings.gauge(name, static_cast<double>(value), labels);
}
template <class Number>
void counter(Readings& readings, std::string_view name, Number value,
             Readings::Labels labels = {}) {
  readings.counter(name, static_cast<double>(value), labels);
}

// All classes appear with the first duration, because rate() needs a previous value.
void read_durations(Readings& readings, const ServerMetrics& metrics, std::string_view worker) {
  constexpr std::string_view kClasses[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
  const auto is_measured = [](const DurationHistogram& each) { return each.count() > 0; };
  if (std::ranges::none_of(metrics.durations, is_measured)) return;
  for (std::size_t i = 0; i < metrics.durations.size(); ++i) {
    readings.histogram("request_duration_seconds", metrics.durations[i],
                       {{"worker", worker}, {"status", kClasses[i]}});
  }
}

// `worker` is empty for a server of one loop.
void read_server(Readings& readings, const ServerMetrics& metrics, std::string_view worker = {}) {
  const auto labels = {Label{"worker", worker}};
  gauge(readings, "connections", metrics.connections, labels);
  gauge(readings, "exchanges", metrics.exchanges, labels);
  counter(readings, "accepted", metrics.accepted, labels);
  counter(readings, "requests", metrics.requests, labels);
  counter(readings, "refused", metrics.refused, labels);
  counter(readings, "received_bytes", metrics.received, labels);
  counter(readings, "sent_bytes", metrics.sent, labels);
  read_durations(readings, metrics, worker);
}

void read_workers(Readings& readings, const WorkersServer& server) {
  for (unsigned i = 0; i < server.workers(); ++i)
    read_server(readings, server.metrics(i), std::to_string(i));
}

void read_client(Readings& readings, const ClientMetrics& metrics) {
  gauge(readings, "connections", metrics.connections);
  gauge(readings, "idle", metrics.idle);
  gauge(readings, "calls", metrics.calls);
  gauge(readings, "waiting", metrics.waiting);
  counter(readings, "requests", metrics.requests);
  counter(readings, "reused", metrics.reused);
  counter(readings, "repeated", metrics.repeated);
  counter(readings, "redirected", metrics.redirected);
  counter(readings, "retried", metrics.retried);
  counter(readings, "not retried", metrics.not_retried);
}

void read_gateway(Readings& readings, const Gateway& gateway) {
  const GatewayMetrics metrics = gateway.metrics();
  gauge(readings, "forwarding", metrics.forwarding);
  gauge(readings, "tunnels", metrics.tunnels);
  counter(readings, "forwarded", metrics.forwarded);
  counter(readings, "unreached", metrics.unreached);
  counter(readings, "failed", metrics.failed);
  counter(readings, "retried", metrics.retried);
  for (const UpstreamMetrics& each : gateway.upstreams()) {
    const auto labels = {Label{"upstream", each.url}};
    gauge(readings, "upstream_available", each.is_available, labels);
    gauge(readings, "upstream_healthy", each.is_healthy, labels);
    gauge(readings, "upstream_forwarding", each.forwarding, labels);
    counter(readings, "upstream_forwarded", each.forwarded, labels);
    counter(readings, "upstream_failed", each.failed, labels);
    counter(readings, "upstream_outages", each.outages, labels);
    counter(readings, "upstream_checks", each.checks, labels);
    counter(readings, "upstream_failed_checks", each.failed_checks, labels);
  }
}

void read_pool(Readings& readings, const ThreadPool& pool) {
  gauge(readings, "threads", pool.threads());
  gauge(readings, "queued", pool.queued());
}

}  // namespace

Inspector::Inspector() = default;
Inspector::Inspector(std::unique_ptr<InspectorCore> core) : core_(std::move(core)) {}
Inspector::Inspector(Inspector&& other) noexcept = default;
Inspector& Inspector::operator=(Inspector&& other) noexcept = default;
Inspector::~Inspector() = default;

Result<Inspector> Inspector::create(Loop& loop, InspectorOptions options) {
  auto core = InspectorCore::create(loop, std::move(options));
  if (!core) return std::unexpected(core.error());
  return Inspector(std::move(*core));
}

void Inspector::add(std::string_view name, Loop& loop) { core_->add(name, loop); }
void Inspector::add(std::string_view name, Workers& workers) { core_->add(name, workers); }
void Inspector::add(std::string_view name, const Server& server) {
  core_->add(name, "http_server",
             [&server](Readings& readings) { read_server(readings, server.metrics()); });
}
void Inspector::add(std::string_view name, const WorkersServer& server) {
  core_->add(name, "http_server",
             [server](Readings& readings) { read_workers(readings, server); });
}
void Inspector::add(std::string_view name, const Client& client) {
  core_->add(name, "http_client",
             [&client](Readings& readings) { read_client(readings, client.metrics()); });
}
void Inspector::add(std::string_view name, const Gateway& gateway) {
  core_->add(name, "http_gateway",
             [&gateway](Readings& readings) { read_gateway(readings, gateway); });
}
void Inspector::add(std::string_view name, const ThreadPool& pool) {
  core_->add(name, "thread_pool", [&pool](Readings& readings) { read_pool(readings, pool); });
}
void Inspector::add(std::string_view name, OnRead read) {
  core_->add(name, "program", std::move(read));
}
void Inspector::remove(std::string_view name) { core_->remove(name); }

Result<Address> Inspector::listen(const Address& address) { return core_->listen(address); }
void Inspector::serve(Exchange exchange) { core_->serve(std::move(exchange)); }
std::size_t Inspector::viewers() const { return core_->viewers(); }

}  // namespace spate::http
