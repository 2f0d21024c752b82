// Sockets and pipes that close on exec, made with the calls that all systems have.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace spate::testing {

inline int closing_on_exec(int fd) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return fd;
}
inline int nonblocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  return fd;
}

inline int open_socket(int family, int type) { return closing_on_exec(::socket(family, type, 0)); }

// Both return false if the kernel refuses. The descriptors do not block.
[[nodiscard]] inline bool open_pipe(int (&ends)[2]) {
  if (::pipe(ends) != 0) return false;
  for (const int end : ends) nonblocking(closing_on_exec(end));
  return true;
}
[[nodiscard]] inline bool open_socket_pair(int (&ends)[2]) {
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return false;
  for (const int end : ends) nonblocking(closing_on_exec(end));
  return true;
}

}  // namespace spate::testing
