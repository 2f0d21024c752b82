// The settings and properties of a connection.
//
// Semantics: event2/http.h; probed: the flags.
#include "compat/libevent/http/connection.h"
#include "compat/libevent/http/server.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

constexpr int kSettableFlags = EVHTTP_CON_REUSE_CONNECTED_ADDR | EVHTTP_CON_READ_ON_WRITE_ERROR;

}  // namespace

bufferevent* evhttp_connection_get_bufferevent(evhttp_connection* connection) {
  return connection->bev;
}

evhttp* evhttp_connection_get_server(evhttp_connection* connection) { return connection->server; }

event_base* evhttp_connection_get_base(evhttp_connection* connection) { return connection->base; }

void evhttp_connection_get_peer(evhttp_connection* connection, char** address, ev_uint16_t* port) {
  *address = connection->peer;
  *port = connection->port;
}

const sockaddr* evhttp_connection_get_addr(evhttp_connection* connection) {
  return reinterpret_cast<const sockaddr*>(&connection->address);
}

void evhttp_connection_set_base(evhttp_connection* connection, event_base* base) {
  connection->base = base;
  bufferevent_base_set(base, connection->bev);
  event_base_set(base, &connection->retry);
}

void evhttp_connection_set_family(evhttp_connection* connection, int family) {
  connection->family = family;
}

int evhttp_connection_set_flags(evhttp_connection* connection, int flags) {
  if ((flags & ~kSettableFlags) != 0) return 1;
  connection->flags = (connection->flags & ~kSettableFlags) | flags;
  return 0;
}

void evhttp_connection_set_max_headers_size(evhttp_connection* connection, ev_ssize_t most) {
  connection->most_headers = most < 0 ? SIZE_MAX : static_cast<std::size_t>(most);
}

void evhttp_connection_set_max_body_size(evhttp_connection* connection, ev_ssize_t most) {
  connection->most_body = most < 0 ? UINT64_MAX : static_cast<std::uint64_t>(most);
}

void evhttp_connection_set_local_address(evhttp_connection* connection, const char* address) {
  release(connection->local_address);
  connection->local_address = duplicate(address);
  if (connection->local_address == nullptr) warn("a local address cannot be copied");
}

void evhttp_connection_set_local_port(evhttp_connection* connection, ev_uint16_t port) {
  connection->local_port = port;
}

void evhttp_connection_set_timeout(evhttp_connection* connection, int seconds) {
  const timeval time{seconds, 0};
  evhttp_connection_set_timeout_tv(connection, seconds != -1 ? &time : nullptr);
}

void evhttp_connection_set_timeout_tv(evhttp_connection* connection, const timeval* time) {
  connection->timeout = time != nullptr ? *time : timeval{};
  connection->set_timeouts(connection->timeout);
}

void evhttp_connection_set_initial_retry_tv(evhttp_connection* connection, const timeval* time) {
  connection->retry_delay = time != nullptr ? *time : timeval{2, 0};
}

void evhttp_connection_set_retries(evhttp_connection* connection, int most) {
  connection->retries_most = most;
}

void evhttp_connection_set_closecb(evhttp_connection* connection,
                                   void (*callback)(evhttp_connection*, void*), void* argument) {
  connection->close_callback = callback;
  connection->close_argument = argument;
}
