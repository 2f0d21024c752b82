// Semantics: event2/http.h (evhttp_make_request, evhttp_cancel_request); probed: when a connection
// is made, retried and closed, and which callbacks of a request are called.
#include "compat/libevent/http/client.h"

#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "compat/libevent/http/outgoing.h"
#include "compat/libevent/http/request.h"
#include "compat/libevent/http/server.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

constexpr timeval kConnectTimeout{45, 0};
constexpr timeval kTimeout{50, 0};
constexpr int kDoublingsMost = 10;

const timeval& timeout_or(const evhttp_connection& connection, const timeval& other) {
  return is_set(connection.timeout) ? connection.timeout : other;
}

// ---- sending

void await_answer(evhttp_connection* connection, void*) {
  connection->request()->kind = EVHTTP_RESPONSE;
  connection->begin_reading();
  connection->advance_soon();
}

// The body waits for 100 Continue.
bool expects_word(const evhttp_request& request) {
  const char* expected = evhttp_find_header(request.output_headers, "Expect");
  return Version{request.major, request.minor}.is_at_least_1_1() && expected != nullptr &&
         has_equal_text(expected, "100-continue");
}

// Returns false when memory runs out. Without the length the server would take the body for the
// next request.
[[nodiscard]] bool add_length(evhttp_request& request) {
  if (request.type != EVHTTP_REQ_POST && request.type != EVHTTP_REQ_PUT) return true;
  if (evhttp_find_header(request.output_headers, "Content-Length") != nullptr) return true;
  const Decimal length(evbuffer_get_length(request.output_buffer));
  return add_header(*request.output_headers, "Content-Length", length) == 0;
}

// This header is for a proxy only, not for the server.
void remove_proxy_header(evhttp_request& request) {
  if ((request.flags & EVHTTP_PROXY_REQUEST) != 0) return;
  evhttp_remove_header(request.output_headers, "Proxy-Connection");
}

void send_first(evhttp_connection& connection) {
  evhttp_request& request = *connection.request();
  remove_proxy_header(request);
  if (!add_length(request)) return connection.fail(EVREQ_HTTP_EOF);
  Outgoing head(connection.output());
  head.add(name_of(request.type), " ", request.uri, " ");
  head.add_version({request.major, request.minor});
  head.add("\r\n");
  head.add_headers(*request.output_headers);
  if (!head.end()) return connection.fail(EVREQ_HTTP_EOF);
  if (!expects_word(request) &&
      evbuffer_add_buffer(connection.output(), request.output_buffer) != 0) {
    return connection.fail(EVREQ_HTTP_EOF);
  }
  connection.state = evhttp_connection::State::writing;
  connection.write(await_answer, nullptr);
}

// ---- connecting

// Makes a socket bound to the program's local address. Returns -1 if that is not available.
evutil_socket_t make_bound_socket(const evhttp_connection& connection) {
  char service[8];
  std::snprintf(service, sizeof service, "%d", connection.local_port);
  evutil_addrinfo hints{};
  hints.ai_family = connection.family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = EVUTIL_AI_PASSIVE | EVUTIL_AI_ADDRCONFIG;
  evutil_addrinfo* found = nullptr;
  if (evutil_getaddrinfo(connection.local_address, service, &hints, &found) != 0) return -1;
  int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd >= 0) {
    evutil_make_listen_socket_reuseable(fd);
    if (bind(fd, found->ai_addr, found->ai_addrlen) != 0) {
      evutil_closesocket(fd);
      fd = -1;
    }
  }
  evutil_freeaddrinfo(found);
  return fd;
}

int begin_connecting(evhttp_connection& connection) {
  const auto* address = reinterpret_cast<const sockaddr*>(&connection.address);
  const bool reuses = (connection.flags & EVHTTP_CON_REUSE_CONNECTED_ADDR) != 0;
  if (reuses && connection.address_size != 0) {
    return bufferevent_socket_connect(connection.bev, address, connection.address_size);
  }
  return bufferevent_socket_connect_hostname(connection.bev, connection.names, connection.family,
                                             connection.peer, connection.port);
}

// Returns false without an address to connect from. Any other failure is reported to the requests.
bool connect(evhttp_connection& connection) {
  connection.disconnect();
  if (connection.is_freed) return false;
  if (connection.local_address != nullptr || connection.local_port != 0) {
    const evutil_socket_t fd = make_bound_socket(connection);
    if (fd < 0) return false;
    bufferevent_setfd(connection.bev, fd);
  }
  bufferevent_setcb(connection.bev, nullptr, nullptr, evhttp_connection::on_event, &connection);
  connection.set_timeouts(timeout_or(connection, kConnectTimeout));
  bufferevent_enable(connection.bev, EV_WRITE);
  connection.state = evhttp_connection::State::connecting;
  if (begin_connecting(connection) == 0) return true;
  warn("a connection to %s cannot be begun", connection.peer);
  connect_failed(connection);
  return true;
}

void connect_or_retry(evhttp_connection& connection) {
  if (!connect(connection) && !connection.is_freed) connect_failed(connection);
}

bool may_retry(const evhttp_connection& connection) {
  return connection.retries_most < 0 || connection.retries < connection.retries_most;
}

[[nodiscard]] bool retry_later(evhttp_connection& connection) {
  const int doublings = std::min(connection.retries, kDoublingsMost);
  ++connection.retries;
  const std::int64_t micros =
      (connection.retry_delay.tv_sec * std::int64_t{1'000'000} + connection.retry_delay.tv_usec)
      << doublings;
  const timeval delay{micros / 1'000'000, micros % 1'000'000};
  return event_add(&connection.retry, &delay) == 0;
}

// Fails all queued requests, except those made meanwhile.
void give_up_all(evhttp_connection& connection) {
  evhttp_request* last = TAILQ_LAST(&connection.requests, RequestQueue);
  bool is_last = last == nullptr;
  while (!is_last && !connection.is_freed && connection.request() != nullptr) {
    evhttp_request& request = *connection.request();
    is_last = &request == last;
    connection.unlink(request);
    const Deferral deferral(request);
    if (request.cb != nullptr) request.cb(&request, request.cb_arg);
    if (!deferral.was_freed()) free_unless_owned(request);
  }
}

bool waits_to_retry(const evhttp_connection& connection) {
  return event_pending(&connection.retry, EV_TIMEOUT, nullptr) != 0;
}

// Sends the requests queued after the one that has ended.
void go_on(evhttp_connection& connection) {
  if (connection.request() == nullptr || waits_to_retry(connection)) return;
  if (connection.state == evhttp_connection::State::connecting) return;
  if (connection.is_connected()) {
    send_first(connection);
  } else {
    connect_or_retry(connection);
  }
}

}  // namespace

void spate::libevent::connected(evhttp_connection& connection) {
  connection.retries = 0;
  socklen_t size = sizeof connection.address;
  auto* address = reinterpret_cast<sockaddr*>(&connection.address);
  if (getpeername(bufferevent_getfd(connection.bev), address, &size) == 0) {
    connection.address_size = static_cast<int>(size);
  }
  connection.set_timeouts(timeout_or(connection, kTimeout));
  connection.begin_idling();
  if (!connection.is_freed) go_on(connection);
}

void spate::libevent::connect_failed(evhttp_connection& connection) {
  connection.disconnect();
  if (may_retry(connection) && connection.request() != nullptr && retry_later(connection)) return;
  connection.retries = 0;
  give_up_all(connection);
  if (connection.is_freed) return;
  if (connection.request() != nullptr) {
    connect_or_retry(connection);
  } else {
    end_if_done(connection);
  }
}

void spate::libevent::end_if_done(evhttp_connection& connection) {
  const bool is_done = connection.request() == nullptr && !connection.is_connected();
  if (connection.ends_when_done && is_done) evhttp_connection_free(&connection);
}

void spate::libevent::finish_answer(evhttp_connection& connection, bool has_ended) {
  evhttp_request& request = *connection.request();
  const bool closes = closes_connection(request, *request.input_headers) ||
                      closes_connection(request, *request.output_headers);
  {
    const Deferral deferral(request);
    connection.unlink(request);
    if (closes) {
      connection.disconnect();
    } else if (connection.request() == nullptr && !has_ended) {
      connection.begin_idling();
    } else {
      // Reading is enabled after the next request is written: an end that was there before is then
      // reported before it is sent.
      connection.state = evhttp_connection::State::idle;
    }
    if (!connection.is_freed) go_on(connection);
    if (!deferral.was_freed() && request.cb != nullptr) request.cb(&request, request.cb_arg);
    if (!deferral.was_freed()) free_unless_owned(request);
  }
  if (connection.is_freed) return;
  const bool is_idle = connection.state == evhttp_connection::State::idle;
  if (has_ended && is_idle && connection.is_connected()) connection.begin_idling();
  if (!connection.is_freed) end_if_done(connection);
}

void spate::libevent::restart(evhttp_connection& connection) {
  const Stay stay(connection);
  // A lookup cannot be cancelled, so a connection attempt continues.
  if (connection.state != evhttp_connection::State::connecting) connection.disconnect();
  if (!connection.is_freed) go_on(connection);
  if (!connection.is_freed) end_if_done(connection);
}

// A cancelled request gets only the error callback.
void spate::libevent::fail_request(evhttp_connection& connection, evhttp_request_error error) {
  evhttp_request* request = connection.request();
  if (request == nullptr) return restart(connection);
  const auto on_error = request->error_cb;
  const auto callback = error != EVREQ_HTTP_REQUEST_CANCEL ? request->cb : nullptr;
  void* argument = request->cb_arg;
  {
    const Deferral deferral(*request);
    connection.unlink(*request);
    restart(connection);
    if (deferral.was_freed()) return;
    free_unless_owned(*request);
  }
  if (on_error != nullptr) on_error(error, argument);
  if (callback != nullptr) callback(nullptr, argument);
}

// ---- the exported functions

evhttp_connection* evhttp_connection_base_bufferevent_new(event_base* base, evdns_base* names,
                                                          bufferevent* bev, const char* address,
                                                          ev_uint16_t port) {
  evhttp_connection* connection = make_connection(base, bev, address, port);
  if (connection == nullptr) return nullptr;
  if (!connection->watch_below()) {
    evhttp_connection_free(connection);
    return nullptr;
  }
  connection->names = names;
  connection->family = AF_UNSPEC;
  if (base != nullptr) bufferevent_base_set(base, connection->bev);
  const event_callback_fn retry = [](evutil_socket_t, short, void* argument) {
    auto& waiting = *static_cast<evhttp_connection*>(argument);
    const Stay stay(waiting);
    connect_or_retry(waiting);
  };
  event_assign(&connection->retry, base, -1, 0, retry, connection);
  return connection;
}

evhttp_connection* evhttp_connection_base_new(event_base* base, evdns_base* names,
                                              const char* address, ev_uint16_t port) {
  return evhttp_connection_base_bufferevent_new(base, names, nullptr, address, port);
}

evhttp_connection* evhttp_connection_new(const char* address, ev_uint16_t port) {
  return evhttp_connection_base_new(nullptr, nullptr, address, port);
}

int evhttp_make_request(evhttp_connection* connection, evhttp_request* request,
                        evhttp_cmd_type type, const char* uri) {
  request->kind = EVHTTP_REQUEST;
  request->type = type;
  release(request->uri);
  request->uri = duplicate(uri);
  if (request->uri == nullptr) {
    warn("evhttp_make_request: the target cannot be copied");
    free_unless_owned(*request);
    return -1;
  }
  const Stay stay(*connection);
  if (request->major == 0 && request->minor == 0) request->major = request->minor = 1;
  const bool is_first = connection->request() == nullptr;
  connection->append(*request);
  if (!is_first) return 0;
  if (connection->is_connected()) {
    send_first(*connection);
    return 0;
  }
  if (connection->state == evhttp_connection::State::connecting) return 0;
  if (waits_to_retry(*connection)) return 0;
  if (connect(*connection)) return 0;
  if (connection->is_freed || request->evcon == nullptr) return -1;
  connection->unlink(*request);
  free_unless_owned(*request);
  return -1;
}

void evhttp_cancel_request(evhttp_request* request) {
  evhttp_connection* connection = request->evcon;
  if (connection == nullptr) return free_unless_owned(*request);
  const Stay stay(*connection);
  if (connection->request() == request) return connection->fail(EVREQ_HTTP_REQUEST_CANCEL);
  connection->unlink(*request);
  free_unless_owned(*request);
}

void evhttp_connection_free_on_completion(evhttp_connection* connection) {
  connection->ends_when_done = true;
}
