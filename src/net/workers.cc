#include "spate/net/workers.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <latch>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "net/accepted_transport.h"
#include "net/connection.h"
#include "net/listening_socket.h"
#include "net/net.h"
#include "spate/timer.h"
#include "sys/socket.h"
#include "sys/thread.h"

namespace spate {

namespace {

Address sys_address(const sys::Descriptor& socket) {
  sys::SystemAddress system;
  if (sys::local_address(socket.get(), system) < 0) return {};
  return Address::from_system(&system.storage, system.size).value_or(Address());
}

}  // namespace

// One thread and its loop. All but the atomic belongs to that thread while it runs.
class Workers::Worker final : private AcceptedTransport::Watcher {
 public:
  static std::expected<std::unique_ptr<Worker>, std::error_code> make(const LoopOptions& options);
  ~Worker();

  long start(std::string_view name, std::optional<unsigned> processor);
  Loop& loop() const { return *loop_; }
  std::size_t connections() const { return connections_.load(std::memory_order_relaxed); }

  // Has a new connection on its way to this worker.
  void expect_one() { connections_.fetch_add(1, std::memory_order_relaxed); }
  void lose_one() { connections_.fetch_sub(1, std::memory_order_relaxed); }
  void take(sys::Descriptor socket, const Address& peer, const OnAccept& on_accept);
  // Accepts, and says where each one goes.
  std::error_code listen(sys::Descriptor socket, const ListenOptions& options,
                         Listener::OnAccept accept);

  void stop_listening() { listeners_.clear(); }
  void drain(Nanos grace, const OnLoop& on_drain);
  void join() { thread_.join(); }
  bool is_drained() const { return connections() == 0; }

 private:
  Worker() = default;
  void run();
  void on_left() override;

  std::unique_ptr<Loop> loop_;
  sys::Thread thread_;
  AcceptedTransport* guests_ = nullptr;
  std::list<Listener> listeners_;
  std::optional<Timer> limit_;
  std::atomic<std::size_t> connections_{0};
  bool draining_ = false;
};

class Workers::Team {
 public:
  std::vector<std::unique_ptr<Worker>> workers;

  std::expected<Address, std::error_code> listen_everywhere(const Address& address,
                                                            const OnAccept& on_accept,
                                                            const ListenOptions& options);
  std::expected<Address, std::error_code> listen_and_share(const Address& address,
                                                           const OnAccept& on_accept,
                                                           Balance balance,
                                                           const ListenOptions& options);
  template <class Function>
  bool on_each(Function function, bool insist = false);

 private:
  std::size_t choose(Balance balance, const Address& peer);
  static void hand_over(Worker& worker, sys::Descriptor socket, const Address& peer,
                        const OnAccept& on_accept);

  std::size_t next_ = 0;  // Of the first worker's thread, which accepts for all.
};

// ---- a worker

std::expected<std::unique_ptr<Workers::Worker>, std::error_code> Workers::Worker::make(
    const LoopOptions& options) {
  Loop::Created loop = Loop::create(options);
  if (!loop) return std::unexpected(loop.error());
  std::unique_ptr<Worker> worker(new Worker);
  worker->loop_ = std::move(*loop);
  Net* net = Net::of(*worker->loop_);
  if (net != nullptr) worker->guests_ = new (std::nothrow) AcceptedTransport(*net, *worker);
  if (worker->guests_ == nullptr)
    return std::unexpected(std::make_error_code(std::errc::not_enough_memory));
  return worker;
}

// The transport outlives us if a Stream does.
Workers::Worker::~Worker() {
  draining_ = false;
  limit_.reset();
  listeners_.clear();
  loop_.reset();
  if (guests_ != nullptr) guests_->abandon();
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

// An error of the wait's (no memory) is no reason to leave the connections alone.
void Workers::Worker::run() {
  while (!loop_->run()) {
  }
}

void Workers::Worker::take(sys::Descriptor socket, const Address& peer, const OnAccept& on_accept) {
  Connection* connection = draining_ ? nullptr : Connection::make(*guests_, socket.get());
  if (connection == nullptr) return on_left();
  socket.release();
  guests_->enter();
  on_accept(*loop_, Connection::stream_of(connection), peer);
}

std::error_code Workers::Worker::listen(sys::Descriptor socket, const ListenOptions& options,
                                        Listener::OnAccept accept) {
  Listener::Made listener = Listener::adopt(*loop_, socket.get(), std::move(accept), options);
  if (!listener) return listener.error();
  socket.release();
  listeners_.push_back(std::move(*listener));
  return {};
}

void Workers::Worker::on_left() {
  if (connections_.fetch_sub(1, std::memory_order_relaxed) == 1 && draining_) loop_->stop_all();
}

void Workers::Worker::drain(Nanos grace, const OnLoop& on_drain) {
  draining_ = true;
  if (on_drain && grace > Nanos{0}) on_drain(*loop_);
  if (is_drained() || grace <= Nanos{0}) return loop_->stop_all();
  limit_.emplace(*loop_, [this] { loop_->stop_all(); });
  limit_->start(grace);
}

// ---- all of them

std::size_t Workers::Team::choose(Balance balance, const Address& peer) {
  if (balance == Balance::peer_hash) return peer.unmapped().host_hash() % workers.size();
  if (balance != Balance::least_connections) return next_++ % workers.size();
  const auto fewest = std::ranges::min_element(
      workers, {}, [](const std::unique_ptr<Worker>& worker) { return worker->connections(); });
  return static_cast<std::size_t>(fewest - workers.begin());
}

// Calls `function` on each worker's thread and waits until all have done it. False if memory ran
// out, so that some have not; who insists waits for memory.
template <class Function>
bool Workers::Team::on_each(Function function, bool insist) {
  std::latch done(static_cast<std::ptrdiff_t>(workers.size()));
  bool all = true;
  for (const std::unique_ptr<Worker>& worker : workers) {
    const auto task = [&, worker = worker.get()] {
      function(*worker);
      done.count_down();
    };
    bool posted = worker->loop().post(task);
    while (!posted && insist) {
      std::this_thread::yield();
      posted = worker->loop().post(task);
    }
    if (!posted) done.count_down();
    all = all && posted;
  }
  done.wait();
  return all;
}

// A listening socket for each worker; the kernel shares the connections out.
std::expected<Address, std::error_code> Workers::Team::listen_everywhere(
    const Address& address, const OnAccept& on_accept, const ListenOptions& options) {
  Address bound = address;
  std::vector<sys::Descriptor> sockets;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    auto socket = open_listening_socket(bound, options);
    if (!socket) return std::unexpected(socket.error());
    bound = sys_address(*socket);
    sockets.push_back(std::move(*socket));
  }
  std::mutex mutex;
  std::error_code error;
  std::size_t next = 0;
  const bool done = on_each([&](Worker& worker) {
    const std::scoped_lock lock(mutex);
    const auto accept = [&worker, on_accept](Stream stream, const Address& peer) {
      worker.expect_one();
      worker.take(sys::Descriptor(*stream.release()), peer, on_accept);
    };
    if (const auto failure = worker.listen(std::move(sockets[next++]), options, accept))
      error = failure;
  });
  if (!done && !error) error = std::make_error_code(std::errc::not_enough_memory);
  if (error) return std::unexpected(error);
  return bound;
}

// The first worker accepts.
std::expected<Address, std::error_code> Workers::Team::listen_and_share(
    const Address& address, const OnAccept& on_accept, Balance balance,
    const ListenOptions& options) {
  auto socket = open_listening_socket(address, options);
  if (!socket) return std::unexpected(socket.error());
  const Address bound = sys_address(*socket);
  const auto accept = [this, balance, on_accept](Stream stream, const Address& peer) {
    hand_over(*workers[choose(balance, peer)], sys::Descriptor(*stream.release()), peer, on_accept);
  };
  std::error_code error = std::make_error_code(std::errc::not_enough_memory);
  on_each([&](Worker& worker) {
    if (&worker == workers.front().get())
      error = worker.listen(std::move(*socket), options, accept);
  });
  if (error) return std::unexpected(error);
  return bound;
}

// Counted from here on, so that the next choice knows of it.
void Workers::Team::hand_over(Worker& worker, sys::Descriptor socket, const Address& peer,
                              const OnAccept& on_accept) {
  worker.expect_one();
  const bool posted =
      worker.loop().post([&worker, socket = std::move(socket), peer, on_accept]() mutable {
        worker.take(std::move(socket), peer, on_accept);
      });
  if (!posted) worker.lose_one();
}

Workers::Workers(std::unique_ptr<Team> team) : team_(std::move(team)) {}

Workers::~Workers() { stop(Nanos{0}); }

Workers::Made Workers::start(const WorkersOptions& options) {
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
std::size_t Workers::connections(unsigned worker) const {
  return team_->workers[worker]->connections();
}

bool Workers::post_to_all(const OnLoop& task) {
  bool done = true;
  for (const std::unique_ptr<Worker>& worker : team_->workers)
    done = worker->loop().post([&loop = worker->loop(), task] { task(loop); }) && done;
  return done;
}

std::expected<Address, std::error_code> Workers::listen(const Address& address, OnAccept on_accept,
                                                        Balance balance,
                                                        const ListenOptions& options) {
  if (balance != Balance::reuse_port || !address.is_ip())
    return team_->listen_and_share(address, on_accept, balance, options);
  ListenOptions shared = options;
  shared.reuse_port = true;
  return team_->listen_everywhere(address, on_accept, shared);
}

bool Workers::stop(Nanos grace, const OnLoop& on_drain) {
  if (team_->workers.empty()) return true;
  // First, so that nobody who has been drained is handed another one.
  team_->on_each([](Worker& worker) { worker.stop_listening(); }, true);
  team_->on_each([&](Worker& worker) { worker.drain(grace, on_drain); }, true);
  bool drained = true;
  for (const std::unique_ptr<Worker>& worker : team_->workers) {
    worker->join();
    drained = worker->is_drained() && drained;
  }
  team_->workers.clear();
  return drained;
}

}  // namespace spate
