#include "sys/clock.h"

#include <cstddef>
#include <new>

namespace spate {

namespace {

class SystemClock final : public Clock {
 public:
  Nanos monotonic() override { return sys::read_clock(CLOCK_MONOTONIC); }
  WallTime wall() override { return WallTime{sys::read_clock(CLOCK_REALTIME)}; }
};

}  // namespace

Clock& system_clock() {
  // Never destroyed: other threads may still be in their loops while the process exits.
  alignas(SystemClock) static std::byte memory[sizeof(SystemClock)];
  static Clock& clock = *new (memory) SystemClock;
  return clock;
}

}  // namespace spate
