#include "sys/clock.h"

namespace spate {

namespace {

class SystemClock final : public Clock {
 public:
  Nanos monotonic() override { return sys::read_clock(CLOCK_MONOTONIC); }
  WallTime wall() override { return WallTime{sys::read_clock(CLOCK_REALTIME)}; }
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

}  // namespace spate
