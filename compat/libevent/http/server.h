// evhttp: a server, which may be a virtual host of another.
//
// Semantics: event2/http.h; which host answers, the answers to requests that nobody takes, and the
// order of all that: probes.
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
  TAILQ_ENTRY(evhttp) next;  // Of the virtual hosts of one server.
  event_base* base;
  spate::libevent::SocketList sockets;
  spate::libevent::PathCallbackList callbacks;
  spate::libevent::ConnectionList connections;
  spate::libevent::ServerList hosts;
  spate::libevent::ServerAliasList aliases;
  char* pattern;  // Of a virtual host; else null.
  spate::libevent::RequestCallback general_callback;
  void* general_argument;
  bufferevent* (*make_bufferevent)(event_base* base, void* argument);
  void* make_argument;
  const char* content_type;  // The program's; may be null.
  timeval timeout;
  std::size_t most_headers;
  std::uint64_t most_body;
  std::time_t dated;  // When the date was written.
  char date[50];
  int flags;
  ev_uint16_t methods;
};

namespace spate::libevent {

// A connection's next request; false without memory.
bool add_request(evhttp_connection& connection);
// The first request of the connection, which has been read or cannot be: then it has no target.
void serve(evhttp_connection& connection);

// Answers with a page of the server's own, whatever the program has prepared, and closes.
void send_page(evhttp_request& request, int code, const char* reason, evbuffer* page);

// Which of the server's hosts a name means: the server itself for a name that nobody knows.
evhttp& host_for(evhttp& server, const char* name);
bool knows_host(evhttp& server, const char* name);
void free_hosts(evhttp& server);

}  // namespace spate::libevent
