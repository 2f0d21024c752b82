// Sockets and pipes that exec() closes from the start, and sockets that do not raise SIGPIPE.
//
// Sockets are non-blocking, pipes are not. The functions return as system calls do: -1 and errno.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "sys/descriptor.h"

namespace spate::sys {

#ifdef __APPLE__

// There is no SOCK_CLOEXEC: a program that another thread starts meanwhile inherits the descriptor.
inline int settle(int fd, bool is_socket) {
  if (fd < 0) return fd;
  if (set_close_on_exec(fd) >= 0 && (!is_socket || set_nonblocking(fd) >= 0)) {
    const int on = 1;
    // Fails on a socket whose peer has closed it already, which raises no signal before a write.
    if (is_socket) ::setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
    return fd;
  }
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}
inline int settle_both(int result, int (&fds)[2], bool is_socket) {
  if (result < 0) return result;
  const int first = settle(fds[0], is_socket);
  const int second = settle(fds[1], is_socket);
  if (first >= 0 && second >= 0) return 0;
  const int error = errno;
  if (first >= 0) ::close(first);
  if (second >= 0) ::close(second);
  errno = error;
  return -1;
}

inline int new_socket(int family, int type) { return settle(::socket(family, type, 0), true); }
inline int new_pair(int type, int (&fds)[2]) {
  return settle_both(::socketpair(AF_UNIX, type, 0, fds), fds, true);
}
inline int new_accepted(int fd, sockaddr* peer, socklen_t& size) {
  return settle(::accept(fd, peer, &size), true);
}
inline int new_pipe(int (&fds)[2]) { return settle_both(::pipe(fds), fds, false); }

// SO_NOSIGPIPE is set instead. An adopted socket without it raises the signal.
inline constexpr int kNoSignal = 0;

inline ssize_t receive_closing_on_exec(int fd, msghdr& message, int flags) {
  const ssize_t result = ::recvmsg(fd, &message, flags);
  if (result < 0) return result;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const auto* fds = reinterpret_cast<const int*>(CMSG_DATA(header));
    for (std::size_t i = 0; i < (header->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i)
      set_close_on_exec(fds[i]);
  }
  return result;
}

#else

inline int new_socket(int family, int type) {
  return ::socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}
inline int new_pair(int type, int (&fds)[2]) {
  return ::socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds);
}
inline int new_accepted(int fd, sockaddr* peer, socklen_t& size) {
  return ::accept4(fd, peer, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
}
inline int new_pipe(int (&fds)[2]) { return ::pipe2(fds, O_CLOEXEC); }

// Flags of send(): none raises SIGPIPE.
inline constexpr int kNoSignal = MSG_NOSIGNAL;

// As recvmsg(). Received descriptors are close-on-exec.
inline ssize_t receive_closing_on_exec(int fd, msghdr& message, int flags) {
  return ::recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC);
}

#endif

}  // namespace spate::sys
