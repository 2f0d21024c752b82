// Workers: threads that run one loop each and share the connections of a server.
//
// Ownership: the Workers own their threads and loops; destroying them stops both, at once unless
// stop() was called. Objects that callbacks create on a worker's loop belong to the callbacks; a
// Stream that is left at the end of stop() is closed.
// Threads: listen(), adopt(), stop() and the destructor from one thread at a time, which must not
// be a worker (asserted): it would wait for itself. All other functions from any thread, also after
// stop().
// Callbacks given to listen() are called on the workers' threads, concurrently. Inside them
// everything is allowed that a loop allows; Loop::stop() ends nested runs, not the worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "spate/error.h"
#include "spate/export.h"
#include "spate/loop.h"
#include "spate/net/listener.h"

namespace spate {

// How new connections are distributed.
enum class Balance : std::uint8_t {
  reuse_port,         // By the kernel, by a hash of the addresses: one socket per worker.
  round_robin,        // In turns.
  least_connections,  // To the worker with the fewest open connections.
  peer_hash,          // All connections of one peer address to the same worker.
};

struct WorkersOptions {
  unsigned threads = 0;  // 0: one per processor that this process may use.
  std::string name =
      "spate";       // Threads are called name/0, name/1, ...; cut to what the system takes.
  bool pin = false;  // Pin each to its own processor, while there are enough.
  LoopOptions loop{};
};

// What one worker does with the connections of one listen(). Created on the worker's thread with
// its first connection, called and destroyed there; inside, everything is allowed that a loop
// allows.
class WorkerService {
 public:
  virtual ~WorkerService() = default;
  virtual void on_accept(Stream stream, const Address& peer) = 0;
  // Workers::stop() was called, and waits for at most `grace`.
  virtual void on_drain([[maybe_unused]] Nanos grace) {}
  // The grace is over; connections that are left are closed when this returns.
  virtual void on_end() {}
};

class SPATE_EXPORT Workers {
 public:
  using OnAccept = std::move_only_function<void(Stream stream, const Address& peer) const>;
  using OnLoop = std::function<void(Loop& loop)>;
  // May return nullptr (out of memory): the connection is then closed.
  using MakeService = std::move_only_function<std::unique_ptr<WorkerService>(Loop& loop) const>;

  // Errors: those of Loop::create(); EAGAIN when the system gives no more threads.
  [[nodiscard("Workers that nobody keeps are stopped at once")]]
  static Result<std::unique_ptr<Workers>> create(const WorkersOptions& options = {});
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  unsigned count() const;
  // `worker` is less than count(). For the functions of Loop that any thread may call. Valid until
  // the Workers are destroyed; calls nothing once stop() has returned.
  Loop& loop(unsigned worker) const;
  // The number of the worker whose loop this is, to find per-worker state; count() if none.
  unsigned index_of(const Loop& loop) const;
  // Calls `task` on that worker's thread. False, and the task destroyed, when memory runs out or
  // the worker has ended. A task that is posted while the worker ends may be destroyed uncalled.
  bool post(unsigned worker, Job task);
  // Calls `task` on each. False as above; some may still be called.
  bool post_to_all(const OnLoop& task);

  // Listens, and passes each connection to `on_accept` on a worker's thread, which owns the Stream.
  // `max_connections` is for all workers together; with reuse_port each may take one more. Returns
  // the address, with the kernel's choice for port 0. A second copy of the program gets EADDRINUSE,
  // also with Balance::reuse_port, unless both set `options.reuse_port`. Errors: those of
  // Listener::create(); ECANCELED after stop().
  Result<Address> listen(const Address& address, OnAccept on_accept,
                         Balance balance = Balance::reuse_port, const ListenOptions& options = {});
  // The same with a service per worker. `make` is called on the workers' threads, concurrently.
  Result<Address> listen(const Address& address, MakeService make,
                         Balance balance = Balance::reuse_port, const ListenOptions& options = {});
  // The same with a listening socket from a service manager or a previous process
  // (Listener::inherited()). The first worker accepts for all; reuse_port means round_robin here.
  // Errors, with which `fd` stays the caller's: those of Listener::adopt(); ECANCELED after stop().
  Result<Address> adopt(int fd, OnAccept on_accept, Balance balance = Balance::round_robin,
                        const ListenOptions& options = {});
  // Open connections of a worker; zero after stop().
  std::size_t connections(unsigned worker) const;

  // Stops listening, calls `on_drain` on each worker (to end its sessions), waits until all
  // connections are closed, for at most `grace`, and ends the threads. True if all were closed;
  // further calls return the same. Connections in the backlog are accepted before `on_drain` is
  // called, as by Listener::close(). With a grace of zero all are reset, without `on_drain`.
  bool stop(Nanos grace, const OnLoop& on_drain = {});

 private:
  class Service;
  class Worker;
  class Team;

  explicit Workers(std::unique_ptr<Team> team);
  std::unique_ptr<Team> team_;
};

}  // namespace spate
