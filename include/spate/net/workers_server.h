// WorkersServer: a server on Workers, as serve<T>(workers, ...) returns it (server.h).
//
//   auto server = must(serve<Echo>(*workers, Address::any_ipv6(7000)));
//   ...
//   server.drain(std::chrono::seconds(10), *loop, [&] { loop->stop(); });
//
// Ownership: a handle. Copies refer to the same server, which belongs to the Workers. Destroying a
// handle changes nothing.
// Threads: any. No function waits for a worker. After Workers::stop(), connections() returns zero,
// close() has no effect, and drain() calls `done`.
// Callbacks: `done`, called by the loop that was given. Inside everything is allowed.
#pragma once

#include <cstddef>
#include <memory>
#include <system_error>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/net/address.h"
#include "spate/net/listener.h"
#include "spate/net/workers.h"
#include "spate/time.h"

namespace spate {

class DrainTicketState;
class Loop;
class WorkersServerCore;

// Not for programs: held by each part of a server that is being drained.
using DrainTicket = std::shared_ptr<DrainTicketState>;

// Not for programs: one worker's part of a WorkersServer.
class DrainableService : public WorkerService {
 public:
  // Ends the connections within `grace`. Destroys its copies of `ticket` when none is left.
  virtual void drain(Nanos grace, const DrainTicket& ticket) = 0;
};

class SPATE_EXPORT WorkersServer {
 public:
  // Makes an empty handle, which may only be assigned to and destroyed.
  WorkersServer();
  WorkersServer(const WorkersServer& other);
  WorkersServer& operator=(const WorkersServer& other);
  ~WorkersServer();

  // Returns the address, with the kernel's choice for port 0.
  const Address& address() const;
  unsigned workers() const;
  // Returns the number of open connections of all workers, or of one (less than workers()).
  // Connections whose TLS handshake is in progress count, and those that wait for their worker.
  std::size_t connections() const;
  std::size_t connections(unsigned worker) const;
  // Returns whether Workers::stop() has ended the server.
  bool has_stopped() const;

  // Stops listening, as Listener::close(): connections in the backlog are still served. The
  // sessions continue.
  void close() const;
  // As close(). Also calls on_drain() of each session, and of those that are opened later. Sessions
  // that are left after `grace` are reset with Error::deadline. The threads continue.
  void drain(Nanos grace) const;
  // As above, and calls `done` once, by `loop`, when no worker has a session left. Keeps `loop`
  // alive until then; if it is destroyed first, `done` is not called. Called on its thread. Errors:
  // ENOMEM; then nothing was done.
  std::error_code drain(Nanos grace, Loop& loop, Function<void()> done) const;

  // Not for programs. `make` may return nullptr (out of memory): the connection is then closed.
  using MakeService = Function<std::unique_ptr<DrainableService>(Loop& loop) const>;
  static Result<WorkersServer> serve(Workers& workers, const Address& address, MakeService make,
                                     Balance balance, const ListenOptions& options);

 private:
  friend class WorkersServerCore;
  explicit WorkersServer(std::shared_ptr<WorkersServerCore> core);
  std::shared_ptr<WorkersServerCore> core_;
};

}  // namespace spate
