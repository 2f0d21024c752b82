#include "spate/net/workers.h"

#include <cerrno>
#include <optional>

#include "net/listen/listening_socket.h"
#include "net/workers/team.h"
#include "spate/assert.h"
#include "sys/socket_calls.h"
#include "sys/thread.h"

namespace spate {

namespace {

[[maybe_unused]] constexpr const char* kOnAWorker =
    "a worker cannot wait for all workers: call it on the thread that made them";

// Passes connections to one callback for all workers.
class CallbackService final : public WorkerService {
 public:
  explicit CallbackService(std::shared_ptr<const Workers::OnAccept> callback)
      : callback_(std::move(callback)) {}

  void on_accept(Stream stream, const Address& peer) override {
    (*callback_)(std::move(stream), peer);
  }

 private:
  const std::shared_ptr<const Workers::OnAccept> callback_;
};

Workers::MakeService service_of(Workers::OnAccept on_accept) {
  auto callback = std::make_shared<const Workers::OnAccept>(std::move(on_accept));
  return [callback](Loop&) { return std::make_unique<CallbackService>(callback); };
}

}  // namespace

Workers::Workers(std::unique_ptr<Team> team) : team_(std::move(team)) {}

Workers::~Workers() { stop(Nanos{0}); }

bool Workers::stop(Nanos grace, const OnLoop& on_drain) {
  SPATE_ASSERT(!team_->is_calling(), kOnAWorker);
  return team_->stop(grace, on_drain);
}

Result<std::unique_ptr<Workers>> Workers::create(const WorkersOptions& options) {
  auto team = std::make_unique<Team>();
  const unsigned threads = options.threads > 0 ? options.threads : sys::processors();
  for (unsigned i = 0; i < threads; ++i) {
    auto worker = Worker::make(i, options.loop);
    if (!worker) return std::unexpected(worker.error());
    team->workers.push_back(std::move(*worker));
  }
  std::unique_ptr<Workers> workers(new Workers(std::move(team)));
  for (unsigned i = 0; i < threads; ++i) {
    const std::string name = options.name + '/' + std::to_string(i);
    const long result = workers->team_->workers[i]->start(
        name, options.pin ? std::optional<unsigned>(i) : std::nullopt);
    if (result < 0) {
      workers->team_->workers.resize(i);
      return std::unexpected(sys::error_code(result));
    }
  }
  return workers;
}

unsigned Workers::count() const { return static_cast<unsigned>(team_->workers.size()); }
Loop& Workers::loop(unsigned worker) const { return team_->workers[worker]->loop(); }
unsigned Workers::index_of(const Loop& loop) const {
  unsigned index = 0;
  while (index < count() && &this->loop(index) != &loop) ++index;
  return index;
}
std::size_t Workers::connections(unsigned worker) const {
  return team_->workers[worker]->connections();
}

bool Workers::post(unsigned worker, Job task) {
  return team_->workers[worker]->post(std::move(task));
}

bool Workers::post_to_all(const OnLoop& task) {
  bool done = true;
  for (const std::unique_ptr<Worker>& worker : team_->workers)
    done = worker->post([&loop = worker->loop(), task] { task(loop); }) && done;
  return done;
}

Result<Address> Workers::listen(const Address& address, OnAccept on_accept, Balance balance,
                                const ListenOptions& options) {
  return listen(address, service_of(std::move(on_accept)), balance, options);
}

Result<Address> Workers::listen(const Address& address, MakeService make, Balance balance,
                                const ListenOptions& options) {
  const auto listener = open(address, std::move(make), balance, options);
  if (!listener) return std::unexpected(listener.error());
  return listener->address();
}

Result<WorkersListener> Workers::open(const Address& address, MakeService make, Balance balance,
                                      const ListenOptions& options) {
  SPATE_ASSERT(!team_->is_calling(), kOnAWorker);
  if (team_->has_stopped()) return std::unexpected(sys::error_code(-ECANCELED));
  const bool is_shared = balance == Balance::reuse_port && sys::kBalancesSharedPort;
  if (!is_shared || !address.is_ip() || options.socket >= 0)
    return team_->listen_and_share(address, std::move(make), balance, options);
  return team_->listen_everywhere(address, std::move(make), options);
}

Result<Address> Workers::adopt(int fd, OnAccept on_accept, Balance balance,
                               const ListenOptions& options) {
  SPATE_ASSERT(!team_->is_calling(), kOnAWorker);
  if (team_->has_stopped()) return std::unexpected(sys::error_code(-ECANCELED));
  if (const auto error = prepare_listening_socket(fd, options)) return std::unexpected(error);
  sys::Descriptor socket(fd);
  const auto listener = team_->share(socket, service_of(std::move(on_accept)), balance, options);
  if (listener) return listener->address();
  socket.release();
  return std::unexpected(listener.error());
}

WorkersListener::WorkersListener(Workers::Team& team, Workers::Service& service,
                                 const Address& address, bool is_shared)
    : team_(&team),
      service_(&service),
      connections_(service.connections()),
      address_(address),
      is_shared_(is_shared) {}

void WorkersListener::close(const Workers::OnLoop& then) const {
  team_->close(*service_, is_shared_, then);
}

}  // namespace spate
