// TestLoop: a loop whose clock the test controls.
//
//   sim::TestLoop loop;
//   loop->after(24h, [&] { is_over = true; });
//   loop.advance(24h);                                // Some microseconds.
//
// It is a World with one host: objects made while it exists belong to that host. Connections over
// 127.0.0.1 and socket pairs work, and world() has all functions of a World. Time advances only by
// advance(). The program need not run the loop. If it does, the clock advances by the time for
// which the loop waits.
//
// Ownership and threads: as for World. At most one per thread, and no other World meanwhile;
// Streams, timers and servers must be destroyed before it.
#pragma once

#include <cstdint>

#include "spate/loop.h"
#include "spate/sim/world.h"
#include "spate/time.h"

namespace spate::sim {

class TestLoop {
 public:
  explicit TestLoop(std::uint64_t seed = 1)
      : world_(seed), host_(world_.add_host("loop")), turn_(host_) {}

  Loop& operator*() const { return host_.loop(); }
  Loop* operator->() const { return &host_.loop(); }

  // Advances the clock by `span`, and processes all events due in it, including those at its end.
  // Negative counts as zero. Returns false if the loop never slept (Outcome::spinning).
  bool advance(Nanos span) {
    const bool slept = world_.run_for(span) != Outcome::spinning;
    host_.run([](Loop&) {});  // Updates Loop::now(), from which the next timers count.
    return slept;
  }
  // Returns the time since the TestLoop was made.
  Nanos now() const { return world_.now(); }

  World& world() { return world_; }
  Host& host() { return host_; }

 private:
  World world_;
  Host& host_;
  Host::Turn turn_;
};

}  // namespace spate::sim
