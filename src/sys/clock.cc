#include "sys/clock.h"

#include "base/immortal.h"

namespace spate {

namespace {

class SystemClock final : public Clock {
 public:
  constexpr SystemClock() = default;
  Nanos monotonic() override { return sys::read_clock(CLOCK_MONOTONIC); }
  WallTime wall() override { return WallTime{sys::read_clock(CLOCK_REALTIME)}; }
};

constinit Immortal<SystemClock> clock;

}  // namespace

Clock& system_clock() { return clock.object; }

}  // namespace spate
