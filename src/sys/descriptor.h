// File descriptors: ownership, and the calls that work on any kind.
//
// Functions in this directory return what the kernel does: zero or more, or a negated errno.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/fault.h"

namespace spate::sys {

inline std::error_code error_code(long result) {
  return result < 0 ? std::error_code(static_cast<int>(-result), std::system_category())
                    : std::error_code();
}

// The negated errno of a call that returned -1.
template <class T>
long result_of(T value) {
  return value < 0 ? -static_cast<long>(errno) : static_cast<long>(value);
}

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(long fd) : fd_(static_cast<int>(fd)) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);  // Linux closes it even when interrupted: never to be repeated.
  }

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

inline long read(int fd, void* data, std::size_t size) {
  if (const int error = injected(SystemCall::read)) return -error;
  return result_of(::read(fd, data, size));
}

inline long write(int fd, const void* data, std::size_t size) {
  if (const int error = injected(SystemCall::write)) return -error;
  return result_of(::write(fd, data, size));
}

inline long read_at(int fd, void* data, std::size_t size, std::int64_t offset) {
  if (const int error = injected(SystemCall::read)) return -error;
  return result_of(::pread(fd, data, shortened(SystemCall::read, size), offset));
}

inline long duplicate(int fd) {
  if (const int error = injected(SystemCall::duplicate)) return -error;
  return result_of(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

// Whether the descriptor is open.
inline bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

inline bool is_write_only(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) == O_WRONLY;
}

// Of the writing end of a pipe.
inline bool has_reader(int fd) {
  pollfd end{.fd = fd, .events = 0, .revents = 0};
  return ::poll(&end, 1, 0) == 0;
}

inline long set_nonblocking(int fd) {
  const long flags = result_of(::fcntl(fd, F_GETFL));
  if (flags < 0 || (flags & O_NONBLOCK) != 0) return flags < 0 ? flags : 0;
  return result_of(::fcntl(fd, F_SETFL, flags | O_NONBLOCK));
}

inline long set_close_on_exec(int fd) { return result_of(::fcntl(fd, F_SETFD, FD_CLOEXEC)); }

inline long create_eventfd() {
  if (const int error = injected(SystemCall::eventfd)) return -error;
  return result_of(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

// A timer on the wall clock that never expires but becomes readable when the clock is set.
inline long create_clock_change_timer() {
  if (const int error = injected(SystemCall::timerfd_create)) return -error;
  return result_of(::timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK));
}

inline long arm_clock_change_timer(int fd) {
  if (const int error = injected(SystemCall::timerfd_settime)) return -error;
  itimerspec never{};
  never.it_value.tv_sec = INT64_MAX / 4'000'000'000;
  return result_of(
      ::timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, nullptr));
}

}  // namespace spate::sys
