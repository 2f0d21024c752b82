#include "spate/http/inspector.h"

#include <utility>

#include "http/inspector/inspector_core.h"
#include "spate/http/client.h"
#include "spate/offload.h"

namespace spate::http {

namespace {

template <class Number>
void gauge(Readings& readings, std::string_view name, Number value) {
  readings.gauge(name, static_cast<double>(value));
}
template <class Number>
void counter(Readings& readings, std::string_view name, Number value) {
  readings.counter(name, static_cast<double>(value));
}

void read_server(Readings& readings, const ServerMetrics& metrics) {
  gauge(readings, "connections", metrics.connections);
  gauge(readings, "exchanges", metrics.exchanges);
  counter(readings, "accepted", metrics.accepted);
  counter(readings, "requests", metrics.requests);
  counter(readings, "refused", metrics.refused);
  counter(readings, "received_bytes", metrics.received);
  counter(readings, "sent_bytes", metrics.sent);
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
void Inspector::add(std::string_view name, const Client& client) {
  core_->add(name, "http_client",
             [&client](Readings& readings) { read_client(readings, client.metrics()); });
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
