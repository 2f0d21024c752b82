#include "spate/net/workers_server.h"

#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "net/workers/drain_notice.h"
#include "spate/net/stream.h"

namespace spate {

// The state that the handles of a server and the workers share.
class WorkersServerCore : public std::enable_shared_from_this<WorkersServerCore> {
 public:
  static Result<WorkersServer> serve(Workers& workers, const Address& address,
                                     WorkersServer::MakeService make, Balance balance,
                                     const ListenOptions& options);

  explicit WorkersServerCore(Workers& workers) : workers_(workers), services_(workers.count()) {}

  const Address& address() const { return address_; }
  unsigned workers() const { return static_cast<unsigned>(services_.size()); }
  std::size_t connections(unsigned worker) const;
  bool has_stopped() const;
  void close() const;
  void drain(Nanos grace, const DrainTicket& ticket);

 private:
  class Ending;
  class Host;

  std::unique_ptr<WorkerService> make_host(Loop& loop, const WorkersServer::MakeService& make);
  // Called by Workers::stop(), after all threads have ended.
  void end();

  Workers& workers_;  // Used on the threads of workers, and with `listener_`.
  Address address_;
  std::vector<DrainableService*> services_;  // Each is used on its worker's thread.

  mutable std::mutex mutex_;
  std::optional<WorkersListener> listener_;  // Empty after Workers::stop().
};

// Ends the core when it is destroyed: by Workers::stop(), or when listening fails.
class WorkersServerCore::Ending {
 public:
  explicit Ending(std::shared_ptr<WorkersServerCore> core) : core_(std::move(core)) {}
  Ending(Ending&& other) noexcept = default;
  Ending& operator=(Ending&&) = delete;
  ~Ending() {
    if (core_ != nullptr) core_->end();
  }
  WorkersServerCore& core() const { return *core_; }

 private:
  std::shared_ptr<WorkersServerCore> core_;
};

// A worker's service, which the core finds while it exists.
class WorkersServerCore::Host final : public WorkerService {
 public:
  Host(std::shared_ptr<WorkersServerCore> core, unsigned worker,
       std::unique_ptr<DrainableService> service)
      : core_(std::move(core)), worker_(worker), service_(std::move(service)) {
    core_->services_[worker_] = service_.get();
  }
  ~Host() override { core_->services_[worker_] = nullptr; }

  void on_accept(Stream stream, const Address& peer) override {
    service_->on_accept(std::move(stream), peer);
  }
  void on_drain(Nanos grace) override { service_->on_drain(grace); }
  void on_end() override { service_->on_end(); }

 private:
  const std::shared_ptr<WorkersServerCore> core_;
  const unsigned worker_;
  const std::unique_ptr<DrainableService> service_;
};

Result<WorkersServer> WorkersServerCore::serve(Workers& workers, const Address& address,
                                               WorkersServer::MakeService make, Balance balance,
                                               const ListenOptions& options) {
  const auto core = std::make_shared<WorkersServerCore>(workers);
  auto listener = workers.open(
      address,
      [ending = Ending(core), make = std::move(make)](Loop& loop) {
        return ending.core().make_host(loop, make);
      },
      balance, options);
  if (!listener) return std::unexpected(listener.error());
  const std::scoped_lock lock(core->mutex_);
  core->address_ = listener->address();
  core->listener_ = std::move(*listener);
  return WorkersServer(core);
}

std::unique_ptr<WorkerService> WorkersServerCore::make_host(
    Loop& loop, const WorkersServer::MakeService& make) {
  std::unique_ptr<DrainableService> service = make(loop);
  if (service == nullptr) return nullptr;
  return std::unique_ptr<WorkerService>(
      new (std::nothrow) Host(shared_from_this(), workers_.index_of(loop), std::move(service)));
}

void WorkersServerCore::end() {
  const std::scoped_lock lock(mutex_);
  listener_.reset();
}

std::size_t WorkersServerCore::connections(unsigned worker) const {
  const std::scoped_lock lock(mutex_);
  return listener_ ? listener_->connections(worker) : 0;
}

bool WorkersServerCore::has_stopped() const {
  const std::scoped_lock lock(mutex_);
  return !listener_;
}

void WorkersServerCore::close() const {
  const std::scoped_lock lock(mutex_);
  if (listener_) listener_->close();
}

// Each worker drops its ticket when it has drained, or has ended.
void WorkersServerCore::drain(Nanos grace, const DrainTicket& ticket) {
  const std::scoped_lock lock(mutex_);
  if (!listener_) return;
  listener_->close([self = shared_from_this(), grace, ticket](Loop& loop) {
    DrainableService* service = self->services_[self->workers_.index_of(loop)];
    if (service != nullptr) service->drain(grace, ticket);
  });
}

// ---- the handle

WorkersServer::WorkersServer() = default;
WorkersServer::WorkersServer(std::shared_ptr<WorkersServerCore> core) : core_(std::move(core)) {}
WorkersServer::WorkersServer(const WorkersServer& other) = default;
WorkersServer& WorkersServer::operator=(const WorkersServer& other) = default;
WorkersServer::~WorkersServer() = default;

const Address& WorkersServer::address() const { return core_->address(); }
unsigned WorkersServer::workers() const { return core_->workers(); }
std::size_t WorkersServer::connections(unsigned worker) const { return core_->connections(worker); }

std::size_t WorkersServer::connections() const {
  std::size_t sum = 0;
  for (unsigned i = 0; i < workers(); ++i) sum += connections(i);
  return sum;
}

bool WorkersServer::has_stopped() const { return core_->has_stopped(); }
void WorkersServer::close() const { core_->close(); }
void WorkersServer::drain(Nanos grace) const { core_->drain(grace, nullptr); }

std::error_code WorkersServer::drain(Nanos grace, Loop& loop, Function<void()> done) const {
  const Result<DrainTicket> ticket = notify_when_drained(loop, std::move(done));
  if (!ticket) return ticket.error();
  core_->drain(grace, *ticket);
  return {};
}

Result<WorkersServer> WorkersServer::serve(Workers& workers, const Address& address,
                                           MakeService make, Balance balance,
                                           const ListenOptions& options) {
  return WorkersServerCore::serve(workers, address, std::move(make), balance, options);
}

}  // namespace spate
