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
// In the environment, SPATE_SEED=<number> has one seed run, and SPATE_SEEDS=<number> that many.
//
// Threads: a World is one thread's, so is an exploration; there may be one a thread.
#pragma once

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

// What explore() has found. True if nothing is wrong.
struct SPATE_EXPORT Exploration {
  std::uint64_t seeds = 0;              // That were run.
  std::optional<std::uint64_t> failed;  // The first in which an always() did not hold.
  std::string failure;                  // Its name.
  Nanos time{0};                        // World::now() then.
  // Its second run had another trace or failed otherwise: the program reads something else than
  // its seed. Then repeating it may not help.
  bool is_unsteady = false;
  std::vector<std::string> never;  // What sometimes() never saw, if nothing failed.
  std::uint64_t trace = 0;         // A hash of all traces.

  explicit operator bool() const { return !failed && !is_unsteady && never.empty(); }
  // What is wrong, and the line that repeats it; empty if nothing is.
  std::string report() const;
};

// Calls `program` with a World for each of `seeds` seeds, from `first_seed` on, until one fails.
// That one is run again, as is the first, to see whether a seed decides all. What the program makes
// in a World it must destroy before it returns. Statics outlive it: the program should have none
// that change. With SPATE_SEED, sometimes() is not asked for.
SPATE_EXPORT Exploration explore(std::uint64_t first_seed, std::uint64_t seeds,
                                 const std::function<void(World&)>& program);

}  // namespace spate::sim
