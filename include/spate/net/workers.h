// Workers: threads that run one loop each and share the connections of a server.
//
// Ownership: the Workers own their threads and loops; destroying them stops both, at once unless
// stop() was called. Objects that callbacks create on a worker's loop belong to the callbacks; a
// Stream that is left at the end of stop() is closed.
// Threads: listen(), open(), adopt(), stop() and the destructor from one thread at a time, which
// must not be a worker (asserted): it would wait for itself. All other functions from any thread,
// also after stop().
// Callbacks given to listen() are called on the workers' threads, concurrently. Inside them
// everything is allowed that a loop allows; Loop::stop() ends nested runs, not the worker.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/loop.h"
#include "spate/net/listener.h"

namespace spate {

// How new connections are distributed.
enum class Balance : std::uint8_t {
  reuse_port,         // The kernel distributes, by a hash of the addresses: one socket per worker.
                      // On systems other than Linux this means round_robin.
  round_robin,        // To each worker in turn.
  least_connections,  // To the worker with the fewest open connections.
  peer_hash,          // All connections of one peer address to the same worker.
};

struct WorkersOptions {
  unsigned threads = 0;  // 0: one per processor that this process may use.
  std::string name =
      "spate";       // Threads are named name/0, name/1, ...; truncated to the system's limit.
  bool pin = false;  // Pins each thread to its own processor, while there are enough.
  LoopOptions loop{};
};

// One worker's handler for the connections of one listen(). Created on the worker's thread with its
// first connection, and called and destroyed there. Inside, everything is allowed that a loop
// allows.
class WorkerService {
 public:
  virtual ~WorkerService() = default;
  virtual void on_accept(Stream stream, const Address& peer) = 0;
  // Called by Workers::stop(), which then waits for at most `grace`.
  virtual void on_drain([[maybe_unused]] Nanos grace) {}
  // Called after the grace; connections that are left are closed when this returns.
  virtual void on_end() {}
};

class WorkersListener;

class SPATE_EXPORT Workers {
 public:
  using OnAccept = Function<void(Stream stream, const Address& peer) const>;
  using OnLoop = std::function<void(Loop& loop)>;
  // Creates the handler. May return nullptr (out of memory): the connection is then closed.
  using MakeService = Function<std::unique_ptr<WorkerService>(Loop& loop) const>;

  // Starts the threads. Errors: those of Loop::create(); EAGAIN when the system starts no more
  // threads.
  [[nodiscard("discarded Workers are stopped at once")]]
  static Result<std::unique_ptr<Workers>> create(const WorkersOptions& options = {});
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  unsigned count() const;
  // Returns the loop of a worker, for the functions of Loop that any thread may call. `worker` is
  // less than count(). Valid until the Workers are destroyed; calls nothing once stop() has
  // returned.
  Loop& loop(unsigned worker) const;
  // Returns the number of the worker that has this loop, to find per-worker state; count() if none.
  unsigned index_of(const Loop& loop) const;
  // Calls `task` on that worker's thread. Returns false and destroys the task when memory runs out
  // or the worker has ended. A task that is posted while the worker ends may be destroyed uncalled.
  bool post(unsigned worker, Job task);
  // Calls `task` on each worker's thread. Returns false as post() does; some workers may still call
  // it.
  bool post_to_all(const OnLoop& task);

  // Listens, and passes each connection to `on_accept` on a worker's thread, which owns the Stream.
  // `max_connections` applies to all workers together; with reuse_port each may take one more.
  // Returns the address, with the kernel's choice for port 0. A second copy of the program gets
  // EADDRINUSE, also with Balance::reuse_port, unless both set `options.reuse_port`. Errors: those
  // of Listener::create(); ECANCELED after stop().
  Result<Address> listen(const Address& address, OnAccept on_accept,
                         Balance balance = Balance::reuse_port, const ListenOptions& options = {});
  // As above, with a service per worker. `make` is called on the workers' threads, concurrently.
  Result<Address> listen(const Address& address, MakeService make,
                         Balance balance = Balance::reuse_port, const ListenOptions& options = {});
  // As above, and returns a handle that can stop listening.
  Result<WorkersListener> open(const Address& address, MakeService make,
                               Balance balance = Balance::reuse_port,
                               const ListenOptions& options = {});
  // As listen(), with a listening socket from a service manager or a previous process
  // (Listener::inherited()). The first worker accepts for all; reuse_port means round_robin here.
  // On an error `fd` stays the caller's. Errors: those of Listener::adopt(); ECANCELED after
  // stop().
  Result<Address> adopt(int fd, OnAccept on_accept, Balance balance = Balance::round_robin,
                        const ListenOptions& options = {});
  // Returns the number of open connections of a worker; zero after stop().
  std::size_t connections(unsigned worker) const;

  // Stops listening, calls `on_drain` on each worker (to end its sessions), waits until all
  // connections are closed, for at most `grace`, and ends the threads. Returns true if all were
  // closed, or had sent everything and only waited for their peers to close. Further calls return
  // the same. Connections in the backlog are accepted before `on_drain` is called, as by
  // Listener::close(). With a grace of zero all are reset, without `on_drain`.
  bool stop(Nanos grace, const OnLoop& on_drain = {});

 private:
  friend class WorkersListener;
  class Service;
  class Worker;
  class Team;

  explicit Workers(std::unique_ptr<Team> team);
  std::unique_ptr<Team> team_;
};

// WorkersListener: one listening address of Workers. A handle: copies refer to the same listener,
// and destroying them changes nothing. Threads: any, until the Workers are destroyed.
class SPATE_EXPORT WorkersListener {
 public:
  const Address& address() const { return address_; }
  // Returns the number of its open connections on a worker (less than Workers::count()); zero after
  // stop().
  std::size_t connections(unsigned worker) const {
    return (*connections_)[worker].load(std::memory_order_relaxed);
  }
  // Stops listening on all workers, and returns at once. Connections in the backlog are accepted
  // first. Then calls `then` on the thread of each worker, after the worker's last connection was
  // passed to its service. On a worker that has ended, `then` is destroyed uncalled.
  void close(const Workers::OnLoop& then = {}) const;

 private:
  friend class Workers;
  using Counts = std::vector<std::atomic<std::size_t>>;  // By worker.

  WorkersListener(Workers::Team& team, Workers::Service& service, const Address& address,
                  bool is_shared);

  Workers::Team* team_;
  Workers::Service* service_;  // Destroyed by stop().
  std::shared_ptr<const Counts> connections_;
  Address address_;
  bool is_shared_;  // The first worker accepts for all.
};

}  // namespace spate
