// The functions of a TLS bufferevent that all bufferevents have.
//
// Semantics: event2/bufferevent_ssl.h; probed: the events enabled below a filter, which of its
// events are passed on, and the effects of a new descriptor.
#include "compat/libevent/bufferevent/tls.h"

#include <cerrno>

#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

TlsConnection& as_tls(Connection& connection) { return static_cast<TlsConnection&>(connection); }

bool is_shaking(const TlsConnection& connection) { return connection.state != TlsState::open; }

// On a socket, unlike on other kinds, the enabled events stay enabled.
void time_out(TlsConnection& connection, short direction) {
  const short during = is_shaking(connection) ? 0 : direction;
  connection.call_event(static_cast<short>(BEV_EVENT_TIMEOUT | during), 0);
}

// ---- on a socket

void on_readable(evutil_socket_t, short what, void* argument) {
  auto& connection = *static_cast<TlsConnection*>(argument);
  const Keep keep(&connection);
  if (connection.is_finalized) return;
  if (what == EV_TIMEOUT) return time_out(connection, BEV_EVENT_READING);
  is_shaking(connection) ? tls_handshake(connection) : tls_read(connection);
}

void on_writable(evutil_socket_t, short what, void* argument) {
  auto& connection = *static_cast<TlsConnection*>(argument);
  const Keep keep(&connection);
  if (connection.is_finalized) return;
  if (what == EV_TIMEOUT) return time_out(connection, BEV_EVENT_WRITING);
  connection.is_connecting = false;
  is_shaking(connection) ? tls_handshake(connection) : tls_write(connection);
}

void assign(TlsConnection& connection, evutil_socket_t fd) {
  event_assign(&connection.ev_read, connection.ev_base, fd, EV_READ | EV_PERSIST | EV_FINALIZE,
               on_readable, &connection);
  event_assign(&connection.ev_write, connection.ev_base, fd, EV_WRITE | EV_PERSIST | EV_FINALIZE,
               on_writable, &connection);
}

// The first step is made when the socket is ready for something that is enabled.
void begin(TlsConnection& connection) {
  if (connection.below == nullptr && connection.ev_read.ev_fd < 0) return;
  if (is_shaking(connection)) {
    connection.engine->begin(connection);
    connection.handshake_waits = connection.below != nullptr ? EV_WRITE : 0;
    tls_await_handshake(connection, connection.enabled);
  }
}

// ---- through another bufferevent

void on_read_below(bufferevent*, void* argument) {
  auto& connection = *static_cast<TlsConnection*>(argument);
  const Keep keep(&connection);
  is_shaking(connection) ? tls_handshake(connection) : tls_read(connection);
}

void on_write_below(bufferevent*, void* argument) {
  auto& connection = *static_cast<TlsConnection*>(argument);
  const Keep keep(&connection);
  is_shaking(connection) ? tls_handshake(connection) : tls_write(connection);
}

// EOF there is an error: the peer has not sent close_notify.
void on_event_below(bufferevent*, short what, void* argument) {
  auto& connection = *static_cast<TlsConnection*>(argument);
  const Keep keep(&connection);
  const bool is_end = (what & BEV_EVENT_EOF) != 0;
  if (connection.has_failed) return;
  if ((what & BEV_EVENT_CONNECTED) != 0) {
    return is_shaking(connection) ? tls_handshake(connection) : void();
  }
  if (is_end && connection.has_read_all) return;
  if (is_end) what = connection.allows_dirty_shutdown ? BEV_EVENT_EOF : BEV_EVENT_ERROR;
  connection.call_event(what, 0);
}

// ---- functions of all bufferevents

int start(Connection& connection, short what) {
  tls_start(as_tls(connection), what);
  return 0;
}

int stop(Connection& connection, short what) {
  Connection* below = as_tls(connection).below;
  if (below != nullptr && (what & EV_READ) != 0) below->rest_reading(kRestFilter);
  return stop_timeouts(connection, what);
}

int timeouts_changed(Connection& connection) {
  if (as_tls(connection).below != nullptr) return adjust_timeouts(connection);
  return change_timeouts(connection);
}

// As in libevent, output added to an empty buffer waits for the descriptor even if writing is
// disabled; after a failure no other output does.
void output_added(Connection& connection, const evbuffer_cb_info& change) {
  TlsConnection& tls = as_tls(connection);
  if (is_shaking(tls)) return;
  if (tls.below != nullptr) {
    const Keep keep(&connection);
    return tls_write(tls);
  }
  const bool is_enabled = (tls.enabled & EV_WRITE) != 0 && tls.writing_rests == 0;
  const bool may_write = is_enabled && !tls.has_failed;
  const bool waits = may_write || change.orig_size == 0;
  if (waits && event_pending(&tls.ev_write, EV_WRITE, nullptr) == 0) {
    add_event(tls.ev_write, tls.timeout_write);
  }
}

void input_has_room(Connection& connection) {
  TlsConnection& tls = as_tls(connection);
  if (tls.below == nullptr || is_shaking(tls)) return;
  if (tls.has_failed || tls.has_read_all) return;
  const Keep keep(&connection);
  tls_read(tls);
}

int flush(Connection&, short, bufferevent_flush_mode) { return 0; }

// A new connection: its handshake is still to come, whatever the state of the last one.
[[nodiscard]] bool forget_connection(TlsConnection& connection) {
  connection.has_failed = connection.has_read_all = false;
  if (connection.role == TlsState::open) return true;  // The program has done the handshake.
  connection.state = connection.role;
  connection.write_to_repeat = 0;
  connection.reading_waits_to_write = connection.writing_waits_to_read = false;
  return connection.engine->reset(connection);
}

// The buffers below may still contain bytes of the last connection, or of an unsent handshake.
int set_fd_below(TlsConnection& connection, evutil_socket_t fd) {
  if (fd < 0) return 0;  // As in libevent, the bufferevent below keeps its descriptor.
  Connection& below = *connection.below;
  if (bufferevent_setfd(&below, fd) != 0) return -1;
  below.input->discard(below.input_size());
  below.output->discard(below.output_size());
  if (!forget_connection(connection)) return -1;
  begin(connection);
  bufferevent_enable(&below, EV_READ | EV_WRITE);
  tls_start(connection, connection.enabled);
  return 0;
}

int set_fd(Connection& connection, evutil_socket_t fd) {
  TlsConnection& tls = as_tls(connection);
  if (tls.below != nullptr) return set_fd_below(tls, fd);
  stop_timeouts(connection, EV_READ | EV_WRITE);
  if (!tls.engine->use_fd(tls, fd)) return -1;
  tls.counted_read = tls.counted_written = 0;  // The new descriptor's count starts at 0.
  assign(tls, fd);  // With the default priority, as in libevent.
  if (!forget_connection(tls)) return -1;
  begin(tls);
  return 0;
}

evutil_socket_t fd_of(const Connection& connection) {
  Connection* below = static_cast<const TlsConnection&>(connection).below;
  return below != nullptr ? bufferevent_getfd(below) : connection.ev_read.ev_fd;
}

bufferevent* underlying(const Connection& connection) {
  return static_cast<const TlsConnection&>(connection).below;
}

SocketConnection* socket(Connection& connection) {
  TlsConnection& tls = as_tls(connection);
  return tls.below == nullptr ? &tls : nullptr;
}

void unlink(Connection& connection) {
  TlsConnection& tls = as_tls(connection);
  stop_timeouts(connection, EV_READ | EV_WRITE);
  if (tls.below == nullptr) return;
  Connection& below = *tls.below;
  if (below.errorcb == on_event_below) {
    bufferevent_setcb(&below, nullptr, nullptr, nullptr, nullptr);
  }
  if ((connection.options & BEV_OPT_CLOSE_ON_FREE) != 0) return bufferevent_free(&below);
  below.resume_reading(kRestFilter);
}

void destroy(Connection& connection) {
  TlsConnection& tls = as_tls(connection);
  const bool closes = (connection.options & BEV_OPT_CLOSE_ON_FREE) != 0;
  const evutil_socket_t fd = tls.below == nullptr ? fd_of(connection) : -1;
  if (closes) tls.engine->free(tls);
  if (closes && fd >= 0) evutil_closesocket(fd);
  if (tls.below == nullptr) return;
  const Holding holding(tls.lock());
  tls.below->give_up();
}

constexpr bufferevent_ops kTlsOps = {
    .start = start,
    .stop = stop,
    .timeouts_changed = timeouts_changed,
    .output_added = output_added,
    .input_has_room = input_has_room,
    .flush = flush,
    .set_fd = set_fd,
    .fd = fd_of,
    .underlying = underlying,
    .socket = socket,
    .unlink = unlink,
    .destroy = destroy,
};

void stand_on(TlsConnection& connection, Connection& below) {
  connection.below = &below;
  below.take();
  assign_timeouts(connection);
  bufferevent_setcb(&below, on_read_below, on_write_below, on_event_below, &connection);
}

}  // namespace

bufferevent* spate_bufferevent_tls_new(const TlsPlan& plan) {
  auto* connection = static_cast<TlsConnection*>(allocate_zeroed(sizeof(TlsConnection)));
  if (connection == nullptr) return nullptr;
  const bool is_filter = plan.below != nullptr;
  // Without threads, BEV_OPT_THREADSAFE has no effect; for other kinds it is an error.
  const bool owns_lock = !is_filter && has_locks();
  const int options = owns_lock ? plan.options : plan.options & ~BEV_OPT_THREADSAFE;
  if (!connection->open(plan.base, kTlsOps, options) ||
      (is_filter && !connection->share_lock(connection_of(plan.below).lock()))) {
    connection->destroy();
    return nullptr;
  }
  connection->engine = plan.engine;
  connection->ssl = plan.ssl;
  connection->state = connection->role = plan.state;
  if (!is_filter) {
    assign(*connection, plan.fd);
    begin(*connection);
    return connection;
  }
  const Keep keep(plan.below);
  stand_on(*connection, connection_of(plan.below));
  begin(*connection);
  bufferevent_enable(plan.below, EV_READ | EV_WRITE);
  return connection;
}

TlsConnection* spate_bufferevent_tls_of(bufferevent* bev) {
  return bev->be_ops == &kTlsOps ? static_cast<TlsConnection*>(bev) : nullptr;
}

// As in libevent, whether the engine supports it or not; the new handshake ends as any other.
int spate_bufferevent_tls_renegotiate(TlsConnection& connection) {
  if (connection.has_failed || is_shaking(connection)) return -1;
  connection.engine->renegotiate(connection);
  connection.state = connection.role;
  if (connection.below != nullptr) connection.below->resume_reading(kRestFilter);
  tls_handshake(connection);
  if (connection.has_failed) return -1;
  return is_shaking(connection) ? 0 : 1;
}
