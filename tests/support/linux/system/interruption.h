// The interruption of a thread that has closed an io_uring.
#pragma once

#include <sys/epoll.h>
#include <unistd.h>

namespace spate::testing {

// After a ring was closed: waits for the interruption that follows, so that it does not hit the
// next test. epoll_wait(2) returns then, whereas the kernel would restart poll(2).
inline void await_interruption() {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event;
  ::epoll_wait(set, &event, 1, 50);
  ::close(set);
}

}  // namespace spate::testing
