// WorkersServerState: the state behind a WorkersServer, which its handles and the workers share.
//
// Each worker makes its WorkerServer with its first connection. New options are stored here; a
// worker finds them when it accepts its next connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <vector>

#include "http/server/server_counters.h"
#include "spate/http/server.h"
#include "spate/net/workers_server.h"

namespace spate::http {

class WorkersServerState : public std::enable_shared_from_this<WorkersServerState> {
 public:
  using Options = std::shared_ptr<const ServerOptions>;

  static Result<WorkersServer> serve(Workers& workers, const Address& address, MakeService make,
                                     const ServerOptions& options,
                                     const WorkersListenOptions& how);

  WorkersServerState(Workers& workers, const ServerOptions& options);

  // ---- the functions of WorkersServer

  const spate::WorkersServer& server() const { return server_; }
  ServerMetrics metrics(unsigned worker) const;
  std::error_code reload(ServerOptions options);
  Options options() const;

  // ---- called on a worker's thread

  std::unique_ptr<DrainableService> make_server(Loop& loop, const MakeService& make);
  // Changes whenever the options do.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // Adds the counters of a server of this worker.
  void add(unsigned worker, const ServerCounters& counters);
  // Removes them, and keeps their totals.
  void remove(unsigned worker, const ServerCounters& counters);

 private:
  struct Slot {
    std::vector<const ServerCounters*> counters;
    ServerMetrics past;  // Of servers that were destroyed.
  };

  Workers& workers_;  // Used on the threads of workers.
  spate::WorkersServer server_;
  std::vector<Slot> slots_;

  mutable std::mutex mutex_;  // Protects options_, and the counters and `past` of slots_.
  Options options_;
  std::atomic<std::uint64_t> version_{1};
};

}  // namespace spate::http
