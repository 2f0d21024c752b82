// Bufferevents of a socket.
#pragma once

#include "compat/libevent/bufferevent/connection.h"

namespace spate::libevent {

struct SocketConnection : Connection {};

// Null if it is on no socket of its own.
SocketConnection* socket_of(bufferevent* bev);

// Sends all of the output, and has the write callback called by the loop as if it had sent it.
// False if it must not, or something is left: then the loop is to send it.
bool write_at_once(bufferevent* bev);

// For kinds that watch a descriptor: of what is pending.
int change_timeouts(Connection& connection);

}  // namespace spate::libevent
