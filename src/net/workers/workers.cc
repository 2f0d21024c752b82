#include "spate/net/workers.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <list>
#include <mutex>
#include <optional>
#include <vector>

#include "core/ownership.h"
#include "core/user_code.h"
#include "net/listen/acceptor.h"
#include "net/listen/listening_socket.h"
#include "net/listen/shared_limit.h"
#include "net/socket_address.h"
#include "net/stream/connection.h"
#include "net/stream/counted_transport.h"
#include "net/stream/hub.h"
#include "spate/assert.h"
#include "spate/timer.h"
#include "sys/socket.h"
#include "sys/thread.h"

namespace spate {

namespace {

// A callback for all workers.
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

// Passes each connection to a worker, which counts it.
class Door final : public Acceptor {
 public:
  using OnSocket = std::move_only_function<void(sys::Descriptor socket, const Address& peer)>;

 private:
  friend class Acceptor;

  Door(Hub& hub, sys::Descriptor socket, const ListenOptions& options, OnSocket on_socket)
      : Acceptor(hub, std::move(socket), options), on_socket_(std::move(on_socket)) {}

  bool is_full() const override { return false; }
  bool hand_over(sys::Descriptor& socket, const Address& peer) override {
    on_socket_(std::move(socket), peer);
    return true;
  }

  OnSocket on_socket_;
};

}  // namespace

// One listen(), shared by all workers. Its connections are counted on any thread.
class Workers::Service {
 public:
  Service(Team& team, MakeService make, std::size_t max)
      : team_(team), make_(std::move(make)), limit_(max) {}

  std::unique_ptr<WorkerService> make(Loop& loop) const {
    return call_user("Workers", [&] { return make_(loop); });
  }
  // A connection is on its way to a worker. True if accepting must pause now.
  bool enter() { return limit_.enter(); }
  void leave();
  // Whether there is still no room; if so, another leave() resumes.
  bool rests_on() { return limit_.rests_on(); }

 private:
  Team& team_;
  const MakeService make_;
  SharedLimit limit_;
};

// One thread and its loop. All but what is atomic belongs to that thread while it runs.
class Workers::Worker {
 public:
  static Result<std::unique_ptr<Worker>> make(const LoopOptions& options);
  ~Worker();

  long start(std::string_view name, std::optional<unsigned> processor);
  Loop& loop() const { return *loop_; }
  std::size_t connections() const { return connections_.load(std::memory_order_relaxed); }
  // Any thread. False when memory runs out, or if the thread has ended.
  bool post(Job task) { return !has_ended_.load() && loop_->post(std::move(task)); }
  // Whether this is the calling thread.
  bool is_calling() const { return current_ == this; }

  // Accepts, and passes each connection to a worker. Takes over `socket`, unless it fails.
  std::error_code listen(Service& service, sys::Descriptor& socket, const ListenOptions& options,
                         Door::OnSocket accept);
  void pause(Service& service);
  void resume(Service& service);
  // A new connection is on its way to this worker.
  void expect_one() { connections_.fetch_add(1, std::memory_order_relaxed); }
  void take(Service& service, sys::Descriptor socket, const Address& peer);
  void leave(Service& service);
  // An expected connection does not arrive after all. Any thread.
  void lose_one(Service& service);

  // With `serves_backlog`, accepts what is in the backlog first.
  void stop_listening(bool serves_backlog);
  void stop_listening(const Service& service) {
    posts_.remove_if([&](const Post& post) { return post.service == &service; });
  }
  void drain(Nanos grace, const OnLoop& on_drain);
  void join() { thread_.join(); }
  // The thread has been joined: closes what is left. The loop is kept.
  void end();
  bool is_drained() const { return connections() == 0; }
  // Whether it was when the loop ended; what the thread's own objects closed after that is cut off.
  bool has_drained() const { return has_drained_; }

 private:
  // A service on this worker, and the count of its connections.
  class Clients final : private CountedTransport::Watcher {
   public:
    Clients(Worker& worker, Service& service, Hub& hub)
        : worker_(worker),
          service_(service),
          transport_(new(std::nothrow) CountedTransport(hub, *this)),
          host_(service.make(hub.loop())) {}
    ~Clients() {
      if (transport_ != nullptr) transport_->abandon();
    }
    bool belong_to(const Service& service) const { return &service_ == &service; }
    bool is_complete() const { return transport_ != nullptr && host_ != nullptr; }
    CountedTransport& transport() const { return *transport_; }
    WorkerService* host() const { return host_.get(); }
    void drop_host() { host_.reset(); }

   private:
    void on_left(Connection&) override { worker_.leave(service_); }

    Worker& worker_;
    Service& service_;
    CountedTransport* transport_;  // Outlives us if a Stream does.
    std::unique_ptr<WorkerService> host_;
  };
  struct Abandon {
    void operator()(Door* door) const { door->abandon(); }
  };
  struct Post {
    Service* service;
    std::unique_ptr<Door, Abandon> door;
  };

  // How long the thread sleeps when the wait fails, and may fail again at once.
  static constexpr Nanos kRest{10'000'000};
  static inline thread_local const Worker* current_ = nullptr;

  Worker() = default;
  void run();
  void finish();
  template <class Function>
  void tell_hosts(Function function) {
    for (Clients& clients : clients_) call_user("Workers", [&] { function(*clients.host()); });
  }
  Clients* clients_of(Service& service);
  Door* door_of(const Service& service);

  std::unique_ptr<Loop> loop_;
  sys::Thread thread_;
  std::list<Clients> clients_;
  std::list<Post> posts_;
  std::optional<Timer> limit_;
  std::atomic<std::size_t> connections_{0};
  std::atomic<bool> has_ended_{false};
  bool draining_ = false;
  bool is_finished_ = false;
  bool has_drained_ = false;
};

class Workers::Team {
 public:
  std::vector<std::unique_ptr<Worker>> workers;

  ~Team() { workers.clear(); }  // Before the services, which they may still be leaving.

  bool has_stopped() const { return has_stopped_; }
  // Whether the caller is a worker, which would wait for itself.
  bool is_calling() const {
    return std::ranges::any_of(workers, [](const auto& worker) { return worker->is_calling(); });
  }
  Result<Address> listen_everywhere(const Address& address, MakeService make,
                                    const ListenOptions& options);
  Result<Address> listen_and_share(const Address& address, MakeService make, Balance balance,
                                   const ListenOptions& options);
  // Takes over `socket`, unless it fails. The first worker accepts.
  std::error_code share(sys::Descriptor& socket, MakeService make, Balance balance,
                        const ListenOptions& options);
  bool stop(Nanos grace, const OnLoop& on_drain);
  // Any worker's thread.
  void resume(Service& service);

 private:
  template <class Function>
  bool on_each(Function function, bool insist = false);
  void stop_listening(bool serves_backlog);
  Service& serve(MakeService make, const ListenOptions& options) {
    return services_.emplace_back(*this, std::move(make), options.max_connections);
  }
  std::size_t choose(Balance balance, const Address& peer);
  static void hand_over(Worker& worker, Service& service, sys::Descriptor socket,
                        const Address& peer);

  std::list<Service> services_;
  std::size_t next_ = 0;  // Used by the first worker, which accepts for all.
  bool has_stopped_ = false;
  bool has_drained_ = true;
};

// ---- a service

void Workers::Service::leave() {
  if (limit_.leave()) team_.resume(*this);
}

// ---- a worker

Result<std::unique_ptr<Workers::Worker>> Workers::Worker::make(const LoopOptions& options) {
  Result<std::unique_ptr<Loop>> loop = Loop::create(options);
  if (!loop) return std::unexpected(loop.error());
  std::unique_ptr<Worker> worker(new Worker);
  worker->loop_ = std::move(*loop);
  if (Hub::of(*worker->loop_) == nullptr) return std::unexpected(sys::error_code(-ENOMEM));
  return worker;
}

Workers::Worker::~Worker() { end(); }

void Workers::Worker::end() {
  draining_ = false;
  limit_.reset();
  posts_.clear();
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

// Runs until it is told to end: user code may stop the loop, or drop the reference that keeps it
// running, and the wait may fail (no memory). Posts are called, and connections served, all the
// same.
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

// Whether all connections have ended is decided before the rest are reset.
void Workers::Worker::finish() {
  if (std::exchange(is_finished_, true)) return;
  has_drained_ = is_drained();
  if (!has_drained_) tell_hosts([](WorkerService& host) { host.on_end(); });
  loop_->stop_all();
}

std::error_code Workers::Worker::listen(Service& service, sys::Descriptor& socket,
                                        const ListenOptions& options, Door::OnSocket accept) {
  Door* door = Acceptor::make<Door>(*loop_, socket, options, std::move(accept));
  if (door == nullptr) return sys::error_code(-ENOMEM);
  posts_.emplace_back(&service, std::unique_ptr<Door, Abandon>(door));
  if (service.rests_on()) door->pause();
  return {};
}

void Workers::Worker::stop_listening(bool serves_backlog) {
  for (const Post& post : posts_) {
    if (serves_backlog && !post.service->rests_on()) post.door->finish();
  }
  posts_.clear();
}

Door* Workers::Worker::door_of(const Service& service) {
  const auto post = std::ranges::find(posts_, &service, &Post::service);
  return post == posts_.end() ? nullptr : post->door.get();
}

void Workers::Worker::pause(Service& service) {
  if (Door* door = door_of(service)) door->pause();
}

void Workers::Worker::resume(Service& service) {
  if (service.rests_on()) return;
  if (Door* door = door_of(service)) door->resume();
}

// nullptr if memory ran out.
Workers::Worker::Clients* Workers::Worker::clients_of(Service& service) {
  for (Clients& clients : clients_) {
    if (clients.belong_to(service)) return &clients;
  }
  Clients& clients = clients_.emplace_back(*this, service, *Hub::of(*loop_));
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
  service.leave();
  if (was_last && draining_) finish();
}

void Workers::Worker::lose_one(Service& service) {
  connections_.fetch_sub(1);
  service.leave();
}

void Workers::Worker::drain(Nanos grace, const OnLoop& on_drain) {
  draining_ = true;
  if (grace > Nanos{0}) {
    tell_hosts([grace](WorkerService& host) { host.on_drain(grace); });
    if (on_drain) call_user("Workers", [&] { on_drain(*loop_); });
  }
  if (is_drained() || grace <= Nanos{0}) return finish();
  limit_.emplace(*loop_, [this] { finish(); });
  if (!limit_->start(grace)) finish();
}

// ---- all of them

std::size_t Workers::Team::choose(Balance balance, const Address& peer) {
  if (balance == Balance::peer_hash) return peer.unmapped().host_hash() % workers.size();
  if (balance != Balance::least_connections) return next_++ % workers.size();
  const auto fewest = std::ranges::min_element(
      workers, {}, [](const std::unique_ptr<Worker>& worker) { return worker->connections(); });
  return static_cast<std::size_t>(fewest - workers.begin());
}

// Calls `function` on each worker's thread, and waits until all are done. False if memory ran out
// and some were not called; with `insist`, waits for memory instead.
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

// Returns when all accepted connections have reached their workers: what the first worker posts
// here is called after the connections that it has passed on.
void Workers::Team::stop_listening(bool serves_backlog) {
  on_each([&](Worker& worker) { worker.stop_listening(serves_backlog); }, true);
  sys::Latch arrived(static_cast<int>(workers.size()));
  const auto tell_all = [&](Worker& first) {
    if (&first != workers.front().get()) return;
    for (const std::unique_ptr<Worker>& worker : workers) {
      while (!worker->post([&arrived] { arrived.count_down(); })) sys::yield();
    }
  };
  on_each(tell_all, true);
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
  return has_drained_;
}

// A listening socket per worker; the kernel distributes the connections.
Result<Address> Workers::Team::listen_everywhere(const Address& address, MakeService make,
                                                 const ListenOptions& options) {
  auto sockets = open_listening_group(address, options, workers.size());
  if (!sockets) return std::unexpected(sockets.error());
  const Address bound = local_address_of(sockets->front().get());
  Service& service = serve(std::move(make), options);
  std::mutex mutex;
  std::error_code error;
  const bool done = on_each([&](Worker& worker) {
    const std::scoped_lock lock(mutex);
    const auto accept = [&worker, &service](sys::Descriptor newcomer, const Address& peer) {
      worker.expect_one();
      if (service.enter()) worker.pause(service);
      worker.take(service, std::move(newcomer), peer);
    };
    sys::Descriptor socket = std::move(sockets->back());
    sockets->pop_back();
    if (const auto failure = worker.listen(service, socket, options, accept)) error = failure;
  });
  if (!done && !error) error = sys::error_code(-ENOMEM);
  if (!error) return bound;
  on_each([&](Worker& worker) { worker.stop_listening(service); }, true);
  return std::unexpected(error);
}

Result<Address> Workers::Team::listen_and_share(const Address& address, MakeService make,
                                                Balance balance, const ListenOptions& options) {
  auto socket = open_listening_socket(address, options);
  if (!socket) return std::unexpected(socket.error());
  const Address bound = local_address_of(socket->get());
  if (const auto error = share(*socket, std::move(make), balance, options))
    return std::unexpected(error);
  return bound;
}

std::error_code Workers::Team::share(sys::Descriptor& socket, MakeService make, Balance balance,
                                     const ListenOptions& options) {
  Service& service = serve(std::move(make), options);
  std::error_code error = sys::error_code(-ENOMEM);
  on_each([&](Worker& worker) {
    if (&worker != workers.front().get()) return;
    const auto accept = [this, &worker, &service, balance](sys::Descriptor newcomer,
                                                           const Address& peer) {
      if (service.enter()) worker.pause(service);
      hand_over(*workers[choose(balance, peer)], service, std::move(newcomer), peer);
    };
    error = worker.listen(service, socket, options, accept);
  });
  return error;
}

// Counted now, so that the next choice takes it into account.
void Workers::Team::hand_over(Worker& worker, Service& service, sys::Descriptor socket,
                              const Address& peer) {
  worker.expect_one();
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
    auto worker = Worker::make(options.loop);
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
  SPATE_ASSERT(!team_->is_calling(), kOnAWorker);
  if (team_->has_stopped()) return std::unexpected(sys::error_code(-ECANCELED));
  if (balance != Balance::reuse_port || !address.is_ip())
    return team_->listen_and_share(address, std::move(make), balance, options);
  return team_->listen_everywhere(address, std::move(make), options);
}

Result<Address> Workers::adopt(int fd, OnAccept on_accept, Balance balance,
                               const ListenOptions& options) {
  SPATE_ASSERT(!team_->is_calling(), kOnAWorker);
  if (team_->has_stopped()) return std::unexpected(sys::error_code(-ECANCELED));
  if (const auto error = prepare_listening_socket(fd)) return std::unexpected(error);
  sys::Descriptor socket(fd);
  const Address bound = local_address_of(fd);
  if (const auto error = team_->share(socket, service_of(std::move(on_accept)), balance, options)) {
    socket.release();
    return std::unexpected(error);
  }
  return bound;
}

}  // namespace spate
