// epoll's system calls.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

#include "spate/time.h"
#include "sys/clock.h"
#include "sys/descriptor.h"

namespace spate::sys {

inline long epoll_create() {
  if (const int error = injected(SystemCall::epoll_create)) return -error;
  return result_of(::epoll_create1(EPOLL_CLOEXEC));
}

inline long epoll_ctl(int epoll, int operation, int fd, epoll_event& event) {
  if (const int error = injected(SystemCall::epoll_ctl)) return -error;
  return result_of(::epoll_ctl(epoll, operation, fd, &event));
}

inline long epoll_wait(int epoll, epoll_event* events, int capacity, int timeout_ms) {
  if (const int error = injected(SystemCall::epoll_wait)) return -error;
  return result_of(::epoll_wait(epoll, events, capacity, timeout_ms));
}

// With nanoseconds; -ENOSYS before Linux 5.11.
inline long epoll_wait_precise(int epoll, epoll_event* events, int capacity, Nanos timeout) {
  if (const int error = injected(SystemCall::epoll_wait)) return -error;
  const timespec spec = to_timespec(timeout);
  return result_of(::epoll_pwait2(epoll, events, capacity, &spec, nullptr));
}

}  // namespace spate::sys
