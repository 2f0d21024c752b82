// poll and select, with timeouts in nanoseconds; kForever or more is none.
#pragma once

#include <poll.h>
#include <sys/select.h>

#include <cstddef>

#include "spate/time.h"
#include "sys/clock.h"
#include "sys/descriptor.h"

namespace spate::sys {

inline long poll(pollfd* fds, std::size_t count, Nanos timeout) {
  if (const int error = injected(SystemCall::poll)) return -error;
  const timespec spec = to_timespec(timeout);
  return result_of(::ppoll(fds, count, timeout >= kForever ? nullptr : &spec, nullptr));
}

// Waits until the descriptor takes output, or has an error. Zero if it does not within the timeout.
inline long wait_for_output(int fd, Nanos timeout) {
  pollfd end{.fd = fd, .events = POLLOUT, .revents = 0};
  return poll(&end, 1, timeout);
}

inline long select(int end, fd_set* read, fd_set* write, fd_set* except, Nanos timeout) {
  if (const int error = injected(SystemCall::select)) return -error;
  const timespec spec = to_timespec(timeout);
  return result_of(
      ::pselect(end, read, write, except, timeout >= kForever ? nullptr : &spec, nullptr));
}

}  // namespace spate::sys
