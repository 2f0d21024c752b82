// libevent's headers of buffered connections and listeners; see event_api.h.
#pragma once

#include "compat/libevent/buffer_api.h"

#pragma GCC visibility push(default)
#include <event2/bufferevent.h>
#include <event2/bufferevent_struct.h>
#include <event2/listener.h>
extern "C" {  // Which this one forgets.
#include <event2/bufferevent_compat.h>
}
#pragma GCC visibility pop

namespace spate::libevent {

// Sends all of the output, and makes the loop call the write callback as if it had sent it. Returns
// false if that is not allowed, or some output is left: then the loop must send it.
[[nodiscard]] bool write_at_once(bufferevent* bev);

// Returns the bufferevent at the bottom of the filters: `bev` itself if it is no filter.
bufferevent* lowest_of(bufferevent* bev);

// Detaches the descriptor from the socket at the bottom of the filters, and empties the buffers of
// all layers. Returns the descriptor, which the caller closes, or -1 without one.
[[nodiscard]] evutil_socket_t detach_socket(bufferevent* bev);

}  // namespace spate::libevent
