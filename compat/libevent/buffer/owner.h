// What an evbuffer asks of the bufferevent that it is a part of (bufferevent/connection.cc).
#pragma once

#include "compat/libevent/buffer_api.h"

struct bufferevent;

namespace spate::libevent {

// Of a change, after the callbacks.
void tell_owner(bufferevent& owner, const evbuffer& buffer, const evbuffer_cb_info& change);
void* lock_of_owner(const bufferevent& owner);
// A buffer has ended. The memory goes with the last of the bufferevent and its two buffers.
void release_with_owner(bufferevent& owner);

}  // namespace spate::libevent
