// evhttp: a server, which may be a virtual host of another.
//
// Semantics: event2/http.h; probed: the choice of a host, the responses to requests without a
// callback, and their order.
#pragma once

#include <sys/queue.h>

#include <ctime>

#include "compat/libevent/http/connection.h"

struct evhttp_bound_socket {
  TAILQ_ENTRY(evhttp_bound_socket) next;
  evconnlistener* listener;
};

namespace spate::libevent {

using RequestCallback = void (*)(evhttp_request* request, void* argument);

struct PathCallback {
  TAILQ_ENTRY(PathCallback) next;
  char* path;
  RequestCallback callback;
  void* argument;
};

struct ServerAlias {
  TAILQ_ENTRY(ServerAlias) next;
  char* name;
};

TAILQ_HEAD(SocketList, evhttp_bound_socket);
TAILQ_HEAD(PathCallbackList, PathCallback);
TAILQ_HEAD(ServerAliasList, ServerAlias);
TAILQ_HEAD(ServerList, evhttp);
TAILQ_HEAD(ConnectionList, evhttp_connection);

}  // namespace spate::libevent

struct evhttp {
  TAILQ_ENTRY(evhttp) next;  // In the list of one server's virtual hosts.
  event_base* base;
  spate::libevent::SocketList sockets;
  spate::libevent::PathCallbackList callbacks;
  spate::libevent::ConnectionList connections;
  spate::libevent::ServerList hosts;
  spate::libevent::ServerAliasList aliases;
  char* pattern;  // The pattern of a virtual host; otherwise null.
  spate::libevent::RequestCallback general_callback;
  void* general_argument;
  bufferevent* (*make_bufferevent)(event_base* base, void* argument);
  void* make_argument;
  const char* content_type;  // The program's; may be null.
  timeval timeout;
  std::size_t most_headers;
  std::uint64_t most_body;
  std::time_t dated;  // The time of the cached date.
  char date[50];
  int flags;
  ev_uint16_t methods;
};

namespace spate::libevent {

// Adds a connection's next request; returns false without memory.
[[nodiscard]] bool add_request(evhttp_connection& connection);
// Handles the first request of the connection. It has no target if it could not be parsed.
void serve(evhttp_connection& connection);

// Responds with a page of the server's own, whatever the program has prepared, and closes.
void send_page(evhttp_request& request, int code, const char* reason, evbuffer* page);

// Returns the server's host for a name: the server itself for an unknown one.
evhttp& host_for(evhttp& server, const char* name);
[[nodiscard]] bool knows_host(evhttp& server, const char* name);
void free_hosts(evhttp& server);

}  // namespace spate::libevent
