// Bufferevents of a socket.
#pragma once

#include "compat/libevent/bufferevent/connection.h"

namespace spate::libevent {

struct SocketConnection : Connection {};

// Returns null if it has no socket.
SocketConnection* socket_of(bufferevent* bev);

// Returns the socket at the bottom of the filters, or null if there is another kind at the bottom.
SocketConnection* lowest_socket_of(bufferevent* bev);

// Enables reading and writing of the layers below, which an end or an error has disabled. Setting a
// descriptor adds the events.
void enable_below(bufferevent* bev);

// For kinds that watch a descriptor: changes the timeouts of pending events.
[[nodiscard]] int change_timeouts(Connection& connection);

}  // namespace spate::libevent
