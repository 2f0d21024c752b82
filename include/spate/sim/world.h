// World: machines, a network and time, simulated in one thread and all from one seed.
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
// For programs that link to spate::sim instead of spate::spate: the same library, whose system
// calls come here while the thread that makes them has a World. Without one they are the system's.
// Nothing waits: where all loops would sleep, the clock moves on to what happens next. Two runs
// with one seed, of a program that reads nothing else, are the same to the last byte: trace().
//
// Ownership: the World owns hosts and their loops. Streams, servers and loops of the caller's own
// are destroyed before it. One World a thread.
//
// Threads: the one that made it, for everything. Threads that the library starts (Workers, a
// ThreadPool) are the World's: of all of them and of this one only one runs at a time, until it
// waits in the library, and the World decides which is next. So they may do what they may do
// elsewhere, and use World and Host, but for running the World. Who waits for them in another way
// (a latch of its own, a mutex that is held while the library waits) waits for ever. The program's
// own threads are none of the World's. Workers and ThreadPools are destroyed before it.
//
// No descriptor of the system's can be watched; files are the system's. docs/guide/simulation.md
// says what else is not simulated. explore.h runs one program in many Worlds.
//
// Inside callbacks of a host's loop: everything but destroying the World. A run() nested there, of
// any loop, lets the others go on meanwhile.
//
// Memory: running out of the program's own ends it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "spate/assert.h"
#include "spate/export.h"
#include "spate/loop.h"
#include "spate/net/address.h"
#include "spate/net/resolver.h"
#include "spate/sim/link.h"
#include "spate/time.h"

namespace spate::sim {

class Running;
class World;
struct WorldState;

// Of what there are too few descriptors.
enum class Shortage : std::uint8_t { process, system };  // EMFILE, ENFILE.

// A machine: an address and a loop. What is opened while its code runs, in run() or in its loop's
// callbacks, is its own.
class SPATE_EXPORT Host {
 public:
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  std::string_view name() const { return name_; }
  // 10.0.0.1 for the first host, and so on; each has 127.0.0.1 and ::1 as well.
  Address address(std::uint16_t port) const;
  // The same as IPv6: fd00::1, and so on.
  Address address_ipv6(std::uint16_t port) const;
  // The World turns it. Code of the caller's that uses it directly belongs into run(). Not while
  // the host is down; restart() makes another one.
  Loop& loop() {
    SPATE_ASSERT(is_up(), "a host that has crashed has no loop until restart()");
    return *loop_;
  }

  // Calls `program` with loop() as this machine, at once, and returns what it returns. It may run
  // loops, its own included. Loop::now() of loop() is the time of this call.
  template <class Program>
  auto run(Program&& program) {
    const Turn turn(*this);
    update_now();
    return std::forward<Program>(program)(loop());
  }

  // Calls `program` as run() does, now and after each restart(), and keeps what it returns (a
  // Server, a shared_ptr, a tuple) until the host crashes or the World ends. Once for each host.
  template <class Program>
  void boot(Program program) {
    SPATE_ASSERT(!program_, "a host boots one program");
    program_ = [program = std::move(program)](Loop& loop) mutable -> std::shared_ptr<void> {
      return std::make_shared<std::invoke_result_t<Program&, Loop&>>(program(loop));
    };
    start_program();
  }

  // Power is cut: what boot() keeps is destroyed, sockets are closed and nobody is told, and its
  // loop is never turned again. Peers that have something to send hear nothing: they give up with
  // ETIMEDOUT, after 127 s where they connect and after a quarter of an hour else, or get a reset
  // once the host is up again. Peers that only wait are told nothing, ever, unless they have
  // set_keep_alive(); set_user_timeout() changes how long others wait. What the program keeps
  // itself of this host's objects may be destroyed now or later, and is of no more use.
  // Only while is_at_rest().
  void crash();
  // Up again after crash(): the same addresses, a new loop, no limits of descriptors and memory,
  // and the program of boot() begins anew.
  void restart();
  bool is_up() const { return loop_ != nullptr; }
  // It is up, and none of its code runs, or waits inside the library (a run() of the program's own,
  // Workers that begin or stop): at() may call while it does.
  bool is_at_rest() const;

  // As a process that is stopped (SIGSTOP): its loop is not turned, while its kernel goes on to
  // accept, to receive and to acknowledge as far as there is room. Its timers are late, then. Not
  // while it is inside a run() of the program's own.
  void pause();
  void resume();

  // From now on, what would open more than `most` descriptors fails; those of its loop count, about
  // 3. open_descriptors() says how many are open.
  void limit_descriptors(std::size_t most, Shortage shortage = Shortage::process);
  std::size_t open_descriptors() const;

  // Which ports connect(), and bind() to port 0, are given from now on: `first` ... `last`, at
  // first 32768 ... 60999, as Linux has them. Without one that is free, connect() fails with
  // EADDRNOTAVAIL and bind() with EADDRINUSE. The end of a connection that has ended first keeps
  // its port for a minute more. 1 <= first <= last.
  void set_port_range(std::uint16_t first, std::uint16_t last);
  // From now on its sockets and pipes have `bytes` for what TCP has not yet sent or read, for
  // packets that were not read, and for what is in Unix sockets and pipes. Where they are used up,
  // what opens or accepts a socket or sends a packet fails with ENOBUFS, what opens a pipe with
  // ENFILE, Streams take no more to send, their peers are given no more room, and packets of UDP
  // that come are dropped. A pipe takes nothing while less than 4,096 bytes are left. Zero: no
  // limit, as at first and after a restart.
  void limit_memory(std::size_t bytes);
  // How much of that is used.
  std::size_t used_memory() const;

  // How its clocks differ from the World's, from now on and after a restart as well. Its loops'
  // timers go by them. The monotonic clock does not jump.
  void set_clock(const ClockOptions& options);

  // Threads of a ThreadPool begin with the work that they get, and all threads with their first, up
  // to `most` later, by the seed. At first they begin at once. Zero or more.
  void delay_work(Nanos most);

  // A signal to its process, 1 ... 64: the Signal watchers of its loops are called. False if there
  // is none; then nothing happens, whatever the signal.
  bool raise(int signum);

  // What spawn() finds as `name` on this host, from now on: `body(running)` is called by its loop
  // for each process, which has begun by then, and what it returns is kept until that has ended
  // (running.h). Other names are not found (ENOENT); working directories and environments are not
  // looked at.
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

  // While it exists, the thread's code is the host's: what run() is made of.
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
  std::vector<std::unique_ptr<Loop>> dead_loops_;  // Objects of the program's may still use them.
  std::unique_ptr<Loop> loop_;                     // None while it is down.
  int set_ = -1;                                   // Its poll_fd().
  Nanos wakes_at_{0};                              // Of its clocks, as far as the World knows.
  std::move_only_function<std::shared_ptr<void>(Loop&)> program_;
  std::shared_ptr<void> kept_;
};

// What name servers say of a name.
struct NameAnswer {
  std::vector<Address> addresses{};  // Of either family. Ports do not matter.
  // Instead of addresses: no_such_host, no_address, server_failure or bad_answer; timeout is that
  // no server answers: who asks gives up after his timeouts and tries (ResolverOptions; at first
  // after 75 s).
  std::optional<NameError> error{};
  // For how long it is under way, and up to how much longer, by the seed. Negative counts as zero.
  Nanos delay{1'000'000};
  Nanos jitter{0};
};

// Why a run of the World has ended.
enum class Outcome : std::uint8_t {
  done,      // The condition holds.
  limit,     // The time is over.
  stuck,     // Nothing is left that could ever happen.
  spinning,  // A hundred thousand steps, and time has not moved: some loop never sleeps.
};

class SPATE_EXPORT World {
 public:
  explicit World(std::uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  static constexpr std::size_t kMostHosts = 250;
  // Up to kMostHosts. Valid as long as the World.
  Host& add_host(std::string_view name);
  // For what is sent from now on, in both directions. Any two hosts are linked, at first with
  // LinkOptions{}.
  void link(const Host& one, const Host& other, const LinkOptions& options);
  // The same in one direction.
  void link_one_way(const Host& from, const Host& to, const LinkOptions& options);
  // Nothing passes between the two until heal(). TCP sends it again and again, less and less often:
  // it comes through some time after heal(), as long as the cut lasted at most, or its sender fails
  // with ETIMEDOUT (LinkOptions). Packets of UDP are lost.
  void cut(const Host& one, const Host& other, InFlight in_flight = InFlight::arrives);
  void heal(const Host& one, const Host& other);
  // The same in one direction.
  void cut_one_way(const Host& from, const Host& to, InFlight in_flight = InFlight::arrives);
  void heal_one_way(const Host& from, const Host& to);

  // Asked of each packet between two hosts before it leaves, retries included: for what the numbers
  // of LinkOptions cannot say ("the third answer is lost"). One rule; an empty one ends it. It must
  // not call the World but for now() and draw().
  using Rule = std::function<Fate(const WirePacket&)>;
  void set_rule(Rule rule);
  // Writes all packets to a file for tcpdump and Wireshark from now on, as they leave their hosts,
  // those that get lost included. With the error of the system if it cannot be made.
  std::error_code capture(const std::string& path);
  // What there is of TCP, by host, as netstat lists it.
  std::vector<ConnectionInfo> connections() const;

  // From now on `name` is this host's to all hosts, as by their /etc/hosts, for resolve() and
  // whatever connects to names. A host may have many names, a name many hosts. Where there is no
  // name, the system's /etc/hosts holds. Other names are asked of name servers.
  void name(std::string_view name, const Host& host);
  // What name servers say of `name` to whoever asks from now on. Of any other name they say that it
  // does not exist.
  void answer_name(std::string_view name, NameAnswer answer);

  // Since the World began.
  Nanos now() const;
  // Calls `task` at a time of now()'s, past ones at once, from the World and not as a host; it is
  // destroyed uncalled with the World. It may call everything of World and Host. A loop that is
  // inside a run() of the program's own is reached by Loop::post() only.
  void at(Nanos time, Job task);
  // Lets all hosts go on until `condition` holds, which is asked between steps, or for `span`.
  // Negative counts as zero.
  Outcome run_until(const std::function<bool()>& condition, Nanos span);
  // Never `done`; `limit` also if nothing is left: time passes.
  Outcome run_for(Nanos span);

  // 0 ... bound - 1, by the seed: what the program itself leaves to chance. `bound` is not 0.
  std::uint64_t draw(std::uint64_t bound);
  // True with `probability` (0 ... 1), by the seed: a fault of the program's own ("cut the link
  // here", "crash now"). explore() tries whether a failure needs it, and names it by `what`, which
  // is a literal. Other draws do not depend on how often it is called.
  bool strikes(double probability, std::string_view what);
  // From now on system calls of the hosts' code fail as `plan` says, which is that of SPATE_FAULTS
  // ("recv.short=.3,accept.EMFILE@5..20"; docs/guide/faults.md); an empty one ends it. These are
  // faults of the seed as well. Returns what is wrong with the plan, which then changes nothing;
  // empty: nothing is.
  std::string fail_calls(std::string_view plan);

  // A hash of all that was delivered, and when: equal for equal runs.
  std::uint64_t trace() const;
  // Simulated descriptors that are open, the loops' own included, those of crashed hosts not: to
  // find what was left open.
  std::size_t open_descriptors() const;

 private:
  std::unique_ptr<WorldState> state_;
};

}  // namespace spate::sim
