// Rate limits: how much a bufferevent may read and write at once, by itself and with its group.
//
// Semantics: event2/bufferevent.h; probed: the filling of buckets, shares and minima, and the
// results without a limit.
//
// Locks: a group's is taken after that of a connection. So code that holds the group's lock only
// tries those of its members; a member in use notices by itself (most_to_read()).
#pragma once

#include <cstddef>

#include "compat/libevent/bufferevent_api.h"

namespace spate::libevent {

struct Connection;
struct RateLimit;

// Returns 0 if nothing may be transferred now, and suspends the connection then.
std::size_t most_to_read(Connection& connection);
std::size_t most_to_write(Connection& connection);
// Takes the transferred bytes from the buckets; an empty one suspends the connection.
void note_read(Connection& connection, std::size_t count);
void note_written(Connection& connection, std::size_t count);

// Called after the connection's last callback, and when it is freed.
void leave_rate_limit(Connection& connection);
void release_rate_limit(RateLimit* limit);

}  // namespace spate::libevent
