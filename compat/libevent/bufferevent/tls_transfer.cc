// Reading and writing of a TLS connection, and its handshake.
//
// Semantics: event2/bufferevent_ssl.h; probed: a socket is read one record at a time, a bufferevent
// completely; all output is written at once; and which errors end a connection.
#include <algorithm>
#include <cerrno>
#include <climits>

#include "compat/libevent/bufferevent/rate_limit.h"
#include "compat/libevent/bufferevent/tls.h"

using namespace spate::libevent;

namespace {

using Kind = TlsStep::Kind;

constexpr std::size_t kRecordMost = 16384;

bool is_shaking(const TlsConnection& connection) { return connection.state != TlsState::open; }

// Rates limit the bytes on the wire, with record headers and handshakes.
void note_traffic(TlsConnection& connection) {
  const std::uint64_t read = connection.engine->wire_read(connection);
  const std::uint64_t written = connection.engine->wire_written(connection);
  const std::uint64_t new_read = read - connection.counted_read;
  const std::uint64_t new_written = written - connection.counted_written;
  connection.counted_read = read;
  connection.counted_written = written;
  if (new_written != 0) note_written(connection, new_written);
  if (new_read != 0) note_read(connection, new_read);
}

// ---- waiting for the descriptor; the bufferevent below a filter calls by itself

void wait_to_read(TlsConnection& connection) {
  if (connection.below != nullptr) return connection.below->resume_reading(kRestFilter);
  add_event(connection.ev_read, connection.timeout_read);
}

void wait_to_write(TlsConnection& connection) {
  if (connection.below == nullptr) add_event(connection.ev_write, connection.timeout_write);
}

// Otherwise the timeout would be restored by the next event_add(), which may be without one.
void forget(event& ev) {
  event_remove_timer(&ev);
  event_del(&ev);
}

void stop_waiting(TlsConnection& connection, short what) {
  if (connection.below != nullptr) return;
  if ((what & EV_READ) != 0) forget(connection.ev_read);
  if ((what & EV_WRITE) != 0) forget(connection.ev_write);
}

void end(TlsConnection& connection, short direction, const TlsStep& step) {
  const int error = errno;
  const bool is_goodbye = step.event == BEV_EVENT_EOF && !is_shaking(connection);
  (is_goodbye ? connection.has_read_all : connection.has_failed) = true;
  stop_timeouts(connection, EV_READ | EV_WRITE);
  connection.reading_waits_to_write = connection.writing_waits_to_read = false;
  errno = error;
  connection.call_event(static_cast<short>(direction | step.event), 0);
}

// ---- reading

// Also after the end, which is then reported again.
bool may_read(const TlsConnection& connection) {
  return (connection.enabled & EV_READ) != 0 && connection.reading_rests == 0 &&
         !is_shaking(connection);
}

std::size_t room_to_read(TlsConnection& connection) {
  if (!may_read(connection)) return 0;
  const std::size_t most = std::min(most_to_read(connection), kRecordMost);
  const std::size_t high = connection.wm_read.high;
  if (high == 0) return most;
  const std::size_t size = connection.input_size();
  return size < high ? std::min(most, high - size) : 0;
}

TlsStep read_into(TlsConnection& connection, std::size_t most) {
  evbuffer* input = connection.input;
  iovec room;
  TlsStep step{Kind::ended, BEV_EVENT_ERROR, 0};
  if (evbuffer_reserve_space(input, static_cast<ev_ssize_t>(most), &room, 1) == 1) {
    step = connection.engine->read(connection, room.iov_base, static_cast<int>(most));
    room.iov_len = step.kind == Kind::done ? static_cast<std::size_t>(step.count) : 0;
    evbuffer_commit_space(input, &room, 1);
  }
  return step;
}

bool read_records(TlsConnection& connection, TlsStep& step) {
  bool has_read = false;
  while (const std::size_t most = room_to_read(connection)) {
    connection.reading_waits_to_write = false;
    step = read_into(connection, most);
    note_traffic(connection);
    if (step.kind != Kind::done) break;
    has_read = true;
    if (connection.below == nullptr && !connection.engine->has_pending(connection)) break;
  }
  return has_read;
}

// ---- writing

bool may_write(const TlsConnection& connection) {
  return (connection.enabled & EV_WRITE) != 0 && connection.writing_rests == 0 &&
         !is_shaking(connection) && connection.output_size() != 0;
}

bool is_full(const Connection* below) {
  return below != nullptr && below->wm_write.high != 0 &&
         below->output_size() >= below->wm_write.high;
}

// A write that the engine could not finish must be repeated with at least as many bytes; if the
// program has removed some, the engine reports an error.
int size_to_write(TlsConnection& connection, const iovec& front) {
  const auto to_repeat = static_cast<std::size_t>(connection.write_to_repeat);
  if (to_repeat != 0) return static_cast<int>(std::min(to_repeat, front.iov_len));
  const std::size_t most = std::min(most_to_write(connection), kRecordMost);
  return static_cast<int>(std::min(most, front.iov_len));
}

TlsStep write_front(TlsConnection& connection) {
  iovec front;
  if (evbuffer_peek(connection.output, -1, nullptr, &front, 1) < 1) {
    return {Kind::ended, BEV_EVENT_ERROR, 0};
  }
  const int size = size_to_write(connection, front);
  if (size == 0) return {Kind::wants_write, 0, 0};  // The rate limit suspends it.
  const TlsStep step = connection.engine->write(connection, front.iov_base, size);
  const bool is_blocked = step.kind == Kind::wants_read || step.kind == Kind::wants_write;
  connection.write_to_repeat = is_blocked ? size : 0;
  return step;
}

bool write_records(TlsConnection& connection, TlsStep& step) {
  bool has_written = false;
  while (may_write(connection) && !is_full(connection.below)) {
    connection.writing_waits_to_read = false;
    step = write_front(connection);
    if (step.kind == Kind::done) {
      has_written = true;
      connection.output->discard(static_cast<std::size_t>(step.count));
    }
    note_traffic(connection);
    if (step.kind != Kind::done) break;
  }
  return has_written;
}

// ---- the handshake

void be_open(TlsConnection& connection) {
  connection.state = TlsState::open;
  stop_waiting(connection, EV_READ | EV_WRITE);
  tls_start(connection, connection.enabled);
  connection.call_event(BEV_EVENT_CONNECTED, 0);
}

}  // namespace

// A handshake that failed on a socket fails again if the program enables something. Through a
// filter it is not repeated, as the bufferevent below calls again after the failure.
void spate::libevent::tls_handshake(TlsConnection& connection) {
  if (connection.has_failed && connection.below != nullptr) return;
  const TlsStep step = connection.engine->handshake(connection);
  note_traffic(connection);
  switch (step.kind) {
    case Kind::done:
      return be_open(connection);
    case Kind::wants_read:
    case Kind::wants_write:
      connection.handshake_waits = step.kind == Kind::wants_read ? EV_READ : EV_WRITE;
      stop_waiting(connection, EV_READ | EV_WRITE);
      return tls_await_handshake(connection, connection.enabled);
    case Kind::ended:
      return end(connection, BEV_EVENT_READING, step);
  }
}

void spate::libevent::tls_read(TlsConnection& connection) {
  if (connection.writing_waits_to_read) {
    connection.writing_waits_to_read = false;
    tls_write(connection);
    if (connection.writing_waits_to_read || connection.has_failed) return;
  }
  TlsStep step{Kind::done, 0, 0};
  const bool has_read = read_records(connection, step);
  if (has_read && connection.below != nullptr) restart_timeouts(connection, EV_READ);
  if (has_read) connection.trigger(EV_READ, 0);
  if (step.kind == Kind::wants_write) {
    connection.reading_waits_to_write = true;
    wait_to_write(connection);
  }
  if (step.kind == Kind::ended) end(connection, BEV_EVENT_READING, step);
}

void spate::libevent::tls_write(TlsConnection& connection) {
  if (connection.reading_waits_to_write) {
    connection.reading_waits_to_write = false;
    tls_read(connection);
    if (connection.reading_waits_to_write || connection.has_failed) return;
  }
  TlsStep step{Kind::done, 0, 0};
  const bool has_written = write_records(connection, step);
  if (has_written && connection.below != nullptr) restart_timeouts(connection, EV_WRITE);
  if (step.kind == Kind::wants_read) {
    connection.writing_waits_to_read = true;
    wait_to_read(connection);
  }
  const bool waits = connection.output_size() != 0 && step.kind == Kind::wants_write;
  if (!waits && !connection.reading_waits_to_write) stop_waiting(connection, EV_WRITE);
  if (has_written) connection.trigger(EV_WRITE, BEV_OPT_DEFER_CALLBACKS);
  if (step.kind == Kind::ended) end(connection, BEV_EVENT_WRITING, step);
}

void spate::libevent::tls_await_handshake(TlsConnection& connection, short otherwise) {
  const short waits = connection.handshake_waits != 0 ? connection.handshake_waits : otherwise;
  if ((waits & EV_READ) != 0) wait_to_read(connection);
  if ((waits & EV_WRITE) != 0) wait_to_write(connection);
}

namespace {

void start_on_socket(TlsConnection& connection, short what) {
  if (is_shaking(connection)) return tls_await_handshake(connection, what);
  if ((what & EV_READ) != 0) {
    wait_to_read(connection);
    if (connection.engine->has_pending(connection)) event_active(&connection.ev_read, EV_READ, 1);
  }
  if ((what & EV_WRITE) != 0) wait_to_write(connection);
}

// No event of the lower bufferevent would start this.
void start_on_below(TlsConnection& connection, short what) {
  restart_timeouts(connection, what);
  if ((what & EV_READ) != 0) wait_to_read(connection);
  const bool has_use = (what & EV_READ) != 0 || connection.output_size() != 0;
  if (is_shaking(connection)) return has_use ? tls_handshake(connection) : void();
  if ((what & EV_WRITE) != 0) tls_write(connection);
  if ((what & EV_READ) != 0) tls_read(connection);
}

}  // namespace

void spate::libevent::tls_start(TlsConnection& connection, short what) {
  connection.below == nullptr ? start_on_socket(connection, what)
                              : start_on_below(connection, what);
}
