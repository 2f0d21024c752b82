// The Team of Workers: the services of all threads, and the choice of a worker for a connection.
#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "net/workers/worker.h"

namespace spate {

class Workers::Team {
 public:
  std::vector<std::unique_ptr<Worker>> workers;

  ~Team() { workers.clear(); }  // Before the services, which the workers may still use.

  bool has_stopped() const { return has_stopped_; }
  // Returns whether the caller is a worker, which would wait for itself.
  bool is_calling() const {
    return std::ranges::any_of(workers, [](const auto& worker) { return worker->is_calling(); });
  }
  Result<WorkersListener> listen_everywhere(const Address& address, MakeService make,
                                            const ListenOptions& options);
  Result<WorkersListener> listen_and_share(const Address& address, MakeService make,
                                           Balance balance, const ListenOptions& options);
  // Takes ownership of `socket`, unless it fails. The first worker accepts.
  Result<WorkersListener> share(sys::Descriptor& socket, MakeService make, Balance balance,
                                const ListenOptions& options);
  // Called on any thread. Only workers that run dereference `service`.
  void close(Service& service, bool is_shared, const OnLoop& then);
  bool stop(Nanos grace, const OnLoop& on_drain);
  // Called on any worker's thread.
  void resume(Service& service);

 private:
  template <class Function>
  bool on_each(Function function, bool insist = false);
  void stop_listening(bool serves_backlog);
  Service& serve(MakeService make, const ListenOptions& options) {
    return services_.emplace_back(*this, std::move(make), options.max_connections, workers.size());
  }
  std::size_t choose(Balance balance, const Address& peer);
  static void hand_over(Worker& worker, Service& service, sys::Descriptor socket,
                        const Address& peer);

  std::list<Service> services_;
  std::size_t next_ = 0;  // Used by the first worker, which accepts for all.
  bool has_stopped_ = false;
  bool has_drained_ = true;
};

}  // namespace spate
