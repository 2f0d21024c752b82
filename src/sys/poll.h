// poll and select, with timeouts in nanoseconds; kForever or more is none.
#pragma once

#include <poll.h>
#include <sys/select.h>

#include <cstddef>

#include "spate/time.h"
#include "sys/clock.h"
#include "sys/descriptor.h"

namespace spate::sys {

// The event of poll() when the peer has closed its end; 0 where the system has none.
#ifdef POLLRDHUP
inline constexpr short kPollPeerClosed = POLLRDHUP;
#else
inline constexpr short kPollPeerClosed = 0;
#endif

#ifdef __APPLE__
inline long poll(pollfd* fds, std::size_t count, Nanos timeout) {
  if (const int error = injected(SystemCall::poll)) return -error;
  const int limit = timeout >= kForever ? -1 : to_milliseconds(timeout);
  return result_of(::poll(fds, static_cast<nfds_t>(count), limit));
}
#else
inline long poll(pollfd* fds, std::size_t count, Nanos timeout) {
  if (const int error = injected(SystemCall::poll)) return -error;
  const timespec spec = to_timespec(timeout);
  return result_of(
      ::ppoll(fds, static_cast<nfds_t>(count), timeout >= kForever ? nullptr : &spec, nullptr));
}
#endif

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
