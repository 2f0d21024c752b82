// The system calls of epoll.
#pragma once

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "spate/time.h"
#include "sys/clock.h"
#include "sys/descriptor.h"

namespace spate::sys {

inline long epoll_create() {
  if (const int error = injected(SystemCall::epoll_create)) return -error;
  return opened(::epoll_create1(EPOLL_CLOEXEC));
}

inline long epoll_ctl(int epoll, int operation, int fd, epoll_event& event) {
  if (const int error = injected(SystemCall::epoll_ctl)) return -error;
  return result_of(::epoll_ctl(epoll, operation, fd, &event));
}

inline long epoll_wait(int epoll, epoll_event* events, int capacity, int timeout_ms) {
  if (const int error = injected(SystemCall::epoll_wait)) return -error;
  return result_of(::epoll_wait(epoll, events, capacity, timeout_ms));
}

// Calls the C library's epoll_pwait2(), or the kernel where the library has none, as musl. A
// template, so that the name need not exist.
template <class Fd>
int epoll_wait_until(Fd epoll, epoll_event* events, int capacity, const timespec* timeout) {
  if constexpr (requires { epoll_pwait2(epoll, events, capacity, timeout, nullptr); }) {
    return epoll_pwait2(epoll, events, capacity, timeout, nullptr);
  } else {
    return static_cast<int>(
        ::syscall(SYS_epoll_pwait2, epoll, events, capacity, timeout, nullptr, 0));
  }
}

// Waits with a resolution of nanoseconds; -ENOSYS before Linux 5.11.
inline long epoll_wait_precise(int epoll, epoll_event* events, int capacity, Nanos timeout) {
  if (const int error = injected(SystemCall::epoll_wait)) return -error;
  const timespec spec = to_timespec(timeout);
  return result_of(epoll_wait_until(epoll, events, capacity, &spec));
}

}  // namespace spate::sys
