// explore(): runs one program in many Worlds, one per seed, to find a seed in which it fails.
//
//   const sim::Exploration found = sim::explore(1, 1000, [](sim::World& world) {
//     Shop shop(world);                               // Hosts, servers, clients.
//     world.run_until([&] { return shop.is_closed(); }, 1h);
//     sim::always(shop.is_closed(), "the shop closes");
//     sim::sometimes(shop.has_retried(), "an order was sent twice");
//   });
//   EXPECT_TRUE(found) << found.report();
//
// always() states a condition that must hold in every World; the first seed that violates it ends
// the exploration. sometimes() states a condition that must hold in at least one World; otherwise
// the Worlds did not exercise the program as intended. A seed decides order, jitter and losses. The
// program itself chooses hosts and links, and may use World::draw() for that.
//
// Minimization: a failing seed is run again with fewer and fewer of its faults, until none can be
// left out. Faults are packets that links lose, duplicate and reorder, World::inject_fault(), and
// failed system calls.
//
// Environment: SPATE_SEED=<number> runs one seed. SPATE_ONLY=<number>,<number>... (or "none") runs
// it with these faults only. SPATE_SEEDS=<number> runs that many seeds, and
// SPATE_SEEDS=<first>..<last> that range.
//
// Threads: a World and its exploration belong to one thread; several threads may each run one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spate/export.h"
#include "spate/sim/world.h"

namespace spate::sim {

// Checks a condition in this thread's World. `name` describes it. The first violation is recorded
// with its time, and the program continues. May be called anywhere, callbacks included. Without a
// World it does nothing, so servers and clients may call it in production, too.
SPATE_EXPORT void always(bool condition, std::string_view name);

// Records that the condition `name` was true once in an exploration. Must be called also where it
// is false. Otherwise as always().
SPATE_EXPORT void sometimes(bool condition, std::string_view name);

// Adds text to the World's trace(): data of the program that must be equal for equal seeds.
SPATE_EXPORT void note(std::string_view text);

struct ExploreOptions {
  std::uint64_t first_seed = 1;
  std::uint64_t seeds = 1000;
  // How many runs may be spent on minimizing the faults of a failure; 0: none.
  std::size_t shrink_runs = 300;
  // Runs each World in a separate process (fork()). Statics then start fresh, and an assertion or a
  // crash is a failure with a seed. Must not be used while other threads hold locks. Costs some
  // tenths of a millisecond per seed.
  bool isolates = false;
};

// The result of explore(). True if nothing failed.
struct SPATE_EXPORT Exploration {
  std::uint64_t seeds = 0;              // Number of seeds that were run.
  std::optional<std::uint64_t> failed;  // The first seed in which an always() failed.
  std::string failure;                  // Its name.
  Nanos time{0};                        // World::now() at the failure.
  std::uint64_t faults = 0;             // Number of faults that this seed has.
  // The faults needed for the failure, in order of time; nullopt if they were not minimized.
  std::optional<std::vector<std::uint64_t>> needed;
  std::vector<std::string> needed_lines;  // Their descriptions.
  std::vector<std::string> last_events;   // Up to 50, before the failure.
  std::string state;                      // At the failure: the waits of the hosts, and their
                                          // connections.
  // A second run of the seed had another trace or failed otherwise: the program depends on
  // something else than its seed. Repeating it may not help then.
  bool is_unsteady = false;
  std::string difference;          // The first event that differed between two more runs.
  std::vector<std::string> never;  // The sometimes() that were never true, if nothing failed.
  std::uint64_t trace = 0;         // A hash of all traces.
  std::uint64_t all_faults = 0;    // Over all seeds, each run once.
  Nanos all_time{0};               // Simulated time, over all seeds.

  explicit operator bool() const { return !failed && !is_unsteady && never.empty(); }
  // Returns a description of the failure, and the command that repeats it; empty if nothing failed.
  std::string report() const;
};

// Calls `program` with a World for each seed until one fails. The failing seed is run again, as is
// the first one, to check that a seed decides everything. The program must destroy all objects that
// it makes in a World before it returns. Statics outlive a World: the program should have no
// mutable ones, or be isolated. With SPATE_SEED, sometimes() is not checked. An invalid number in
// the environment ends the program.
SPATE_EXPORT Exploration explore(const ExploreOptions& options,
                                 const std::function<void(World&)>& program);
inline Exploration explore(std::uint64_t first_seed, std::uint64_t seeds,
                           const std::function<void(World&)>& program) {
  return explore({.first_seed = first_seed, .seeds = seeds}, program);
}

}  // namespace spate::sim
