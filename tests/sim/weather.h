// What happens to a World whose seed draws it: a subset of all kinds of trouble, a swarm's.
#pragma once

#include <span>
#include <string>

#include "spate/sim/explore.h"
#include "spate/sim/world.h"

namespace spate::testing {

using namespace std::chrono_literals;

inline Nanos drawn_span(sim::World& world, Nanos most) {
  return Nanos{static_cast<std::int64_t>(world.draw(static_cast<std::uint64_t>(most.count()) + 1))};
}

inline sim::LinkOptions drawn_link(sim::World& world) {
  sim::LinkOptions options;
  if (world.draw(2) == 0) options.latency = drawn_span(world, 100ms);
  if (world.draw(2) == 0) options.jitter = drawn_span(world, 100ms);
  if (world.draw(2) == 0) options.loss = static_cast<double>(world.draw(20)) / 100;
  if (world.draw(4) == 0) options.duplicates = static_cast<double>(world.draw(20)) / 100;
  if (world.draw(4) == 0) options.reorder = static_cast<double>(world.draw(20)) / 100;
  if (world.draw(4) == 0) options.bytes_per_second = 50'000 + world.draw(10'000'000);
  return options;
}

// Links one to the other now, and lets trouble befall them until `end`: then all is well again.
// Only `mortal` crashes.
inline void draw_weather(sim::World& world, sim::Host& mortal, sim::Host& other, Nanos end) {
  world.link_one_way(mortal, other, drawn_link(world));
  world.link_one_way(other, mortal, drawn_link(world));
  const bool has_cuts = world.draw(2) == 0;
  const bool has_crashes = world.draw(2) == 0;
  const bool has_pauses = world.draw(3) == 0;
  for (Nanos time = drawn_span(world, end / 2); time < end; time += drawn_span(world, end / 2)) {
    const Nanos later = std::min(end, time + drawn_span(world, 20s));
    if (has_cuts && world.draw(2) == 0) {
      world.at(time, [&] { world.cut_one_way(mortal, other); });
      world.at(later, [&] { world.heal(mortal, other); });
    } else if (has_cuts) {
      world.at(time, [&] { world.cut(mortal, other); });
      world.at(later, [&] { world.heal(mortal, other); });
    } else if (has_crashes) {
      world.at(time, [&] {
        if (mortal.is_up()) mortal.crash();
      });
      world.at(later, [&] {
        if (!mortal.is_up()) mortal.restart();
      });
    } else if (has_pauses) {
      world.at(time, [&] {
        if (mortal.is_up()) mortal.pause();
      });
      world.at(later, [&] { mortal.resume(); });
    }
  }
  world.at(end, [&] { world.link(mortal, other, {}); });
}

}  // namespace spate::testing
