// Rate limits: how much a bufferevent may read and write at once, by itself and with its group.
//
// Semantics: event2/bufferevent.h; how buckets are filled, and what is answered without a limit:
// probes.
#pragma once

#include <cstddef>

#include "compat/libevent/bufferevent_api.h"

namespace spate::libevent {

struct Connection;

std::size_t most_to_read(Connection& connection);
std::size_t most_to_write(Connection& connection);
// Takes what was transferred from the buckets; empty ones make the connection rest.
void note_read(Connection& connection, std::size_t count);
void note_written(Connection& connection, std::size_t count);
// Before the connection goes.
void leave_rate_limit(Connection& connection);

}  // namespace spate::libevent
