// WorkersServer, and serve() on Workers.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "http/codec/system_error.h"
#include "http/server/server_core.h"
#include "http/server/worker_server.h"
#include "http/server/workers_server_state.h"
#include "spate/http/server.h"

namespace spate::http {

// ---- the shared state

WorkersServerState::WorkersServerState(Workers& workers, const ServerOptions& options)
    : workers_(workers),
      slots_(workers.count()),
      options_(std::make_shared<const ServerOptions>(options)) {}

Result<WorkersServer> WorkersServerState::serve(Workers& workers, const Address& address,
                                                MakeService make, const ServerOptions& options,
                                                const WorkersListenOptions& how) {
  if (!ServerCore::are_valid(options)) return std::unexpected(system_error(EINVAL));
  const auto state = std::make_shared<WorkersServerState>(workers, options);
  auto server = spate::WorkersServer::serve(
      workers, address,
      [state, make = std::move(make)](Loop& loop) { return state->make_server(loop, make); },
      how.balance, ServerCore::bounded(how.listen));
  if (!server) return std::unexpected(server.error());
  state->server_ = std::move(*server);
  return WorkersServer(state);
}

std::unique_ptr<DrainableService> WorkersServerState::make_server(Loop& loop,
                                                                  const MakeService& make) {
  std::unique_ptr<Service> service = make(loop);
  if (service == nullptr) return nullptr;
  return std::unique_ptr<DrainableService>(new (std::nothrow) WorkerServer(
      loop, workers_.index_of(loop), shared_from_this(), std::move(service)));
}

ServerMetrics WorkersServerState::metrics(unsigned worker) const {
  const std::scoped_lock lock(mutex_);
  const Slot& slot = slots_[worker];
  ServerMetrics sum = slot.past;
  for (const ServerCounters* counters : slot.counters) sum += counters->read();
  return sum;
}

void WorkersServerState::add(unsigned worker, const ServerCounters& counters) {
  const std::scoped_lock lock(mutex_);
  slots_[worker].counters.push_back(&counters);
}

void WorkersServerState::remove(unsigned worker, const ServerCounters& counters) {
  const std::scoped_lock lock(mutex_);
  Slot& slot = slots_[worker];
  std::erase(slot.counters, &counters);
  ServerMetrics last = counters.read();
  last.connections = last.exchanges = 0;  // They are closed with the server.
  slot.past += last;
}

std::error_code WorkersServerState::reload(ServerOptions options) {
  if (!ServerCore::are_valid(options)) return system_error(EINVAL);
  if (server_.has_stopped()) return system_error(ECANCELED);
  const std::scoped_lock lock(mutex_);
  options_ = std::make_shared<const ServerOptions>(std::move(options));
  version_.fetch_add(1, std::memory_order_release);
  return {};
}

WorkersServerState::Options WorkersServerState::options() const {
  const std::scoped_lock lock(mutex_);
  return options_;
}

// ---- the handle

WorkersServer::WorkersServer() = default;
WorkersServer::WorkersServer(std::shared_ptr<WorkersServerState> state)
    : state_(std::move(state)) {}
WorkersServer::WorkersServer(const WorkersServer& other) = default;
WorkersServer& WorkersServer::operator=(const WorkersServer& other) = default;
WorkersServer::~WorkersServer() = default;

const Address& WorkersServer::address() const { return state_->server().address(); }
unsigned WorkersServer::workers() const { return state_->server().workers(); }
ServerMetrics WorkersServer::metrics(unsigned worker) const { return state_->metrics(worker); }

ServerMetrics WorkersServer::metrics() const {
  ServerMetrics sum;
  for (unsigned i = 0; i < workers(); ++i) sum += metrics(i);
  return sum;
}

void WorkersServer::drain(Nanos grace) const { state_->server().drain(grace); }

std::error_code WorkersServer::drain(Nanos grace, Loop& loop, Function<void()> done) const {
  return state_->server().drain(grace, loop, std::move(done));
}

std::error_code WorkersServer::reload(ServerOptions options) const {
  return state_->reload(std::move(options));
}

std::error_code WorkersServer::reload_tls(TlsContext tls) const {
  ServerOptions options = *state_->options();
  options.tls = std::move(tls);
  return state_->reload(std::move(options));
}

Result<WorkersServer> serve(Workers& workers, const Address& address, MakeService make,
                            const ServerOptions& options, const WorkersListenOptions& how) {
  return WorkersServerState::serve(workers, address, std::move(make), options, how);
}

}  // namespace spate::http
