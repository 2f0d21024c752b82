// Semantics: event2/bufferevent.h; probed: which errors end which direction, and when the write
// callback is called without a write.
#include "compat/libevent/bufferevent/socket.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "compat/libevent/bufferevent/rate_limit.h"
#include "compat/libevent/event/closing.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

SocketConnection& as_socket(Connection& connection) {
  return static_cast<SocketConnection&>(connection);
}

bool is_retriable(int error) { return error == EAGAIN || error == EINTR; }

// The event for a transfer that moved nothing.
short failure_of(int result, short direction) {
  return static_cast<short>((result == 0 ? BEV_EVENT_EOF : BEV_EVENT_ERROR) | direction);
}

// ---- writing

int write_from(Connection& connection, std::size_t most) {
  evbuffer* output = connection.output;
  output->freeze(true, false);
  const int written =
      evbuffer_write_atmost(output, connection.ev_write.ev_fd, static_cast<ev_ssize_t>(most));
  output->freeze(true, true);
  return written;
}

void wait_to_write(Connection& connection) {
  const bool may_write = (connection.enabled & EV_WRITE) != 0 && connection.writing_rests == 0;
  if (!may_write || event_pending(&connection.ev_write, EV_WRITE, nullptr) != 0) return;
  add_event(connection.ev_write, connection.timeout_write);
}

// Returns true if all output may be written now, without waiting for writability, and only a write
// callback could notice.
bool may_write_at_once(Connection& connection) {
  constexpr int kProgramAndKeep = 2;  // With fewer, the program has freed it.
  return !connection.output->has_callbacks() && !connection.is_connecting &&
         connection.extras().rate_limit == nullptr && connection.references >= kProgramAndKeep &&
         (connection.enabled & EV_WRITE) != 0 && connection.writing_rests == 0 &&
         event_pending(&connection.ev_write, EV_WRITE | EV_TIMEOUT, nullptr) == 0;
}

// Returns true if everything was written.
bool write_whole(Connection& connection) {
  if (!may_write_at_once(connection)) return false;
  const std::size_t most = most_to_write(connection);
  if (connection.output_size() > most) return false;
  write_from(connection, most);
  return connection.output_size() == 0;
}

// Writes a reply while its bytes are in the cache. The rest and errors are left to the loop; with a
// write callback everything is, since that is called in the next turn, at the earliest.
void write_answer(Connection& connection) {
  if (connection.writecb == nullptr) write_whole(connection);
  if (connection.output_size() != 0) wait_to_write(connection);
}

void end_writing(Connection& connection, short event) {
  const int error = errno;
  bufferevent_disable(&connection, EV_WRITE);
  errno = error;
  connection.call_event(event, 0);
}

// Returns the error of a connection attempt, 0 if it succeeded, or EAGAIN.
int result_of_connect(SocketConnection& connection) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(connection.ev_write.ev_fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error == EINPROGRESS || error == EINTR ? EAGAIN : error;
}

// Returns true if there may be output to write now.
bool finish_connecting(SocketConnection& connection) {
  const int error = result_of_connect(connection);
  if (error == EAGAIN) return false;
  connection.is_connecting = false;
  if (error != 0) {
    event_del(&connection.ev_write);
    event_del(&connection.ev_read);
    errno = error;
    connection.call_event(BEV_EVENT_ERROR, 0);
    return false;
  }
  connection.call_event(BEV_EVENT_CONNECTED, 0);
  if ((connection.enabled & EV_WRITE) != 0 && connection.writing_rests == 0) return true;
  event_del(&connection.ev_write);
  return false;
}

void on_writable(evutil_socket_t, short what, void* argument) {
  auto& connection = *static_cast<SocketConnection*>(argument);
  const Keep keep(&connection);
  if (connection.is_finalized) return;
  if (what == EV_TIMEOUT) {
    return end_writing(connection, BEV_EVENT_WRITING | BEV_EVENT_TIMEOUT);
  }
  const bool was_connecting = connection.is_connecting;
  if (was_connecting && !finish_connecting(connection)) return;
  const std::size_t most = most_to_write(connection);  // Fills the bucket in any case.
  if (connection.writing_rests != 0) return;
  int written = 0;
  if (connection.output_size() != 0) {
    if (most == 0) return;
    written = write_from(connection, most);
    if (written < 0 && is_retriable(errno)) return;
    if (written <= 0) return end_writing(connection, failure_of(written, BEV_EVENT_WRITING));
    note_written(connection, static_cast<std::size_t>(written));
  }
  if (connection.output_size() == 0) event_del(&connection.ev_write);
  // A new connection has not written anything yet.
  if (written != 0 || !was_connecting) connection.trigger(EV_WRITE, 0);
}

// ---- reading

int read_into(Connection& connection, std::size_t most) {
  evbuffer* input = connection.input;
  input->freeze(false, false);
  const auto cut = static_cast<int>(std::min<std::size_t>(most, INT_MAX));
  const int got = evbuffer_read(input, connection.ev_read.ev_fd, cut);
  input->freeze(false, true);
  return got;
}

void end_reading(Connection& connection, short event) {
  const int error = errno;
  bufferevent_disable(&connection, EV_READ);
  errno = error;
  connection.call_event(event, 0);
}

void on_readable(evutil_socket_t, short what, void* argument) {
  auto& connection = *static_cast<SocketConnection*>(argument);
  const Keep keep(&connection);
  if (connection.is_finalized) return;
  if (what == EV_TIMEOUT) {
    return end_reading(connection, BEV_EVENT_READING | BEV_EVENT_TIMEOUT);
  }
  std::size_t most = most_to_read(connection);
  if (connection.wm_read.high != 0) {
    if (connection.input_size() >= connection.wm_read.high) {
      return connection.rest_reading(kRestWatermark);
    }
    const std::size_t room = connection.wm_read.high - connection.input_size();
    if (room < most) most = room;
  }
  if (connection.reading_rests != 0 || most == 0) return;
  const int got = read_into(connection, most);
  if (got < 0 && is_retriable(errno)) return;
  if (got <= 0) return end_reading(connection, failure_of(got, BEV_EVENT_READING));
  note_read(connection, static_cast<std::size_t>(got));
  connection.is_calling_read = true;
  connection.trigger(EV_READ, 0);
  connection.is_calling_read = false;
  if (!connection.has_answered) return;
  connection.has_answered = false;
  write_answer(connection);
}

// ---- functions of all bufferevents

int start(Connection& connection, short what) {
  if ((what & EV_READ) != 0 && add_event(connection.ev_read, connection.timeout_read) != 0)
    return -1;
  const bool writes = (what & EV_WRITE) != 0;
  return writes && add_event(connection.ev_write, connection.timeout_write) != 0 ? -1 : 0;
}

// A pending connection attempt continues.
int stop(Connection& connection, short what) {
  if ((what & EV_READ) != 0 && event_del(&connection.ev_read) != 0) return -1;
  const bool writes = (what & EV_WRITE) != 0 && !as_socket(connection).is_connecting;
  return writes && event_del(&connection.ev_write) != 0 ? -1 : 0;
}

int change_timeout(event& ev, short kind, const timeval& timeout) {
  if (event_pending(&ev, kind, nullptr) == 0) return 0;
  return is_set(timeout) ? event_add(&ev, &timeout) : event_remove_timer(&ev);
}

void output_added(Connection& connection, const evbuffer_cb_info&) {
  SocketConnection& socket = as_socket(connection);
  if (socket.is_calling_read) {
    socket.has_answered = true;
  } else {
    wait_to_write(connection);
  }
}

void assign(Connection& connection, evutil_socket_t fd) {
  event_assign(&connection.ev_read, connection.ev_base, fd, EV_READ | EV_PERSIST | EV_FINALIZE,
               on_readable, &connection);
  event_assign(&connection.ev_write, connection.ev_base, fd, EV_WRITE | EV_PERSIST | EV_FINALIZE,
               on_writable, &connection);
}

int set_fd(Connection& connection, evutil_socket_t fd) {
  event_del(&connection.ev_read);
  event_del(&connection.ev_write);
  const int priority = event_get_priority(&connection.ev_read);
  assign(connection, fd);
  event_priority_set(&connection.ev_read, priority);
  event_priority_set(&connection.ev_write, priority);
  if (fd >= 0) bufferevent_enable(&connection, connection.enabled);
  return 0;  // Although the descriptor may not support polling.
}

evutil_socket_t fd_of(const Connection& connection) { return connection.ev_read.ev_fd; }

SocketConnection* socket(Connection& connection) { return &as_socket(connection); }

void destroy(Connection& connection) {
  const evutil_socket_t fd = fd_of(connection);
  if ((connection.options & BEV_OPT_CLOSE_ON_FREE) == 0 || fd < 0) return;
  forget_descriptor(connection.ev_read);
  forget_descriptor(connection.ev_write);
  evutil_closesocket(fd);
}

constexpr bufferevent_ops kSocketOps = {
    .start = start,
    .stop = stop,
    .timeouts_changed = change_timeouts,
    .output_added = output_added,
    .input_has_room = nullptr,
    .flush = nullptr,
    .set_fd = set_fd,
    .fd = fd_of,
    .underlying = nullptr,
    .socket = socket,
    .unlink = nullptr,
    .destroy = destroy,
};

}  // namespace

SocketConnection* spate::libevent::socket_of(bufferevent* bev) {
  return bev->be_ops->socket != nullptr ? bev->be_ops->socket(connection_of(bev)) : nullptr;
}

namespace {

Connection* below(const Connection& connection) {
  bufferevent* next = nullptr;
  if (connection.be_ops->underlying != nullptr) next = connection.be_ops->underlying(connection);
  return static_cast<Connection*>(next);
}

}  // namespace

bufferevent* spate::libevent::lowest_of(bufferevent* bev) {
  Connection* connection = &connection_of(bev);
  while (Connection* next = below(*connection)) connection = next;
  return connection;
}

SocketConnection* spate::libevent::lowest_socket_of(bufferevent* bev) {
  return socket_of(lowest_of(bev));
}

void spate::libevent::enable_below(bufferevent* bev) {
  for (Connection* each = below(connection_of(bev)); each != nullptr; each = below(*each)) {
    each->enabled |= EV_READ | EV_WRITE;
  }
}

evutil_socket_t spate::libevent::detach_socket(bufferevent* bev) {
  const Keep keep(bev);
  Connection& socket = connection_of(lowest_of(bev));
  const evutil_socket_t fd = bufferevent_getfd(&socket);
  if (fd >= 0) bufferevent_setfd(&socket, -1);
  for (Connection* each = &connection_of(bev); each != nullptr; each = below(*each)) {
    each->input->discard(each->input_size());
    each->output->discard(each->output_size());
  }
  return fd;
}

bool spate::libevent::write_at_once(bufferevent* bev) {
  if (bev->be_ops != &kSocketOps) return false;
  Connection& connection = connection_of(bev);
  const Keep keep(bev);
  if (!write_whole(connection)) return false;
  event_active(&connection.ev_write, EV_WRITE, 1);
  return true;
}

int spate::libevent::change_timeouts(Connection& connection) {
  const int read = change_timeout(connection.ev_read, EV_READ, connection.timeout_read);
  const int write = change_timeout(connection.ev_write, EV_WRITE, connection.timeout_write);
  return read < 0 || write < 0 ? -1 : 0;
}

// ---- the exported functions

bufferevent* bufferevent_socket_new(event_base* base, evutil_socket_t fd, int options) {
  auto* connection = static_cast<SocketConnection*>(allocate_zeroed(sizeof(SocketConnection)));
  if (connection == nullptr) return nullptr;
  if (!connection->open(base, kSocketOps, options)) {
    connection->destroy();
    return nullptr;
  }
  connection->freeze_buffers();
  connection->output->set_drains_to_fd(true);
  assign(*connection, fd);
  return connection;
}

bufferevent* bufferevent_new(evutil_socket_t fd, bufferevent_data_cb on_read,
                             bufferevent_data_cb on_write, bufferevent_event_cb on_event,
                             void* argument) {
  bufferevent* bev = bufferevent_socket_new(nullptr, fd, 0);
  if (bev != nullptr) bufferevent_setcb(bev, on_read, on_write, on_event, argument);
  return bev;
}

int bufferevent_base_set(event_base* base, bufferevent* bev) {
  const Keep keep(bev);
  if (bev->be_ops != &kSocketOps) return -1;
  event_base* before = event_get_base(&bev->ev_read);
  if (event_base_set(base, &bev->ev_read) != 0) return -1;
  if (event_base_set(base, &bev->ev_write) != 0) {
    event_base_set(before, &bev->ev_read);
    return -1;
  }
  bev->ev_base = base;
  return 0;
}

int bufferevent_priority_set(bufferevent* bev, int priority) {
  const Keep keep(bev);
  SocketConnection* connection = socket_of(bev);
  if (connection == nullptr) return -1;
  if (event_priority_set(&bev->ev_read, priority) == -1) return -1;
  if (event_priority_set(&bev->ev_write, priority) == -1) return -1;
  event* deferred = connection->extras().deferred;
  if (deferred != nullptr) event_priority_set(deferred, priority);
  return 0;
}
