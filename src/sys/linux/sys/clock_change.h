// Reports that the wall clock was set.
#pragma once

#include <sys/timerfd.h>

#include <cstdint>

#include "sys/descriptor.h"

namespace spate::sys {

// Makes a timer on the wall clock that never expires but becomes readable when the clock is set.
inline long create_clock_change_timer() {
  if (const int error = injected(SystemCall::timerfd_create)) return -error;
  return opened(::timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK));
}

inline long arm_clock_change_timer(int fd) {
  if (const int error = injected(SystemCall::timerfd_settime)) return -error;
  itimerspec never{};
  never.it_value.tv_sec = INT64_MAX / 4'000'000'000;
  return result_of(
      ::timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, nullptr));
}

}  // namespace spate::sys
