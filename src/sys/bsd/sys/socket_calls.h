// The calls of sockets and pipes that differ between systems. They return as system calls do: -1
// and errno.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "sys/socket_creation.h"

namespace spate::sys {

// Store the family or the protocol of a socket in `value`.
inline int find_domain(int fd, int& value) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  const int result = ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  if (result == 0) value = address.ss_family;
  return result;
}
inline int find_protocol(int fd, int& value) {
  int domain = AF_UNSPEC;
  if (const int result = find_domain(fd, domain); result < 0) return result;
  int type = 0;
  socklen_t size = sizeof(type);
  if (const int result = ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size); result < 0)
    return result;
  const bool is_ip = domain == AF_INET || domain == AF_INET6;
  value = is_ip && type == SOCK_STREAM  ? IPPROTO_TCP
          : is_ip && type == SOCK_DGRAM ? IPPROTO_UDP
                                        : 0;
  return 0;
}

// Sends a part of a file from `offset` on. Returns how many bytes were sent.
inline ssize_t send_file(int fd, int file, std::int64_t offset, std::size_t size) {
#if defined(__APPLE__)
  off_t sent = static_cast<off_t>(size);
  const int result = ::sendfile(file, fd, offset, &sent, nullptr, 0);
  return sent > 0 ? static_cast<ssize_t>(sent) : result;
#elif defined(__FreeBSD__)
  off_t sent = 0;
  const int result = ::sendfile(file, fd, offset, size, nullptr, &sent, 0);
  return sent > 0 ? static_cast<ssize_t>(sent) : result;
#else
  char piece[16 * 1024];
  const ssize_t count = ::pread(file, piece, size < sizeof(piece) ? size : sizeof(piece), offset);
  return count <= 0 ? count : ::write(fd, piece, static_cast<std::size_t>(count));
#endif
}

// Consumes a pending signal of the set, if there is one. It is blocked.
inline void take_signal(const sigset_t& signals) {
  sigset_t waiting;
  ::sigpending(&waiting);
  int taken = SIGPIPE;
  if (sigismember(&waiting, SIGPIPE) == 1) ::sigwait(&signals, &taken);
}

// Whether the kernel distributes connections among sockets that share a port. FreeBSD needs another
// option for that, before the first socket is bound.
inline constexpr bool kBalancesSharedPort = false;

// Options of TCP; kNoOption where the system has none, which the kernel refuses with ENOPROTOOPT.
inline constexpr int kNoOption = -1;
#if defined(TCP_KEEPIDLE)
inline constexpr int kKeepIdle = TCP_KEEPIDLE;
#elif defined(TCP_KEEPALIVE)
inline constexpr int kKeepIdle = TCP_KEEPALIVE;
#else
inline constexpr int kKeepIdle = kNoOption;
#endif
#ifdef TCP_KEEPINTVL
inline constexpr int kKeepInterval = TCP_KEEPINTVL;
inline constexpr int kKeepCount = TCP_KEEPCNT;
#else
inline constexpr int kKeepInterval = kNoOption;
inline constexpr int kKeepCount = kNoOption;
#endif
inline constexpr int kQuickAck = kNoOption;
inline constexpr int kUserTimeout = kNoOption;
inline constexpr int kDeferAccept = kNoOption;
#ifdef TCP_FASTOPEN
inline constexpr int kFastOpen = TCP_FASTOPEN;
#else
inline constexpr int kFastOpen = kNoOption;
#endif
#ifdef TCP_NOTSENT_LOWAT
inline constexpr int kMostUnsent = TCP_NOTSENT_LOWAT;
#else
inline constexpr int kMostUnsent = kNoOption;
#endif

// An error of a new connection, which accept() of Linux may return; 0 is none.
inline constexpr int kNoNetwork = 0;

}  // namespace spate::sys
