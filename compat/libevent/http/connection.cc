#include "compat/libevent/http/connection.h"

#include <cstdint>

#include "compat/libevent/http/client.h"
#include "compat/libevent/http/request.h"
#include "compat/libevent/http/server.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

constexpr timeval kRetryDelay{2, 0};

void drain(evbuffer* buffer) { evbuffer_drain(buffer, evbuffer_get_length(buffer)); }

// A server's client has gone. What the program is sending stays the program's: it ends it, or frees
// it, when it comes to that.
void leave_sender(evhttp_connection& connection) {
  evhttp_request* request = connection.request();
  if (request == nullptr || connection.state != evhttp_connection::State::writing) return;
  if (request->userdone != 0) return;
  request->response_code = HTTP_BADREQUEST;
  connection.unlink(*request);
}

}  // namespace

// ---- lifetime

evhttp_connection* spate::libevent::make_connection(event_base* base, bufferevent* bev,
                                                    const char* peer, ev_uint16_t port) {
  auto* made = static_cast<evhttp_connection*>(allocate_zeroed(sizeof(evhttp_connection)));
  char* name = made != nullptr ? duplicate(peer) : nullptr;
  // A lookup may end, and make a socket, after the connection has gone.
  if (bev == nullptr && name != nullptr) {
    bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
  }
  if (name == nullptr || bev == nullptr) {
    warn("a connection cannot be made");
    if (bev != nullptr) bufferevent_free(bev);
    release(name);
    release(made);
    return nullptr;
  }
  TAILQ_INIT(&made->requests);
  made->base = base;
  made->bev = bev;
  made->peer = name;
  made->port = port;
  made->most_headers = SIZE_MAX;
  made->most_body = UINT64_MAX;
  made->retry_delay = kRetryDelay;
  bufferevent_setcb(bev, evhttp_connection::on_readable, evhttp_connection::on_written,
                    evhttp_connection::on_event, made);
  return made;
}

void evhttp_connection::append(evhttp_request& request) {
  request.evcon = this;
  TAILQ_INSERT_TAIL(&requests, &request, next);
}

void evhttp_connection::unlink(evhttp_request& request) {
  TAILQ_REMOVE(&requests, &request, next);
  request.evcon = nullptr;
}

void evhttp_connection::disconnect() {
  const bool was_connected = is_connected();
  state = State::disconnected;
  bufferevent_disable(bev, EV_READ | EV_WRITE);
  bufferevent_setcb(bev, nullptr, nullptr, nullptr, nullptr);
  after_write = nullptr;
  if (was_connected && close_callback != nullptr) close_callback(this, close_argument);
  if (is_freed || state != State::disconnected) return;  // The callback may have begun anew.
  const evutil_socket_t fd = bufferevent_getfd(bev);
  if (fd >= 0) {
    bufferevent_setfd(bev, -1);
    evutil_closesocket(fd);
  }
  drain(input());
  evbuffer_unfreeze(output(), 1);
  drain(output());
  evbuffer_freeze(output(), 1);
}

void evhttp_connection::close() {
  const bool was_connected = is_connected();
  is_freed = true;
  if (server != nullptr) TAILQ_REMOVE(&server->connections, this, next);  // Which may be freed now.
  if (was_connected && close_callback != nullptr) close_callback(this, close_argument);
  while (evhttp_request* first = request()) {
    unlink(*first);
    free_unless_owned(*first);
  }
  if (event_initialized(&retry)) event_del(&retry);
  bufferevent_setcb(bev, nullptr, nullptr, nullptr, nullptr);
  const evutil_socket_t fd = bufferevent_getfd(bev);
  bufferevent_disable(bev, EV_READ | EV_WRITE);
  if (fd >= 0) {
    bufferevent_setfd(bev, -1);
    evutil_closesocket(fd);
  }
  bufferevent_free(bev);
}

void evhttp_connection::release_last() {
  release(peer);
  release(local_address);
  release(this);
}

void evhttp_connection_free(evhttp_connection* connection) {
  if (connection->is_freed) return;
  const Stay stay(*connection);
  connection->close();
}

// ---- the bufferevent

void evhttp_connection::set_timeouts(const timeval& time) {
  bufferevent_set_timeouts(bev, &time, &time);
}

void evhttp_connection::begin_reading() {
  state = State::first_line;
  bufferevent_setcb(bev, on_readable, on_written, on_event, this);
  bufferevent_disable(bev, EV_WRITE);
  bufferevent_enable(bev, EV_READ);
}

void evhttp_connection::begin_idling() {
  begin_reading();
  state = State::idle;
}

// Reading is for learning of the end; what comes waits in the input.
void evhttp_connection::write(WrittenCallback callback, void* argument) {
  after_write = callback;
  after_write_argument = argument;
  bufferevent_setcb(bev, nullptr, on_written, on_event, this);
  if (is_advancing) {
    bev->enabled |= EV_READ | EV_WRITE;
    has_answered = true;
  } else {
    bufferevent_enable(bev, EV_READ | EV_WRITE);
  }
}

// An answer goes while its bytes are at hand, and the kernel is not asked to watch for it. Nor for
// what comes meanwhile, if the next request is read as soon as the loop has told that it has gone.
void evhttp_connection::send_answer() {
  has_answered = false;
  if (is_freed) return;
  const bool is_whole = is_server() && request() != nullptr && request()->userdone != 0;
  if (!write_at_once(bev)) {
    bufferevent_enable(bev, bev->enabled);
  } else if (!is_whole) {
    bufferevent_enable(bev, EV_READ);
  }
}

void evhttp_connection::on_readable(bufferevent*, void* argument) {
  auto& connection = *static_cast<evhttp_connection*>(argument);
  const Stay stay(connection);
  if (connection.state == State::idle) {
    connection.disconnect();
    if (!connection.is_freed) end_if_done(connection);
    return;
  }
  connection.is_advancing = true;
  connection.advance();
  connection.is_advancing = false;
  if (connection.has_answered) connection.send_answer();
}

void evhttp_connection::on_written(bufferevent*, void* argument) {
  auto& connection = *static_cast<evhttp_connection*>(argument);
  const WrittenCallback callback = connection.after_write;
  if (callback == nullptr) return;
  connection.after_write = nullptr;
  const Stay stay(connection);
  callback(&connection, connection.after_write_argument);
}

void evhttp_connection::on_event(bufferevent*, short what, void* argument) {
  auto& connection = *static_cast<evhttp_connection*>(argument);
  const Stay stay(connection);
  if (connection.state == State::connecting) {
    return (what & BEV_EVENT_CONNECTED) != 0 ? connected(connection) : connect_failed(connection);
  }
  if ((what & BEV_EVENT_CONNECTED) != 0) return;  // Of a handshake.
  if (connection.state == State::idle) {
    connection.disconnect();
    if (!connection.is_freed) end_if_done(connection);
    return;
  }
  const evhttp_request* request = connection.request();
  const bool ends_body = connection.state == State::body && request != nullptr &&
                         request->chunked == 0 && request->ntoread < 0;
  if (ends_body && (what & BEV_EVENT_EOF) != 0) return finish_answer(connection);
  const bool reads_on = (connection.flags & EVHTTP_CON_READ_ON_WRITE_ERROR) != 0;
  if (connection.state == State::writing && (what & BEV_EVENT_WRITING) != 0 && reads_on) {
    if (request != nullptr) connection.request()->kind = EVHTTP_RESPONSE;
    return connection.begin_reading();
  }
  connection.fail((what & BEV_EVENT_TIMEOUT) != 0 ? EVREQ_HTTP_TIMEOUT : EVREQ_HTTP_EOF);
}

// ---- ending

void evhttp_connection::fail(evhttp_request_error error) {
  if (!is_server()) return fail_request(*this, error);
  evhttp_request* failed = request();
  const bool has_gone = error == EVREQ_HTTP_TIMEOUT || error == EVREQ_HTTP_EOF;
  if (has_gone || failed == nullptr) {
    leave_sender(*this);
    return evhttp_connection_free(this);
  }
  forget_target(*failed);
  if (failed->response_code != HTTP_EXPECTATIONFAILED) {
    const bool is_long = error == EVREQ_HTTP_DATA_TOO_LONG;
    failed->response_code = is_long ? HTTP_ENTITYTOOLARGE : HTTP_BADREQUEST;
  }
  serve(*this);
}
