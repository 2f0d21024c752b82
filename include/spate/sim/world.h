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
// Threads: the one that made it, for everything. There are no others: whatever of the library would
// start one (Workers, ThreadPool, offload()) reports EAGAIN; nor processes, nor descriptors of the
// system's to be watched. Files are the system's. docs/guide/simulation.md says what else is not
// simulated.
//
// Inside callbacks of a host's loop: everything but destroying the World. A run() nested there, of
// any loop, lets the others go on meanwhile.
//
// Memory: running out of the program's own ends it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "spate/export.h"
#include "spate/loop.h"
#include "spate/net/address.h"
#include "spate/time.h"

namespace spate::sim {

class World;
struct WorldState;

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
  // The World turns it. Code of the caller's that uses it directly belongs into run().
  Loop& loop() { return *loop_; }

  // Calls `program` with loop() as this machine, at once, and returns what it returns. It may run
  // loops, its own included.
  template <class Program>
  auto run(Program&& program) {
    const Turn turn(*this);
    return std::forward<Program>(program)(loop());
  }

 private:
  friend World;
  friend WorldState;

  // The time during which a host's code runs.
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

  Host(WorldState& world, int index, std::string_view name);

  WorldState& world_;
  int index_;
  std::string name_;
  std::unique_ptr<Loop> loop_;
  int set_ = -1;  // Its poll_fd().
};

// A link delivers in order. Each packet takes `latency`, and up to `jitter` longer by the seed;
// negative counts as zero.
struct LinkOptions {
  Nanos latency{100'000};
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
  // Nothing passes between the two until heal(). TCP would send it again and again: it is kept, and
  // sent at heal().
  void cut(const Host& one, const Host& other);
  void heal(const Host& one, const Host& other);

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

  // A hash of all that was delivered, and when: equal for equal runs.
  std::uint64_t trace() const;
  // Simulated descriptors that are open, the loops' own included: to find what was left open.
  std::size_t open_descriptors() const;

 private:
  std::unique_ptr<WorldState> state_;
};

}  // namespace spate::sim
