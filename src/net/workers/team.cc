#include "net/workers/team.h"

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "net/listen/listening_socket.h"
#include "net/socket_address.h"
#include "sys/thread.h"

namespace spate {

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

}  // namespace spate
