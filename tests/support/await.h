// A blocking wait for a descriptor, for a thread of a test that runs no loop.
#pragma once

#include <poll.h>

#include <cerrno>

namespace spate::testing {

// Waits until one of the events (POLLIN, POLLOUT) is ready, and returns whether it is. After an
// interruption it waits again for up to 30 s; work of the kernel interrupts a thread, too.
inline bool await(int fd, short events) {
  pollfd waiting{.fd = fd, .events = events, .revents = 0};
  int count = 0;
  do {
    count = ::poll(&waiting, 1, 30'000);
  } while (count < 0 && errno == EINTR);
  return count == 1;
}

}  // namespace spate::testing
