// Rate limits: how much a bufferevent may read and write at once, by itself and with its group.
//
// Semantics: event2/bufferevent.h; how buckets are filled, shares and minima, and what is answered
// without a limit: probes.
//
// Locks: a group's is taken after that of a connection. So whoever holds the group's only tries
// those of its members; one that is in use finds out by itself (most_to_read()).
#pragma once

#include <cstddef>

#include "compat/libevent/bufferevent_api.h"

namespace spate::libevent {

struct Connection;
struct RateLimit;

// 0 if nothing may be transferred now, and it then rests.
std::size_t most_to_read(Connection& connection);
std::size_t most_to_write(Connection& connection);
// Takes what was transferred from the buckets; empty ones make the connection rest.
void note_read(Connection& connection, std::size_t count);
void note_written(Connection& connection, std::size_t count);

// When the connection has had its last callback; and when it goes.
void leave_rate_limit(Connection& connection);
void release_rate_limit(RateLimit* limit);

}  // namespace spate::libevent
