#include "compat/libevent/http/connection.h"

#include <cerrno>
#include <cstdint>

#include "compat/libevent/http/client.h"
#include "compat/libevent/http/request.h"
#include "compat/libevent/http/server.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

constexpr timeval kRetryDelay{2, 0};

void close_socket(bufferevent* bev) {
  const evutil_socket_t fd = detach_socket(bev);
  if (fd >= 0) evutil_closesocket(fd);
}

// A server's client has closed. A response in progress stays the program's, which ends or frees the
// request later.
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
  // A lookup may end, and make a socket, after the connection was freed.
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

bool evhttp_connection::watch_below() {
  const bufferevent* lowest = lowest_of(bev);
  return lowest == bev || evbuffer_add_cb(lowest->output, on_sent_below, this) != nullptr;
}

void evhttp_connection::disconnect() {
  const bool was_connected = is_connected();
  state = State::disconnected;
  bufferevent_disable(bev, EV_READ | EV_WRITE);
  bufferevent_setcb(bev, nullptr, nullptr, nullptr, nullptr);
  after_write = nullptr;
  if (was_connected && close_callback != nullptr) close_callback(this, close_argument);
  if (is_freed || state != State::disconnected) return;  // The callback may have reconnected.
  close_socket(bev);
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
  bufferevent_disable(bev, EV_READ | EV_WRITE);
  if (server == nullptr) evbuffer_remove_cb(lowest_of(bev)->output, on_sent_below, this);
  close_socket(bev);
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

void evhttp_connection::begin_reading() { read_in(State::first_line); }

void evhttp_connection::begin_idling() { read_in(State::idle); }

// Through a filter, an end that was reported before is reported again by bufferevent_enable().
void evhttp_connection::read_in(State first) {
  state = first;
  bufferevent_setcb(bev, on_readable, on_written, on_event, this);
  bufferevent_disable(bev, EV_WRITE);
  enable_reading();
}

// Below a filter, an end that was reported has disabled reading; then it is reported again.
void evhttp_connection::enable_reading() {
  bufferevent_enable(bev, EV_READ);
  if (is_server()) return;
  bufferevent* each = bev;
  while ((each = bufferevent_get_underlying(each)) != nullptr) bufferevent_enable(each, EV_READ);
}

// Reading only detects the end; bytes that arrive wait in the input.
void evhttp_connection::write(WrittenCallback callback, void* argument) {
  after_write = callback;
  after_write_argument = argument;
  bufferevent_setcb(bev, nullptr, on_written, on_event, this);
  if (is_advancing) {
    bev->enabled |= EV_READ | EV_WRITE;
    has_answered = true;
  } else {
    enable_writing(EV_READ | EV_WRITE);
  }
}

// A filter does not move output that was added while writing was disabled, as a request is. A
// server behaves as libevent's.
void evhttp_connection::enable_writing(short what) {
  bufferevent_enable(bev, what);
  if (!is_server()) bufferevent_flush(bev, EV_WRITE, BEV_NORMAL);
}

// Sends a response while its bytes are in the cache, without waiting for writability. Reading is
// not registered either, if the next request is read as soon as the loop has reported the write.
void evhttp_connection::send_answer() {
  has_answered = false;
  if (is_freed) return;
  const bool is_whole = is_server() && request() != nullptr && request()->userdone != 0;
  if (!write_at_once(bev)) {
    enable_writing(bev->enabled);
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

// A filter reports output that it has moved; the socket below may not have sent it.
bool evhttp_connection::sends_below() const {
  if (is_server()) return false;
  const bufferevent* lowest = lowest_of(bev);
  return lowest != bev && evbuffer_get_length(lowest->output) != 0;
}

void evhttp_connection::on_sent_below(evbuffer* output, const evbuffer_cb_info* info,
                                      void* argument) {
  const auto& connection = *static_cast<evhttp_connection*>(argument);
  if (info->n_deleted == 0 || evbuffer_get_length(output) != 0) return;
  if (connection.after_write == nullptr) return;
  bufferevent_trigger(connection.bev, EV_WRITE,
                      BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

void evhttp_connection::on_written(bufferevent*, void* argument) {
  auto& connection = *static_cast<evhttp_connection*>(argument);
  if (connection.sends_below()) return;
  const WrittenCallback callback = connection.after_write;
  if (callback == nullptr) return;
  connection.after_write = nullptr;
  const Stay stay(connection);
  callback(&connection, connection.after_write_argument);
}

void evhttp_connection::on_connecting(evhttp_connection& connection, short what) {
  if ((what & BEV_EVENT_CONNECTED) != 0) return connected(connection);
  // The server may be up soon, so another attempt is worthwhile. Any other error ends the request.
  const bool is_refused = (what & BEV_EVENT_ERROR) != 0 && errno == ECONNREFUSED;
  if (is_refused || (what & BEV_EVENT_TIMEOUT) != 0) return connect_failed(connection);
  connection.disconnect();
  if (!connection.is_freed) connection.fail(EVREQ_HTTP_EOF);
}

void evhttp_connection::on_event(bufferevent*, short what, void* argument) {
  auto& connection = *static_cast<evhttp_connection*>(argument);
  const Stay stay(connection);
  if (connection.state == State::connecting) return on_connecting(connection, what);
  if ((what & BEV_EVENT_CONNECTED) != 0) return;  // The end of a TLS handshake.
  if (connection.state == State::idle) {
    connection.disconnect();
    if (!connection.is_freed) end_if_done(connection);
    return;
  }
  const evhttp_request* request = connection.request();
  const bool ends_body = connection.state == State::body && request != nullptr &&
                         request->chunked == 0 && request->ntoread < 0;
  if (ends_body && (what & BEV_EVENT_EOF) != 0) {
    const bool is_filter = bufferevent_get_underlying(connection.bev) != nullptr;
    return finish_answer(connection, !is_filter);
  }
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
