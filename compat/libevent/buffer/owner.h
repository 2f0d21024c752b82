// The functions of the bufferevent (bufferevent/connection.cc) that its evbuffers call.
#pragma once

#include "compat/libevent/buffer_api.h"

struct bufferevent;

namespace spate::libevent {

// Called for a change, after the callbacks.
void notify_owner(bufferevent& owner, const evbuffer& buffer, const evbuffer_cb_info& change);
void* lock_of_owner(const bufferevent& owner);
// Called at the end of a buffer. The memory is freed with the last of the bufferevent and its two
// buffers.
void release_with_owner(bufferevent& owner);

}  // namespace spate::libevent
