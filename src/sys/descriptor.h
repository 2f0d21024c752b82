// File descriptors: ownership, and the calls that work on any kind.
//
// Functions in this directory return the kernel's result: zero or more, or a negated errno.
#pragma once

#include <fcntl.h>
#include <poll.h>
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

// Returns the negated errno of a call that returned -1.
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
    if (fd_ >= 0) ::close(fd_);  // Linux closes it even when interrupted: must not be repeated.
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

// The descriptors 0, 1 and 2 are the standard ones.
constexpr int kStandards = 3;

// Duplicates a descriptor. The new one is close-on-exec, and its number is at least `lowest`: not a
// standard one.
inline long duplicate(int fd, int lowest = kStandards) {
  if (const int error = injected(SystemCall::duplicate)) return -error;
  return result_of(::fcntl(fd, F_DUPFD_CLOEXEC, lowest));
}

// Returns the descriptor that a system call opened, or the negated errno if it returned -1.
// If the program runs without a standard descriptor, the kernel assigns its number to the next file
// or socket. Text that the program prints would be written there. Such a descriptor is moved.
inline long opened(long fd) {
  if (fd < 0 || fd >= kStandards) return result_of(fd);
  const Descriptor standard(fd);
  return duplicate(standard.get());
}

// Does the same for a call that opened two, and returns zero or a negated errno.
inline long opened_pair(long result, int (&fds)[2]) {
  if (result < 0) return result_of(result);
  Descriptor first(opened(fds[0]));
  Descriptor second(opened(fds[1]));
  if (!first.is_open()) return first.get();
  if (!second.is_open()) return second.get();
  fds[0] = first.release();
  fds[1] = second.release();
  return 0;
}

// Returns whether the descriptor is open.
inline bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

inline bool is_write_only(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) == O_WRONLY;
}

// Returns POLLIN if there may be input, and POLLERR for the writing end of a pipe whose reader
// closed its end.
inline short look_for_input(int fd) {
  pollfd end{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&end, 1, 0) == 0 ? short{0} : end.revents;
}

inline long set_nonblocking(int fd) {
  const long flags = result_of(::fcntl(fd, F_GETFL));
  if (flags < 0 || (flags & O_NONBLOCK) != 0) return flags < 0 ? flags : 0;
  return result_of(::fcntl(fd, F_SETFL, flags | O_NONBLOCK));
}

inline long set_close_on_exec(int fd) { return result_of(::fcntl(fd, F_SETFD, FD_CLOEXEC)); }

}  // namespace spate::sys
