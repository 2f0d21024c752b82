// Bufferevents of a socket.
#pragma once

#include "compat/libevent/bufferevent/connection.h"

namespace spate::libevent {

struct SocketConnection : Connection {};

// Null if it is on no socket of its own.
SocketConnection* socket_of(bufferevent* bev);

// For kinds that watch a descriptor: of what is pending.
int change_timeouts(Connection& connection);

}  // namespace spate::libevent
