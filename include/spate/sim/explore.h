// explore(): one program in many Worlds, a seed each, to find one in which it goes wrong.
//
//   const sim::Exploration found = sim::explore(1, 1000, [](sim::World& world) {
//     Shop shop(world);                               // Hosts, servers, clients.
//     world.run_until([&] { return shop.is_closed(); }, 1h);
//     sim::always(shop.is_closed(), "the shop closes");
//     sim::sometimes(shop.has_retried(), "an order was sent twice");
//   });
//   EXPECT_TRUE(found) << found.report();
//
// always() is what must hold in each World; the first seed in which it does not ends the
// exploration. sometimes() is what must hold in one at least: else the Worlds are not as wild as
// their author thinks, and the program was not tried. Other seeds draw other orders, jitter and
// losses by themselves; what links and hosts there are is left to the program, and to
// World::draw().
//
// A seed that fails is run again with fewer and fewer of its faults (what links lose, double and
// let overtake, World::strikes(), and faults of system calls), until none can be left out.
//
// In the environment, SPATE_SEED=<number> has one seed run, SPATE_ONLY=<number>,<number>... (or
// "none") with these faults of it only, and SPATE_SEEDS=<number> that many seeds, or those from
// <first>..<last>.
//
// Threads: a World is one thread's, so is an exploration; there may be one a thread.
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

// `name` is what must hold, here and now, in this thread's World: the first that does not is kept
// with its time, and the program goes on. Anywhere, callbacks included; without a World it does
// nothing, so that servers and clients may ask it in production as well.
SPATE_EXPORT void always(bool condition, std::string_view name);

// `name` must hold in one World of an exploration, once: to be called also where it does not. Both
// as always().
SPATE_EXPORT void sometimes(bool condition, std::string_view name);

// Becomes part of the World's trace(): what the program itself wants to be equal for equal seeds.
SPATE_EXPORT void note(std::string_view text);

struct ExploreOptions {
  std::uint64_t first_seed = 1;
  std::uint64_t seeds = 1000;
  // How many runs may be spent on what a failure needs; 0: none.
  std::size_t shrink_runs = 300;
  // Each World in a process of its own (fork()): statics begin anew, and a program that asserts or
  // crashes is a failure with a seed. Not with threads that hold locks meanwhile. It takes some
  // tenths of a millisecond more for a seed.
  bool isolates = false;
};

// What explore() has found. True if nothing is wrong.
struct SPATE_EXPORT Exploration {
  std::uint64_t seeds = 0;              // That were run.
  std::optional<std::uint64_t> failed;  // The first in which an always() did not hold.
  std::string failure;                  // Its name.
  Nanos time{0};                        // World::now() then.
  std::uint64_t faults = 0;             // That this seed has in all.
  // Those that the failure needs, in the order in which they come; none if that was not tried.
  std::optional<std::vector<std::uint64_t>> needed;
  std::vector<std::string> needed_lines;  // What they are.
  std::vector<std::string> last_events;   // Up to 50, before the failure.
  std::string state;                      // Then: what hosts wait for, and their connections.
  // Its second run had another trace or failed otherwise: the program reads something else than
  // its seed. Then repeating it may not help.
  bool is_unsteady = false;
  std::string difference;          // The first event that was another one, of two more runs.
  std::vector<std::string> never;  // What sometimes() never saw, if nothing failed.
  std::uint64_t trace = 0;         // A hash of all traces.
  std::uint64_t all_faults = 0;    // Of all seeds, each run once.
  Nanos all_time{0};               // Simulated, of all.

  explicit operator bool() const { return !failed && !is_unsteady && never.empty(); }
  // What is wrong, and the line that repeats it; empty if nothing is.
  std::string report() const;
};

// Calls `program` with a World for each seed until one fails. That one is run again, as is the
// first, to see whether a seed decides all. What the program makes in a World it must destroy
// before it returns. Statics outlive it: the program should have none that change, or be isolated.
// With SPATE_SEED, sometimes() is not asked for. What the environment says and is no number ends
// the program.
SPATE_EXPORT Exploration explore(const ExploreOptions& options,
                                 const std::function<void(World&)>& program);
inline Exploration explore(std::uint64_t first_seed, std::uint64_t seeds,
                           const std::function<void(World&)>& program) {
  return explore({.first_seed = first_seed, .seeds = seeds}, program);
}

}  // namespace spate::sim
