// Workers: loops that run on threads of their own, and the connections that are shared out among
// them.
//
// Ownership: the Workers own their threads and loops; destroying them stops both, at once unless
// stop() has been called before. What the user's callbacks have made on a worker's loop is theirs,
// and must be gone or be closed by the end of stop(): a Stream that is left is closed then.
// Threads: listen(), adopt(), stop() and destroying are for one thread at a time that is none of
// the workers', which is asserted: a worker would wait for itself. The other functions are for any
// thread, after stop(), too.
// A callback that is given to listen() is called on the workers' threads, on several at once.
// Inside it everything is allowed that a loop allows; Loop::stop() ends nested runs, not the
// worker.
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

// Which worker a new connection goes to.
enum class Balance : std::uint8_t {
  reuse_port,   // The kernel's choice, by a hash of the addresses: a socket each, no hand-over.
  round_robin,  // One after the other.
  least_connections,  // To whom has the fewest open.
  peer_hash,          // All of one peer's to the same.
};

struct WorkersOptions {
  unsigned threads = 0;  // 0: one for each processor that this process may use.
  std::string name =
      "spate";       // Threads are called name/0, name/1, ...; cut to what the system takes.
  bool pin = false;  // Each to a processor of its own, as far as there are enough.
  LoopOptions loop{};
};

// What one worker does with the connections of one listen(). Made on the worker's thread when the
// first of them comes to it, called and destroyed there; everything is allowed inside that a loop
// allows.
class WorkerService {
 public:
  virtual ~WorkerService() = default;
  virtual void on_accept(Stream stream, const Address& peer) = 0;
  // Workers::stop() has been called, and waits for `grace` at most.
  virtual void on_drain([[maybe_unused]] Nanos grace) {}
  // The grace is over: what is left is closed when this returns.
  virtual void on_end() {}
};

class SPATE_EXPORT Workers {
 public:
  using OnAccept = std::move_only_function<void(Stream stream, const Address& peer) const>;
  using OnLoop = std::function<void(Loop& loop)>;
  // nullptr if memory has run out: the connection is closed then.
  using MakeService = std::move_only_function<std::unique_ptr<WorkerService>(Loop& loop) const>;

  // Errors: those of Loop::create(); EAGAIN when the system gives no more threads.
  [[nodiscard("Workers that nobody keeps are stopped at once")]]
  static Result<std::unique_ptr<Workers>> create(const WorkersOptions& options = {});
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  unsigned count() const;
  // `worker` is less than count(). For what a Loop allows any thread; it is there until the Workers
  // are destroyed, but calls nothing any more once stop() is done.
  Loop& loop(unsigned worker) const;
  // Which worker's loop it is: the number by which a worker's own state is found. count() if
  // nobody's.
  unsigned index_of(const Loop& loop) const;
  // Calls `task` on that worker's thread. False, and the task destroyed, when memory runs out or
  // the worker has ended. One that is posted while it ends may be destroyed uncalled, with the
  // Workers at the latest.
  bool post(unsigned worker, Job task);
  // Calls `task` on each. False as above; some may be called all the same.
  bool post_to_all(const OnLoop& task);

  // Listens, and hands each connection to a worker. `on_accept` is called on that worker's
  // thread, and owns the Stream. `max_connections` is for all workers together; with reuse_port
  // each may take one more before it rests. Port 0 has the kernel choose one; the address says
  // which. A second copy of the program is refused the port (EADDRINUSE), with Balance::reuse_port,
  // too, unless `options.reuse_port` shares it. Errors: Listener::create()'s; ECANCELED after
  // stop().
  Result<Address> listen(const Address& address, OnAccept on_accept,
                         Balance balance = Balance::reuse_port, const ListenOptions& options = {});
  // The same for what is more than a callback: a service each worker, which `make` makes on the
  // worker's thread, on several at once.
  Result<Address> listen(const Address& address, MakeService make,
                         Balance balance = Balance::reuse_port, const ListenOptions& options = {});
  // The same with a socket that listens already: from a service manager, or from the process that
  // this one follows (Listener::inherited()). The first worker accepts for all; reuse_port means
  // round_robin here. Errors: Listener::adopt()'s, with which `fd` is still the caller's; ECANCELED
  // after stop().
  Result<Address> adopt(int fd, OnAccept on_accept, Balance balance = Balance::round_robin,
                        const ListenOptions& options = {});
  // Open connections that listen() has handed to a worker; none after stop().
  std::size_t connections(unsigned worker) const;

  // Stops listening, calls `on_drain` on each worker (to have its sessions end), and waits until
  // all connections are closed, for `grace` at most. Then the threads end. True if all were closed;
  // the same again if it is called again.
  // Who waits in the backlog is served first, as by Listener::close(), and is there when `on_drain`
  // is called. Without grace, all are reset, and `on_drain` is not called.
  bool stop(Nanos grace, const OnLoop& on_drain = {});

 private:
  class Service;
  class Worker;
  class Team;

  explicit Workers(std::unique_ptr<Team> team);
  std::unique_ptr<Team> team_;
};

}  // namespace spate
