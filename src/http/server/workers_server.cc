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

// Ends the state when it is destroyed: by Workers::stop(), or when listening fails.
class WorkersServerState::Ending {
 public:
  explicit Ending(std::shared_ptr<WorkersServerState> state) : state_(std::move(state)) {}
  Ending(Ending&& other) noexcept = default;
  Ending& operator=(Ending&&) = delete;
  ~Ending() {
    if (state_ != nullptr) state_->end();
  }
  WorkersServerState& state() const { return *state_; }

 private:
  std::shared_ptr<WorkersServerState> state_;
};

Result<WorkersServer> WorkersServerState::serve(Workers& workers, const Address& address,
                                                MakeService make, const ServerOptions& options,
                                                const WorkersListenOptions& how) {
  if (!ServerCore::are_valid(options)) return std::unexpected(system_error(EINVAL));
  const auto state = std::make_shared<WorkersServerState>(workers, options);
  auto listener = workers.open(
      address,
      [ending = Ending(state), make = std::move(make)](Loop& loop) {
        return ending.state().make_server(loop, make);
      },
      how.balance, ServerCore::bounded(how.listen));
  if (!listener) return std::unexpected(listener.error());
  const std::scoped_lock lock(state->listener_mutex_);
  state->address_ = listener->address();
  state->listener_ = std::move(*listener);
  return WorkersServer(state);
}

void WorkersServerState::end() {
  const std::scoped_lock lock(listener_mutex_);
  listener_.reset();
}

std::unique_ptr<WorkerService> WorkersServerState::make_server(Loop& loop,
                                                               const MakeService& make) {
  std::unique_ptr<Service> service = make(loop);
  if (service == nullptr) return nullptr;
  return std::unique_ptr<WorkerService>(new (std::nothrow) WorkerServer(
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

// Each worker drops its ticket when it has drained, or has ended.
void WorkersServerState::drain(Nanos grace, const DrainTicket& ticket) {
  const std::scoped_lock lock(listener_mutex_);
  if (!listener_) return;
  listener_->close([self = shared_from_this(), grace, ticket](Loop& loop) {
    WorkerServer* host = self->slots_[self->workers_.index_of(loop)].host;
    if (host != nullptr) host->drain(grace, ticket);
  });
}

std::error_code WorkersServerState::reload(ServerOptions options) {
  if (!ServerCore::are_valid(options)) return system_error(EINVAL);
  const std::scoped_lock lock(listener_mutex_, mutex_);
  if (!listener_) return system_error(ECANCELED);
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

const Address& WorkersServer::address() const { return state_->address(); }
unsigned WorkersServer::workers() const { return state_->workers(); }
ServerMetrics WorkersServer::metrics(unsigned worker) const { return state_->metrics(worker); }

ServerMetrics WorkersServer::metrics() const {
  ServerMetrics sum;
  for (unsigned i = 0; i < workers(); ++i) sum += metrics(i);
  return sum;
}

void WorkersServer::drain(Nanos grace) const { state_->drain(grace, nullptr); }

std::error_code WorkersServer::drain(Nanos grace, Loop& loop,
                                     std::move_only_function<void()> done) const {
  const Result<DrainTicket> ticket = notify_when_drained(loop, std::move(done));
  if (!ticket) return ticket.error();
  state_->drain(grace, *ticket);
  return {};
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
