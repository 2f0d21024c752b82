// Bufferevents of a socket.
#pragma once

#include "compat/libevent/bufferevent/connection.h"

namespace spate::libevent {

struct SocketConnection : Connection {
  int lookup_error;  // Of getaddrinfo().
  bool is_connecting;
  bool is_calling_read;
  bool has_answered;  // The read callback has written, which is sent when it returns.
};

// Null if it is of another kind.
SocketConnection* socket_of(bufferevent* bev);

}  // namespace spate::libevent
