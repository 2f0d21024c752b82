// The calls of sockets and pipes that differ between systems. They return as system calls do: -1
// and errno.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "sys/socket_creation.h"

namespace spate::sys {

// Store the family or the protocol of a socket in `value`.
inline int find_domain(int fd, int& value) {
  socklen_t size = sizeof(value);
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &size);
}
inline int find_protocol(int fd, int& value) {
  socklen_t size = sizeof(value);
  return ::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &value, &size);
}

// Sends a part of a file from `offset` on. Returns how many bytes were sent.
inline ssize_t send_file(int fd, int file, std::int64_t offset, std::size_t size) {
  off_t position = offset;
  return ::sendfile(fd, file, &position, size);
}

// Consumes a pending signal of the set, if there is one.
inline void take_signal(const sigset_t& signals) {
  const timespec at_once{};
  ::sigtimedwait(&signals, nullptr, &at_once);
}

// Whether the kernel distributes connections among sockets that share a port.
inline constexpr bool kBalancesSharedPort = true;

// Options of TCP; kNoOption where the system has none.
inline constexpr int kNoOption = -1;
inline constexpr int kKeepIdle = TCP_KEEPIDLE;
inline constexpr int kKeepInterval = TCP_KEEPINTVL;
inline constexpr int kKeepCount = TCP_KEEPCNT;
inline constexpr int kQuickAck = TCP_QUICKACK;
inline constexpr int kUserTimeout = TCP_USER_TIMEOUT;
inline constexpr int kDeferAccept = TCP_DEFER_ACCEPT;
inline constexpr int kFastOpen = TCP_FASTOPEN;
inline constexpr int kMostUnsent = TCP_NOTSENT_LOWAT;

// An error of a new connection, which accept() may return.
inline constexpr int kNoNetwork = ENONET;

}  // namespace spate::sys
