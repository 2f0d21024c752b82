// TestLoop: a loop whose clock the test owns.
//
//   sim::TestLoop loop;
//   loop->after(24h, [&] { is_over = true; });
//   loop.advance(24h);                                // Some microseconds.
//
// It is a World with one host: what is made while it exists is that host's. Connections over
// 127.0.0.1 and pairs of sockets work, time stands still but for advance(), and whatever a World
// has is there: world(). Its loop is not to be run by the program, but may be, which moves the
// clock as far as it waits.
//
// Ownership and threads: as with World. One a thread, and no other World meanwhile; Streams, timers
// and servers go before it.
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

  // Lets a span of time pass, and all happen that becomes due in it, the end included. Negative
  // counts as zero. False if the loop never slept (Outcome::spinning).
  bool advance(Nanos span) {
    const bool slept = world_.run_for(span) != Outcome::spinning;
    host_.run([](Loop&) {});  // Who goes on from here counts from now.
    return slept;
  }
  // Since it was made.
  Nanos now() const { return world_.now(); }

  World& world() { return world_; }
  Host& host() { return host_; }

 private:
  World world_;
  Host& host_;
  Host::Turn turn_;
};

}  // namespace spate::sim
