// WorkersServerState: the state behind a WorkersServer, which its handles and the workers share.
//
// Each worker makes its WorkerServer with its first connection. New options are stored here; a
// worker finds them when it accepts its next connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <vector>

#include "http/server/drain_notice.h"
#include "http/server/server_counters.h"
#include "spate/http/server.h"
#include "spate/net/workers.h"

namespace spate::http {

class WorkerServer;

class WorkersServerState : public std::enable_shared_from_this<WorkersServerState> {
 public:
  using Options = std::shared_ptr<const ServerOptions>;

  static Result<WorkersServer> serve(Workers& workers, const Address& address, MakeService make,
                                     const ServerOptions& options,
                                     const WorkersListenOptions& how);

  WorkersServerState(Workers& workers, const ServerOptions& options);

  // ---- the functions of WorkersServer

  const Address& address() const { return address_; }
  unsigned workers() const { return static_cast<unsigned>(slots_.size()); }
  ServerMetrics metrics(unsigned worker) const;
  void drain(Nanos grace, const DrainTicket& ticket);
  std::error_code reload(ServerOptions options);
  Options options() const;

  // ---- called on a worker's thread

  std::unique_ptr<WorkerService> make_server(Loop& loop, const MakeService& make);
  // Changes whenever the options do.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // Adds the counters of a server of this worker.
  void add(unsigned worker, const ServerCounters& counters);
  // Removes them, and keeps their totals.
  void remove(unsigned worker, const ServerCounters& counters);
  void set_host(unsigned worker, WorkerServer* host) { slots_[worker].host = host; }

 private:
  class Ending;
  struct Slot {
    WorkerServer* host = nullptr;  // Used on the worker's thread.
    std::vector<const ServerCounters*> counters;
    ServerMetrics past;  // Of servers that were destroyed.
  };

  // Called by Workers::stop(), after all threads have ended.
  void end();

  Workers& workers_;  // Used on the threads of workers, and with `listener_`.
  Address address_;
  std::vector<Slot> slots_;

  mutable std::mutex mutex_;  // Protects options_, and the counters and `past` of slots_.
  Options options_;
  std::atomic<std::uint64_t> version_{1};

  // Separate, because drain() may wait for memory while a worker needs the other mutex.
  mutable std::mutex listener_mutex_;
  std::optional<WorkersListener> listener_;  // Empty after Workers::stop().
};

}  // namespace spate::http
