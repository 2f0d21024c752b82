// World: simulates machines, a network and time, in one thread and from one seed.
//
//   sim::World world(seed);
//   sim::Host& here = world.add_host("here");
//   sim::Host& there = world.add_host("there");
//   auto server = here.run([](Loop& loop) {
//     return must(serve<Echo>(loop, Address::any_ipv6(7000)));
//   });
//   there.run([&](Loop& loop) { client.start(loop, here.address(7000)); });
//   world.run_until([&] { return client.is_done(); }, 1h);
//
// Programs link to spate::sim instead of spate::spate. It is the same library, except that its
// system calls go to the World of the calling thread. Without a World they go to the system.
// Time: nothing waits. When all loops would sleep, the clock advances to the next event. Two runs
// with one seed are identical to the last byte, if the program depends on nothing else: trace().
//
// Ownership: the World owns its hosts and their loops. Streams, servers, and loops made by the
// caller must be destroyed before it. At most one World per thread.
//
// Threads: all functions must be called on the thread that made the World. Threads that the library
// starts (Workers, a ThreadPool) belong to the World. Only one of them and this thread runs at a
// time, until it waits inside the library; the World then selects the next one. Such a thread may
// do everything that it may do outside a World. It may also call all functions of World and Host
// that do not run the World. A thread that waits for it by other means (a latch, or a mutex that is
// held while the library waits) waits for ever. Threads that the program starts itself belong to no
// World. Workers and ThreadPools must be destroyed before the World.
//
// Limits: no descriptor of the real system can be watched; files are real, except those of a Disk.
// docs/guide/simulation.md
// lists what else is not simulated. explore.h runs one program in many Worlds.
//
// Inside callbacks of a host's loop everything is allowed except destroying the World. A run()
// nested there, of any loop, also runs the other hosts.
//
// Memory: if the real memory runs out, the simulator ends the program.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "spate/assert.h"
#include "spate/export.h"
#include "spate/function.h"
#include "spate/loop.h"
#include "spate/net/address.h"
#include "spate/sim/disk.h"
#include "spate/sim/link.h"
#include "spate/time.h"

namespace spate::sim {

class Running;
class World;
struct WorldState;

// Which descriptor limit is exhausted.
enum class Shortage : std::uint8_t { process, system };  // EMFILE, ENFILE.

// A machine: an address and a loop. Sockets that are opened while its code runs, in run() or in its
// loop's callbacks, belong to it.
class SPATE_EXPORT Host {
 public:
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  std::string_view name() const { return name_; }
  // Returns its address: 10.0.0.1 for the first host, and so on. Each host also has 127.0.0.1 and
  // ::1.
  Address address(std::uint16_t port) const;
  // Returns its IPv6 address: fd00::1, and so on.
  Address address_ipv6(std::uint16_t port) const;
  // Returns its loop, which the World runs. Code that uses it directly must be inside run(). Not
  // while the host is down; restart() makes another one.
  Loop& loop() {
    SPATE_ASSERT(is_up(), "a host that has crashed has no loop until restart()");
    return *loop_;
  }

  // Calls `program` with loop() as this host, at once, and returns its result. It may run loops,
  // also its own. Loop::now() of loop() is the time of this call.
  template <class Program>
  auto run(Program&& program) {
    const Turn turn(*this);
    update_now();
    return std::forward<Program>(program)(loop());
  }

  // Calls `program` as run() does, now and after each restart(), and keeps its result (a Server, a
  // shared_ptr, a tuple) until the host crashes or the World is destroyed. Once per host.
  template <class Program>
  void boot(Program program) {
    SPATE_ASSERT(!program_, "boot() may be called once per host");
    program_ = [program = std::move(program)](Loop& loop) mutable -> std::shared_ptr<void> {
      return std::make_shared<std::invoke_result_t<Program&, Loop&>>(program(loop));
    };
    start_program();
  }

  // Cuts the power: destroys the object kept by boot(), closes sockets without notifying peers, and
  // never runs the loop again. A peer with data to send gets no response: it fails with ETIMEDOUT,
  // after 127 s while connecting and otherwise after a quarter of an hour, or receives a reset once
  // the host is up again. A peer that only waits does not notice, unless it uses set_keep_alive();
  // set_user_timeout() shortens the other delays. The program may destroy objects of this host that
  // it holds now or later; they have no further use.
  // Only while is_at_rest().
  void crash();
  // Starts the host after crash(), with the same addresses, a new loop, no limits of descriptors
  // and memory, and calls the program of boot() again.
  void restart();
  bool is_up() const { return loop_ != nullptr; }
  // True if the host is up, and none of its code runs or waits inside the library (a run() called
  // by the program, Workers that start or stop). at() tasks are called even if it does.
  bool is_at_rest() const;

  // Suspends the host's process, as SIGSTOP does: its loop does not run, while its kernel continues
  // to accept, receive and acknowledge within the limits of its buffers. Its timers are late
  // afterwards. Not while the host is inside a run() called by the program.
  void pause();
  void resume();

  // Makes every call fail that would open more than `most` descriptors. The limit includes about 3
  // of its loop. open_descriptors() returns how many are open.
  void limit_descriptors(std::size_t most, Shortage shortage = Shortage::process);
  std::size_t open_descriptors() const;

  // Sets the range of ports for connect(), and for bind() to port 0: `first` ... `last`. Initially
  // 32768 ... 60999, as in Linux. If no port is free, connect() fails with EADDRNOTAVAIL and bind()
  // with EADDRINUSE. The side of a connection that ended first keeps its port for another minute
  // (TIME_WAIT). 1 <= first <= last.
  void set_port_range(std::uint16_t first, std::uint16_t last);
  // Limits the memory of its sockets and pipes to `bytes`: unsent and unread TCP data, unread
  // packets, and the contents of unix sockets and pipes. When it is used up, opening or accepting a
  // socket and sending a packet fail with ENOBUFS, and opening a pipe fails with ENFILE. Streams
  // send nothing more, their receive windows close, and incoming UDP packets are dropped. A pipe
  // accepts nothing while less than 4,096 bytes are left. Zero: no limit, as initially and after a
  // restart.
  void limit_memory(std::size_t bytes);
  // Returns how much of that is used.
  std::size_t used_memory() const;

  // Sets the difference of its clocks to the World's, from now on and after a restart. Timers of
  // its loops follow them. The monotonic clock does not jump.
  void set_clock(const ClockOptions& options);

  // Delays threads by a random time up to `most`, by the seed: threads of a ThreadPool before each
  // job, and all threads before their first action. Initially zero. Zero or more.
  void delay_work(Nanos most);

  // Adds a simulated disk below an absolute path (disk.h), which is not the root. Files at other
  // paths are real. It keeps its contents through crashes, and is valid while the World exists.
  Disk& mount(std::string_view path, const DiskOptions& options = {});

  // Delivers a signal (1 ... 64) to its process: calls the Signal watchers of its loops. Returns
  // false if there is no watcher; the signal then has no effect.
  bool raise(int signum);

  // Defines the program that spawn() finds as `name` on this host. For each process, its loop calls
  // `body(running)` after the process has begun, and the result is kept until the process ends
  // (running.h). Other names are not found (ENOENT); working directories and environments are
  // ignored.
  template <class Body>
  void program(std::string_view name, Body body) {
    add_program(name, [body = std::move(body)](Running& running) mutable -> std::shared_ptr<void> {
      if constexpr (std::is_void_v<std::invoke_result_t<Body&, Running&>>) {
        return body(running), nullptr;
      } else {
        return std::make_shared<std::invoke_result_t<Body&, Running&>>(body(running));
      }
    });
  }

  // While it exists, the thread's code runs as the host. run() uses it.
  class SPATE_EXPORT Turn {
   public:
    explicit Turn(Host& host);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    WorldState& world_;
    int before_;
  };

 private:
  friend World;
  friend WorldState;

  Host(WorldState& world, int index, std::string_view name);
  void make_loop();
  void update_now();
  void start_program();
  using ProgramBody = std::function<std::shared_ptr<void>(Running&)>;
  void add_program(std::string_view name, ProgramBody body);

  WorldState& world_;
  int index_;
  std::string name_;
  bool is_paused_ = false;
  std::vector<std::unique_ptr<Loop>> dead_loops_;  // Loops of crashed hosts, which objects of the
                                                   // program may still use.
  std::unique_ptr<Loop> loop_;                     // None while it is down.
  int set_ = -1;                                   // Its poll_fd().
  Nanos wakes_at_{0};                              // The next expiry by its clocks that the World
                                                   // has scheduled.
  Function<std::shared_ptr<void>(Loop&)> program_;
  std::shared_ptr<void> kept_;
};

// Why a run of the World ended.
enum class Outcome : std::uint8_t {
  done,      // The condition holds.
  limit,     // The time is over.
  stuck,     // No event can ever happen any more.
  spinning,  // A hundred thousand steps without an advance of time: some loop never sleeps.
};

class SPATE_EXPORT World {
 public:
  explicit World(std::uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  static constexpr std::size_t kMostHosts = 250;
  // Adds a host; at most kMostHosts. Valid while the World exists.
  Host& add_host(std::string_view name);
  // Sets the properties of a link in both directions, for packets sent from now on. All hosts are
  // linked, initially with LinkOptions{}.
  void link(const Host& one, const Host& other, const LinkOptions& options);
  // As above, in one direction.
  void link_one_way(const Host& from, const Host& to, const LinkOptions& options);
  // Cuts the link between two hosts until heal(). TCP retransmits with growing delays. So its data
  // arrives some time after heal(), at most as long as the cut lasted, or its sender fails with
  // ETIMEDOUT (LinkOptions). UDP packets are lost.
  void cut(const Host& one, const Host& other, InFlight in_flight = InFlight::arrives);
  void heal(const Host& one, const Host& other);
  // As above, in one direction.
  void cut_one_way(const Host& from, const Host& to, InFlight in_flight = InFlight::arrives);
  void heal_one_way(const Host& from, const Host& to);

  // Sets a function that is called for each packet between two hosts before it leaves,
  // retransmissions included: for conditions that LinkOptions cannot express ("lose the third
  // response"). There is one rule; an empty one removes it. It must not call the World except now()
  // and draw().
  using Rule = std::function<Delivery(const WirePacket&)>;
  void set_rule(Rule rule);
  // Writes all packets to a file for tcpdump and Wireshark from now on, as they leave their hosts,
  // including those that are lost later. Returns the system's error if the file cannot be made.
  std::error_code capture(const std::string& path);
  // Returns all TCP connections and listeners, by host, as netstat lists them.
  std::vector<ConnectionInfo> connections() const;

  // Maps `name` to `host` on all hosts, as their /etc/hosts would, for resolve() and connecting by
  // name. A host may have several names, and a name several hosts. Names that are not mapped are
  // looked up in the system's /etc/hosts, then by name servers.
  void name(std::string_view name, const Host& host);
  // Sets the answer of the name servers for `name` from now on. For all other names they answer
  // that the name does not exist.
  void answer_name(std::string_view name, NameAnswer answer);

  // Returns the time since the World began.
  Nanos now() const;
  // Calls `task` when now() reaches `time` (at once if it has passed), from the World and not as a
  // host. It is destroyed uncalled with the World. It may call all functions of World and Host. A
  // loop inside a run() called by the program can only be reached by Loop::post().
  void at(Nanos time, Job task);
  // Runs all hosts until `condition` holds, which is checked between steps, or for `span`. Negative
  // counts as zero.
  Outcome run_until(const std::function<bool()>& condition, Nanos span);
  // Runs all hosts for `span`. Never returns `done`. Returns `limit` also if no event is left: time
  // passes.
  Outcome run_for(Nanos span);

  // Returns a random number 0 ... bound - 1, by the seed, for random decisions of the program.
  // `bound` is not 0.
  std::uint64_t draw(std::uint64_t bound);
  // Returns true with `probability` (0 ... 1), by the seed, to inject a fault of the program ("cut
  // the link here", "crash now"). explore() tries whether a failure needs it, and reports it as
  // `what`, which must be a literal. Other random numbers do not depend on how often it is called.
  bool inject_fault(double probability, std::string_view what);
  // Injects faults into the system calls of the hosts, by a plan in the format of SPATE_FAULTS
  // ("recv.short=.3,accept.EMFILE@5..20"; docs/guide/faults.md); an empty plan ends it. They are
  // faults of the seed as well. Returns a description of an error in the plan, which then has no
  // effect; empty if it is valid.
  std::string fail_calls(std::string_view plan);

  // Returns a hash of all deliveries and their times: equal for equal runs.
  std::uint64_t trace() const;
  // Returns the number of open simulated descriptors, those of the loops included, those of crashed
  // hosts not: to find leaks.
  std::size_t open_descriptors() const;

 private:
  std::unique_ptr<WorldState> state_;
};

}  // namespace spate::sim
