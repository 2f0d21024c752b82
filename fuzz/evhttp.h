// Shared by the targets of the drop-in evhttp: a listening socket, and the checks of fields that a
// program relies on.
#pragma once

#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "input.h"

namespace spate::fuzz {

inline constexpr int kMostBody = 1000;
inline constexpr int kMostHeaders = 2000;
inline constexpr std::size_t kMostPiece = 300;

// Listens on loopback, at any port.
inline int listen_at(sockaddr_in& where) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  where = {};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* address = reinterpret_cast<sockaddr*>(&where);
  socklen_t size = sizeof where;
  check(::bind(fd, address, size) == 0 && ::listen(fd, 4) == 0);
  check(::getsockname(fd, address, &size) == 0);
  return fd;
}

// So that its port is free at once: they are few.
inline void end_at_once(int fd) {
  const linger now{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

inline void check_fields(const evkeyvalq& fields) {
  for (const evkeyval* each = fields.tqh_first; each != nullptr; each = each->next.tqe_next) {
    check(each->key[0] != 0 && std::strpbrk(each->key, " \t:\r\n") == nullptr);
    check(std::strpbrk(each->value, "\r\n") == nullptr);
  }
}

}  // namespace spate::fuzz
