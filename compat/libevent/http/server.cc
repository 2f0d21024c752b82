#include "compat/libevent/http/server.h"

#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "compat/libevent/http/request.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

constexpr int kDefaultMethods =
    EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE;
constexpr const char* kDefaultContentType = "text/html; charset=ISO-8859-1";
constexpr int kBacklog = 128;

// ---- the callback for a request

PathCallback* find_callback(evhttp& server, const char* path) {
  PathCallback* entry;
  TAILQ_FOREACH(entry, &server.callbacks, next) {
    if (std::strcmp(entry->path, path) == 0) return entry;
  }
  return nullptr;
}

PathCallback* callback_for(evhttp& server, const evhttp_request& request) {
  const char* path = evhttp_uri_get_path(request.uri_elems);
  if (TAILQ_EMPTY(&server.callbacks) || path == nullptr) return nullptr;
  if (std::strchr(path, '%') == nullptr) return find_callback(server, path);
  char* decoded = evhttp_uridecode(path, 0, nullptr);
  PathCallback* found = decoded != nullptr ? find_callback(server, decoded) : nullptr;
  release(decoded);
  return found;
}

void send_not_found(evhttp_request& request) {
  char* shown = evhttp_htmlescape(request.uri);
  evbuffer* page = evbuffer_new();
  if (shown == nullptr || page == nullptr) {
    evhttp_connection_free(request.evcon);
  } else {
    evbuffer_add_printf(page,
                        "<html><head><title>404 Not Found</title></head><body><h1>Not Found</h1>"
                        "<p>The requested URL %s was not found on this server.</p></body></html>\n",
                        shown);
    send_page(request, HTTP_NOTFOUND, nullptr, page);
  }
  release(shown);
  if (page != nullptr) evbuffer_free(page);
}

// ---- connections

void set_limits(const evhttp& server, evhttp_connection& connection) {
  connection.most_headers = server.most_headers;
  connection.most_body = server.most_body;
  if ((server.flags & EVHTTP_SERVER_LINGERING_CLOSE) != 0) {
    connection.flags |= EVHTTP_CON_LINGERING_CLOSE;
  }
  if (!is_set(server.timeout)) return;
  connection.timeout = server.timeout;
  connection.set_timeouts(server.timeout);
}

evhttp_connection* make_server_connection(evhttp& server, const sockaddr* address, int size) {
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  const auto length = static_cast<socklen_t>(size);
  if (getnameinfo(address, length, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return nullptr;
  }
  bufferevent* bev = nullptr;
  if (server.make_bufferevent != nullptr) {
    bev = server.make_bufferevent(server.base, server.make_argument);
  }
  const auto number = static_cast<ev_uint16_t>(std::atoi(port));
  evhttp_connection* made = make_connection(server.base, bev, host, number);
  if (made == nullptr) return nullptr;
  made->address_size = std::min<int>(size, sizeof made->address);
  std::memcpy(&made->address, address, static_cast<std::size_t>(made->address_size));
  return made;
}

void on_connection(evconnlistener*, evutil_socket_t fd, sockaddr* address, int size,
                   void* argument) {
  auto& server = *static_cast<evhttp*>(argument);
  evhttp_connection* connection = make_server_connection(server, address, size);
  if (connection == nullptr) {
    evutil_closesocket(fd);
    return;
  }
  const Stay stay(*connection);
  connection->server = &server;
  TAILQ_INSERT_TAIL(&server.connections, connection, next);
  bufferevent_setfd(connection->bev, fd);
  set_limits(server, *connection);
  if (!add_request(*connection)) return evhttp_connection_free(connection);
  connection->begin_reading();
}

// ---- sockets

// Returns a socket bound to the address; -1 on failure.
evutil_socket_t make_socket(const char* address, ev_uint16_t port) {
  char service[8];
  std::snprintf(service, sizeof service, "%d", port);
  evutil_addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = EVUTIL_AI_PASSIVE | EVUTIL_AI_ADDRCONFIG;
  evutil_addrinfo* found = nullptr;
  const int error = evutil_getaddrinfo(address, service, &hints, &found);
  if (error != 0) {
    warnx("getaddrinfo: %s", evutil_gai_strerror(error));
    return -1;
  }
  int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  const bool is_bound = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) == 0 &&
                        evutil_make_listen_socket_reuseable(fd) == 0 &&
                        bind(fd, found->ai_addr, found->ai_addrlen) == 0;
  evutil_freeaddrinfo(found);
  if (is_bound) return fd;
  if (fd >= 0) evutil_closesocket(fd);
  return -1;
}

std::size_t limit_of(ev_ssize_t wished) {
  return wished < 0 ? SIZE_MAX : static_cast<std::size_t>(wished);
}

void free_callback(evhttp& server, PathCallback* entry) {
  TAILQ_REMOVE(&server.callbacks, entry, next);
  release(entry->path);
  release(entry);
}

}  // namespace

// ---- for the other rooms

bool spate::libevent::add_request(evhttp_connection& connection) {
  evhttp_request* request = evhttp_request_new(nullptr, nullptr);
  if (request == nullptr) return false;
  request->remote_host = duplicate(connection.peer);
  if (request->remote_host == nullptr) {
    evhttp_request_free(request);
    return false;
  }
  request->remote_port = connection.port;
  request->kind = EVHTTP_REQUEST;
  request->flags |= EVHTTP_REQ_OWN_CONNECTION;
  connection.append(*request);
  return true;
}

void spate::libevent::serve(evhttp_connection& connection) {
  evhttp_request& request = *connection.request();
  connection.state = evhttp_connection::State::writing;
  bufferevent_disable(connection.bev, EV_READ | EV_WRITE);
  if (request.uri == nullptr) return evhttp_send_error(&request, request.response_code, nullptr);
  if ((connection.server->methods & request.type) == 0) {
    return evhttp_send_error(&request, HTTP_NOTIMPLEMENTED, nullptr);
  }
  evhttp& host = host_for(*connection.server, evhttp_request_get_host(&request));
  if (const PathCallback* found = callback_for(host, request)) {
    return found->callback(&request, found->argument);
  }
  if (host.general_callback == nullptr) return send_not_found(request);
  host.general_callback(&request, host.general_argument);
}

// ---- the exported functions: the server

evhttp* evhttp_new(event_base* base) {
  auto* server = static_cast<evhttp*>(allocate_zeroed(sizeof(evhttp)));
  if (server == nullptr) return nullptr;
  server->base = base;
  TAILQ_INIT(&server->sockets);
  TAILQ_INIT(&server->callbacks);
  TAILQ_INIT(&server->connections);
  TAILQ_INIT(&server->hosts);
  TAILQ_INIT(&server->aliases);
  server->most_headers = SIZE_MAX;
  server->most_body = UINT64_MAX;
  server->content_type = kDefaultContentType;
  server->methods = kDefaultMethods;
  return server;
}

evhttp* evhttp_start(const char* address, ev_uint16_t port) {
  evhttp* server = evhttp_new(nullptr);
  if (server == nullptr) return nullptr;
  if (evhttp_bind_socket(server, address, port) == 0) return server;
  evhttp_free(server);
  return nullptr;
}

void evhttp_free(evhttp* server) {
  while (evhttp_bound_socket* bound = TAILQ_FIRST(&server->sockets)) {
    evhttp_del_accept_socket(server, bound);
  }
  while (evhttp_connection* connection = TAILQ_FIRST(&server->connections)) {
    evhttp_connection_free(connection);
  }
  while (PathCallback* entry = TAILQ_FIRST(&server->callbacks)) free_callback(*server, entry);
  free_hosts(*server);
  release(server->pattern);
  release(server);
}

void evhttp_set_max_headers_size(evhttp* server, ev_ssize_t most) {
  server->most_headers = limit_of(most);
}

void evhttp_set_max_body_size(evhttp* server, ev_ssize_t most) {
  server->most_body = most < 0 ? UINT64_MAX : static_cast<std::uint64_t>(most);
}

void evhttp_set_default_content_type(evhttp* server, const char* type) {
  server->content_type = type;
}

void evhttp_set_allowed_methods(evhttp* server, ev_uint16_t methods) { server->methods = methods; }

void evhttp_set_timeout(evhttp* server, int seconds) {
  const timeval time{seconds, 0};
  evhttp_set_timeout_tv(server, seconds != -1 ? &time : nullptr);
}

void evhttp_set_timeout_tv(evhttp* server, const timeval* time) {
  server->timeout = time != nullptr ? *time : timeval{};
}

int evhttp_set_flags(evhttp* server, int flags) {
  if ((flags & ~EVHTTP_SERVER_LINGERING_CLOSE) != 0) return 1;
  server->flags = flags;
  return 0;
}

// ---- callbacks

int evhttp_set_cb(evhttp* server, const char* path, RequestCallback callback, void* argument) {
  if (find_callback(*server, path) != nullptr) return -1;
  auto* entry = static_cast<PathCallback*>(allocate_zeroed(sizeof(PathCallback)));
  if (entry == nullptr) return -2;
  entry->path = duplicate(path);
  if (entry->path == nullptr) {
    warn("evhttp_set_cb: the path cannot be copied");
    release(entry);
    return -3;
  }
  entry->callback = callback;
  entry->argument = argument;
  TAILQ_INSERT_TAIL(&server->callbacks, entry, next);
  return 0;
}

int evhttp_del_cb(evhttp* server, const char* path) {
  PathCallback* entry = find_callback(*server, path);
  if (entry == nullptr) return -1;
  free_callback(*server, entry);
  return 0;
}

void evhttp_set_gencb(evhttp* server, RequestCallback callback, void* argument) {
  server->general_callback = callback;
  server->general_argument = argument;
}

void evhttp_set_bevcb(evhttp* server, bufferevent* (*callback)(event_base*, void*),
                      void* argument) {
  server->make_bufferevent = callback;
  server->make_argument = argument;
}

// ---- sockets

int evhttp_bind_socket(evhttp* server, const char* address, ev_uint16_t port) {
  return evhttp_bind_socket_with_handle(server, address, port) != nullptr ? 0 : -1;
}

evhttp_bound_socket* evhttp_bind_socket_with_handle(evhttp* server, const char* address,
                                                    ev_uint16_t port) {
  const evutil_socket_t fd = make_socket(address, port);
  if (fd < 0) return nullptr;
  evhttp_bound_socket* bound =
      listen(fd, kBacklog) == 0 ? evhttp_accept_socket_with_handle(server, fd) : nullptr;
  if (bound == nullptr) evutil_closesocket(fd);
  return bound;
}

int evhttp_accept_socket(evhttp* server, evutil_socket_t fd) {
  return evhttp_accept_socket_with_handle(server, fd) != nullptr ? 0 : -1;
}

evhttp_bound_socket* evhttp_accept_socket_with_handle(evhttp* server, evutil_socket_t fd) {
  const unsigned flags = LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE;
  evconnlistener* listener = evconnlistener_new(server->base, nullptr, nullptr, flags, 0, fd);
  if (listener == nullptr) return nullptr;
  evhttp_bound_socket* bound = evhttp_bind_listener(server, listener);
  if (bound == nullptr) evconnlistener_free(listener);
  return bound;
}

evhttp_bound_socket* evhttp_bind_listener(evhttp* server, evconnlistener* listener) {
  auto* bound = static_cast<evhttp_bound_socket*>(allocate(sizeof(evhttp_bound_socket)));
  if (bound == nullptr) return nullptr;
  bound->listener = listener;
  TAILQ_INSERT_TAIL(&server->sockets, bound, next);
  evconnlistener_set_cb(listener, on_connection, server);
  return bound;
}

void evhttp_del_accept_socket(evhttp* server, evhttp_bound_socket* bound) {
  TAILQ_REMOVE(&server->sockets, bound, next);
  evconnlistener_free(bound->listener);
  release(bound);
}

evconnlistener* evhttp_bound_socket_get_listener(evhttp_bound_socket* bound) {
  return bound->listener;
}

evutil_socket_t evhttp_bound_socket_get_fd(evhttp_bound_socket* bound) {
  return evconnlistener_get_fd(bound->listener);
}

void evhttp_foreach_bound_socket(evhttp* server, evhttp_bound_socket_foreach_fn* function,
                                 void* argument) {
  evhttp_bound_socket* bound;
  TAILQ_FOREACH(bound, &server->sockets, next) function(bound, argument);
}
