// The faults of a World, drawn by its seed: a random subset of all kinds.
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
  if (world.draw(4) == 0) options.mtu = 68 + world.draw(1500);
  return options;
}

inline sim::InFlight drawn_in_flight(sim::World& world) {
  constexpr sim::InFlight kAll[] = {sim::InFlight::arrives, sim::InFlight::lost,
                                    sim::InFlight::held};
  return kAll[world.draw(3)];
}

inline void draw_clock(sim::World& world, sim::Host& host) {
  if (world.draw(3) != 0) return;
  const int drift = static_cast<int>(world.draw(200'000)) - 100'000;
  host.set_clock({.ahead = drawn_span(world, 24h) - 12h, .drift = drift});
}

// System calls that fail in harmless ways, which break no connection.
inline void draw_call_faults(sim::World& world, Nanos end) {
  if (world.draw(3) != 0) return;
  const std::string problem = world.fail_calls(
      "*.short=.2,*.EINTR=.1,recv.EAGAIN=.1,send.EAGAIN=.1,accept.ECONNABORTED=.1,"
      "send.ENOBUFS=.02,accept.EMFILE=.05");
  sim::always(problem.empty(), problem);
  world.at(end, [&world] { world.fail_calls(""); });
}

// Links the hosts, and injects faults until `end`: afterwards all is well. Only `mortal` crashes.
inline void draw_weather(sim::World& world, sim::Host& mortal, sim::Host& other, Nanos end) {
  world.link_one_way(mortal, other, drawn_link(world));
  world.link_one_way(other, mortal, drawn_link(world));
  draw_clock(world, mortal);
  draw_clock(world, other);
  draw_call_faults(world, end);
  const bool has_cuts = world.draw(2) == 0;
  const bool has_crashes = world.draw(2) == 0;
  const bool has_pauses = world.draw(3) == 0;
  for (Nanos time = drawn_span(world, end / 2); time < end; time += drawn_span(world, end / 2)) {
    const Nanos later = std::min(end, time + drawn_span(world, 20s));
    const sim::InFlight in_flight = drawn_in_flight(world);
    const bool is_one_way = world.draw(2) == 0;
    if (has_cuts && is_one_way && world.inject_fault(1, "a cut in one direction")) {
      world.at(time, [&, in_flight] { world.cut_one_way(mortal, other, in_flight); });
      world.at(later, [&] { world.heal(mortal, other); });
    } else if (has_cuts && world.inject_fault(1, "a cut")) {
      world.at(time, [&, in_flight] { world.cut(mortal, other, in_flight); });
      world.at(later, [&] { world.heal(mortal, other); });
    } else if (has_crashes && world.inject_fault(1, "a crash")) {
      world.at(time, [&] {
        if (mortal.is_at_rest()) mortal.crash();
      });
      world.at(later, [&] {
        if (!mortal.is_up()) mortal.restart();
      });
    } else if (has_pauses && world.inject_fault(1, "a pause")) {
      world.at(time, [&] {
        if (mortal.is_at_rest()) mortal.pause();
      });
      world.at(later, [&] { mortal.resume(); });
    }
  }
  world.at(end, [&] { world.link(mortal, other, {}); });
}

}  // namespace spate::testing
