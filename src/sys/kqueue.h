// The system calls of kqueue.
#pragma once

#include <sys/event.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "spate/time.h"
#include "sys/clock.h"
#include "sys/descriptor.h"

namespace spate::sys {

// No fork() passes a queue on, but an exec() does.
inline long kqueue_create() {
  if (const int error = injected(SystemCall::kqueue)) return -error;
  Descriptor queue(opened(::kqueue()));
  if (!queue.is_open()) return queue.get();
  const long result = set_close_on_exec(queue.get());
  return result < 0 ? result : queue.release();
}

// Makes changes that have EV_RECEIPT. Each is replaced by its result: EV_ERROR, and an errno, or
// zero, as `data`.
inline long kevent_change(int queue, struct kevent* changes, int count) {
  if (const int error = injected(SystemCall::kevent_change)) return -error;
  const timespec at_once{};
  return result_of(::kevent(queue, changes, count, changes, count, &at_once));
}

// The capacity must not be zero: the kernel would return at once, whatever the timeout.
inline long kevent_wait(int queue, struct kevent* events, int capacity, Nanos timeout) {
  if (const int error = injected(SystemCall::kevent_wait)) return -error;
  constexpr Nanos kLongest = std::chrono::hours{24};  // Some kernels refuse years.
  const timespec spec = to_timespec(std::min(timeout, kLongest));
  return result_of(
      ::kevent(queue, nullptr, 0, events, capacity, timeout >= kForever ? nullptr : &spec));
}

// Returns the type of a file, one of the constants S_IF....
inline long file_type(int fd) {
  struct stat status;
  const long result = result_of(::fstat(fd, &status));
  return result < 0 ? result : static_cast<long>(status.st_mode & S_IFMT);
}

}  // namespace spate::sys
