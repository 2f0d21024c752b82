#include "spate/net/workers.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <vector>

#include "core/ownership.h"
#include "core/user_code.h"
#include "net/listen/listening_socket.h"
#include "net/socket_address.h"
#include "net/stream/connection.h"
#include "net/workers/team.h"
#include "spate/assert.h"
#include "sys/socket.h"
#include "sys/thread.h"

namespace spate {

namespace {

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

// ---- Service

void Workers::Service::leave(unsigned worker) {
  (*connections_)[worker].fetch_sub(1, std::memory_order_relaxed);
  if (limit_.leave()) team_.resume(*this);
}

// ---- Worker

Result<std::unique_ptr<Workers::Worker>> Workers::Worker::make(unsigned index,
                                                               const LoopOptions& options) {
  Result<std::unique_ptr<Loop>> loop = Loop::create(options);
  if (!loop) return std::unexpected(loop.error());
  std::unique_ptr<Worker> worker(new Worker(index));
  worker->loop_ = std::move(*loop);
  if (LoopStreams::of(*worker->loop_) == nullptr) return std::unexpected(sys::error_code(-ENOMEM));
  return worker;
}

Workers::Worker::~Worker() { end(); }

void Workers::Worker::end() {
  draining_ = false;
  limit_.reset();
  acceptors_.clear();
  if (loop_ != nullptr) end_loop(*loop_);
  clients_.clear();
  connections_ = 0;
}

long Workers::Worker::start(std::string_view name, std::optional<unsigned> processor) {
  loop_->ref();
  const long result =
      thread_.start([](void* worker) { static_cast<Worker*>(worker)->run(); }, this);
  if (result < 0) return result;
  thread_.set_name(name);
  if (processor) thread_.pin(*processor);
  return 0;
}

// Runs the loop until finish(). User code may stop the loop, or drop the reference that keeps it
// running, and the wait may fail (no memory). Posts are called, and connections served,
// nevertheless.
void Workers::Worker::run() {
  current_ = this;
  while (!is_finished_) {
    if (loop_->run()) {
      sys::sleep(kRest);
    } else if (!loop_->has_work()) {
      loop_->ref();
    }
  }
  for (Clients& clients : clients_) clients.drop_host();
  has_ended_ = true;
}

// Returns how many connections only wait for their clients to close. Such a client was sent all,
// and may keep its socket open.
std::size_t Workers::Worker::lingering() const {
  std::size_t count = 0;
  const auto is_client = [](const Connection& connection) {
    return [&connection](const Clients& clients) {
      return &connection.transport().base() == &clients.transport();
    };
  };
  LoopStreams::of(*loop_)->show_all([&](const Connection& connection) {
    count += connection.is_lingering() && std::ranges::any_of(clients_, is_client(connection));
  });
  return count;
}

// Checks whether all connections have ended before the rest are reset.
void Workers::Worker::finish() {
  if (std::exchange(is_finished_, true)) return;
  has_drained_ = is_drained() || connections() == lingering();
  if (!is_drained()) for_each_host([](WorkerService& host) { host.on_end(); });
  loop_->stop_all();
}

std::error_code Workers::Worker::listen(Service& service, sys::Descriptor& socket,
                                        const ListenOptions& options,
                                        SocketAcceptor::OnSocket accept) {
  SocketAcceptor* acceptor =
      Acceptor::make<SocketAcceptor>(*loop_, socket, options, std::move(accept));
  if (acceptor == nullptr) return sys::error_code(-ENOMEM);
  acceptors_.emplace_back(&service, std::unique_ptr<SocketAcceptor, Abandon>(acceptor));
  if (service.rests_on()) acceptor->pause();
  return {};
}

void Workers::Worker::stop_listening(bool serves_backlog) {
  for (const ServiceAcceptor& post : acceptors_) {
    if (serves_backlog && !post.service->rests_on()) post.acceptor->finish();
  }
  acceptors_.clear();
}

void Workers::Worker::stop_listening(const Service& service, bool serves_backlog) {
  const auto post = std::ranges::find(acceptors_, &service, &ServiceAcceptor::service);
  if (post == acceptors_.end()) return;
  if (serves_backlog && !post->service->rests_on()) post->acceptor->finish();
  acceptors_.erase(post);
}

SocketAcceptor* Workers::Worker::acceptor_of(const Service& service) {
  const auto post = std::ranges::find(acceptors_, &service, &ServiceAcceptor::service);
  return post == acceptors_.end() ? nullptr : post->acceptor.get();
}

void Workers::Worker::pause(Service& service) {
  if (SocketAcceptor* acceptor = acceptor_of(service)) acceptor->pause();
}

void Workers::Worker::resume(Service& service) {
  if (service.rests_on()) return;
  if (SocketAcceptor* acceptor = acceptor_of(service)) acceptor->resume();
}

// nullptr when memory ran out.
Workers::Worker::Clients* Workers::Worker::clients_of(Service& service) {
  for (Clients& clients : clients_) {
    if (clients.belong_to(service)) return &clients;
  }
  Clients& clients = clients_.emplace_back(*this, service, *LoopStreams::of(*loop_));
  if (clients.is_complete()) return &clients;
  clients_.pop_back();
  return nullptr;
}

void Workers::Worker::take(Service& service, sys::Descriptor socket, const Address& peer) {
  Clients* clients = clients_of(service);
  Connection* connection = clients == nullptr ? nullptr : clients->transport().adopt(socket);
  if (connection == nullptr) return leave(service);
  Stream stream = Connection::stream_of(connection);
  call_user("Workers", [&] { clients->host()->on_accept(std::move(stream), peer); });
}

void Workers::Worker::leave(Service& service) {
  const bool was_last = connections_.fetch_sub(1) == 1;
  service.leave(index_);
  if (was_last && draining_) finish();
}

void Workers::Worker::lose_one(Service& service) {
  connections_.fetch_sub(1);
  service.leave(index_);
}

void Workers::Worker::drain(Nanos grace, const OnLoop& on_drain) {
  draining_ = true;
  if (grace > Nanos{0}) {
    for_each_host([grace](WorkerService& host) { host.on_drain(grace); });
    if (on_drain) call_user("Workers", [&] { on_drain(*loop_); });
  }
  if (is_drained() || grace <= Nanos{0}) return finish();
  limit_.emplace(*loop_, [this] { finish(); });
  if (!limit_->start(grace)) finish();
}

// ---- all workers

std::size_t Workers::Team::choose(Balance balance, const Address& peer) {
  if (balance == Balance::peer_hash) return peer.unmapped().host_hash() % workers.size();
  if (balance != Balance::least_connections) return next_++ % workers.size();
  const auto fewest = std::ranges::min_element(
      workers, {}, [](const std::unique_ptr<Worker>& worker) { return worker->connections(); });
  return static_cast<std::size_t>(fewest - workers.begin());
}

// Calls `function` on each worker's thread, and waits until all have returned. False if memory ran
// out and some were not called; with `insist`, waits for memory instead.
template <class Function>
bool Workers::Team::on_each(Function function, bool insist) {
  sys::Latch done(static_cast<int>(workers.size()));
  bool all = true;
  for (const std::unique_ptr<Worker>& worker : workers) {
    const auto task = [&, worker = worker.get()] {
      function(*worker);
      done.count_down();
    };
    bool posted = worker->post(task);
    while (!posted && insist) {
      sys::yield();
      posted = worker->post(task);
    }
    if (!posted) done.count_down();
    all = all && posted;
  }
  done.wait();
  return all;
}

void Workers::Team::resume(Service& service) {
  for (const std::unique_ptr<Worker>& worker : workers)
    worker->post([&service, worker = worker.get()] { worker->resume(service); });
}

// Returns when all accepted connections have reached their workers. A task that the first worker
// posts to another one is called after the connections that it has passed on, because posts of one
// thread keep their order.
void Workers::Team::stop_listening(bool serves_backlog) {
  on_each([&](Worker& worker) { worker.stop_listening(serves_backlog); }, true);
  sys::Latch arrived(static_cast<int>(workers.size()));
  const auto notify_all = [&](Worker& first) {
    if (&first != workers.front().get()) return;
    for (const std::unique_ptr<Worker>& worker : workers) {
      while (!worker->post([&arrived] { arrived.count_down(); })) sys::yield();
    }
  };
  on_each(notify_all, true);
  arrived.wait();
}

bool Workers::Team::stop(Nanos grace, const OnLoop& on_drain) {
  if (std::exchange(has_stopped_, true)) return has_drained_;
  // First, so that a drained worker gets no more connections.
  stop_listening(grace > Nanos{0});
  on_each([&](Worker& worker) { worker.drain(grace, on_drain); }, true);
  for (const std::unique_ptr<Worker>& worker : workers) {
    worker->join();
    has_drained_ = worker->has_drained() && has_drained_;
  }
  for (const std::unique_ptr<Worker>& worker : workers) worker->end();
  const bool has_drained = has_drained_;
  const std::list<Service> gone = std::move(services_);  // Their functions may own the Workers.
  return has_drained;
}

// If the first worker accepts for all, it stops before the others are asked. Its posts keep their
// order, so `then` is called after the connections that it has passed on.
void Workers::Team::close(Service& service, bool is_shared, const OnLoop& then) {
  const auto close_all = [this, &service, then] {
    for (const std::unique_ptr<Worker>& each : workers) {
      each->post_insisting([&worker = *each, &service, then] {
        worker.stop_listening(service, true);
        if (then) then(worker.loop());
      });
    }
  };
  if (!is_shared) return close_all();
  Worker& first = *workers.front();
  first.post_insisting([&first, &service, close_all] {
    first.stop_listening(service, true);
    close_all();
  });
}

// Makes a listening socket per worker; the kernel distributes the connections.
Result<WorkersListener> Workers::Team::listen_everywhere(const Address& address, MakeService make,
                                                 const ListenOptions& options) {
  auto sockets = open_listening_group(address, options, workers.size());
  if (!sockets) return std::unexpected(sockets.error());
  const Address bound = local_address_of(sockets->front().get());
  Service& service = serve(std::move(make), options);
  std::mutex mutex;
  std::error_code error;
  const bool done = on_each([&](Worker& worker) {
    const std::scoped_lock lock(mutex);
    const auto accept = [&worker, &service](sys::Descriptor pending, const Address& peer) {
      worker.expect_one(service);
      if (service.enter()) worker.pause(service);
      worker.take(service, std::move(pending), peer);
    };
    sys::Descriptor socket = std::move(sockets->back());
    sockets->pop_back();
    if (const auto failure = worker.listen(service, socket, options, accept)) error = failure;
  });
  if (!done && !error) error = sys::error_code(-ENOMEM);
  if (!error) return WorkersListener(*this, service, bound, false);
  on_each([&](Worker& worker) { worker.stop_listening(service, false); }, true);
  return std::unexpected(error);
}

Result<WorkersListener> Workers::Team::listen_and_share(const Address& address, MakeService make,
                                                        Balance balance,
                                                        const ListenOptions& options) {
  auto socket = open_listening_socket(address, options);
  if (!socket) return std::unexpected(socket.error());
  return share(*socket, std::move(make), balance, options);
}

Result<WorkersListener> Workers::Team::share(sys::Descriptor& socket, MakeService make,
                                             Balance balance, const ListenOptions& options) {
  const Address bound = local_address_of(socket.get());
  Service& service = serve(std::move(make), options);
  std::error_code error = sys::error_code(-ENOMEM);
  on_each([&](Worker& worker) {
    if (&worker != workers.front().get()) return;
    const auto accept = [this, &worker, &service, balance](sys::Descriptor pending,
                                                           const Address& peer) {
      if (service.enter()) worker.pause(service);
      hand_over(*workers[choose(balance, peer)], service, std::move(pending), peer);
    };
    error = worker.listen(service, socket, options, accept);
  });
  if (error) return std::unexpected(error);
  return WorkersListener(*this, service, bound, true);
}

// Counts the connection now, so that the next choice considers it.
void Workers::Team::hand_over(Worker& worker, Service& service, sys::Descriptor socket,
                              const Address& peer) {
  worker.expect_one(service);
  const bool posted = worker.post([&worker, &service, socket = std::move(socket), peer]() mutable {
    worker.take(service, std::move(socket), peer);
  });
  if (!posted) worker.lose_one(service);
}

namespace {

[[maybe_unused]] constexpr const char* kOnAWorker =
    "a worker cannot wait for all workers: call it on the thread that made them";

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
  if (balance != Balance::reuse_port || !address.is_ip() || options.socket >= 0)
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
