// libevent's headers of buffered connections and listeners, as event_api.h has those of events.
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

// Sends all of the output, and has the write callback called by the loop as if it had sent it.
// False if it must not, or something is left: then the loop is to send it.
bool write_at_once(bufferevent* bev);

}  // namespace spate::libevent
