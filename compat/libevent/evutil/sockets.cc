// Sockets: the small settings that a server makes on each.
//
// Semantics: event2/util.h; probed: the option that each sets, and the log messages.
#include <event2/util.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "compat/libevent/log.h"

namespace {

int turn_on(evutil_socket_t socket, int level, int option) {
  const int on = 1;
  return setsockopt(socket, level, option, &on, sizeof on);
}

}  // namespace

int evutil_make_socket_nonblocking(evutil_socket_t socket) {
  const int flags = fcntl(socket, F_GETFL);
  if (flags == -1) {
    spate::libevent::warn("fcntl(%d, F_GETFL)", socket);
    return -1;
  }
  if ((flags & O_NONBLOCK) == 0 && fcntl(socket, F_SETFL, flags | O_NONBLOCK) == -1) {
    spate::libevent::warn("fcntl(%d, F_SETFL)", socket);
    return -1;
  }
  return 0;
}

int evutil_make_socket_closeonexec(evutil_socket_t socket) {
  const int flags = fcntl(socket, F_GETFD);
  if (flags == -1) {
    spate::libevent::warn("fcntl(%d, F_GETFD)", socket);
    return -1;
  }
  if ((flags & FD_CLOEXEC) == 0 && fcntl(socket, F_SETFD, flags | FD_CLOEXEC) == -1) {
    spate::libevent::warn("fcntl(%d, F_SETFD)", socket);
    return -1;
  }
  return 0;
}

int evutil_make_listen_socket_reuseable(evutil_socket_t socket) {
  return turn_on(socket, SOL_SOCKET, SO_REUSEADDR);
}

int evutil_make_listen_socket_reuseable_port(evutil_socket_t socket) {
  return turn_on(socket, SOL_SOCKET, SO_REUSEPORT);
}

int evutil_make_listen_socket_ipv6only(evutil_socket_t socket) {
  return turn_on(socket, IPPROTO_IPV6, IPV6_V6ONLY);
}

int evutil_make_tcp_listen_socket_deferred(evutil_socket_t socket) {
  return turn_on(socket, IPPROTO_TCP, TCP_DEFER_ACCEPT);
}

int evutil_socketpair(int domain, int type, int protocol, evutil_socket_t pair[2]) {
  return socketpair(domain, type, protocol, pair);
}

int evutil_closesocket(evutil_socket_t socket) { return close(socket); }
