// Semantics: event2/bufferevent.h; what is called in which order from the loop, that a callback
// which leaves too much in the input is called again, and that a bufferevent goes from within the
// loop: probes.
#include "compat/libevent/bufferevent/connection.h"

#include <cerrno>

#include "compat/libevent/bufferevent/rate_limit.h"
#include "compat/libevent/event/deferred.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

namespace spate::libevent {
namespace {

void on_input_changed(void* owner, const evbuffer_cb_info& change) {
  auto& connection = *static_cast<Connection*>(owner);
  if (connection.wm_read.high == 0) return;
  connection.check_input();
  const bool has_room = change.n_deleted != 0 && connection.reading_rests == 0;
  if (has_room && connection.be_ops->input_has_room != nullptr) {
    connection.be_ops->input_has_room(connection);
  }
}

void on_output_changed(void* owner, const evbuffer_cb_info& change) {
  auto& connection = *static_cast<Connection*>(owner);
  if (change.n_added != 0) connection.be_ops->output_added(connection);
}

void end_buffer(evbuffer* buffer) {
  if (buffer == nullptr) return;
  {
    const Use use(buffer);
    buffer->watch(nullptr, nullptr);
    buffer->set_lock(nullptr, false);  // It may stay until its deferred callbacks were called.
  }
  evbuffer_free(buffer);
}

}  // namespace

// ---- lifetime

bool Connection::open(event_base* base, const bufferevent_ops& ops, int connection_options) {
  be_ops = &ops;
  ev_base = base;
  options = connection_options;
  references = 1;
  enabled = EV_WRITE;
  if ((options & (BEV_OPT_UNLOCK_CALLBACKS | BEV_OPT_DEFER_CALLBACKS)) ==
      BEV_OPT_UNLOCK_CALLBACKS) {
    warnx("BEV_OPT_UNLOCK_CALLBACKS needs BEV_OPT_DEFER_CALLBACKS");
    return false;
  }
  input = evbuffer_new();
  output = evbuffer_new();
  if (input == nullptr || output == nullptr) return false;
  input->watch(on_input_changed, this);
  output->watch(on_output_changed, this);
  input->freeze(false, true);
  output->freeze(true, true);
  if ((options & BEV_OPT_THREADSAFE) == 0) return true;
  share_lock(make_lock());
  owns_lock = lock != nullptr;
  return owns_lock;
}

void Connection::share_lock(void* other) {
  lock = other;
  input->set_lock(other, false);
  output->set_lock(other, false);
}

void Connection::destroy() {
  void* last_lock = owns_lock ? lock : nullptr;
  end_buffer(input);
  end_buffer(output);
  release(deferred);
  release_rate_limit(rate_limit);
  release(this);
  free_lock(last_lock);
}

bool Connection::give_up() {
  if (--references != 0 || is_finalized) return false;
  finalize();
  return true;
}

// The finalizer is called by the loop, between callbacks. A callback that another thread is about
// to call finds the connection finalized.
void Connection::finalize() {
  is_finalized = true;
  if (be_ops->unlink != nullptr) be_ops->unlink(*this);
  leave_rate_limit(*this);
  event_del_noblock(&ev_write);
  if (deferred != nullptr) event_del_noblock(deferred);
  const event_finalize_callback_fn end = [](event*, void* argument) {
    auto& connection = *static_cast<Connection*>(argument);
    acquire(connection.lock);  // Until another thread that has given up the last reference let go.
    give_back(connection.lock);
    event_debug_unassign(&connection.ev_write);
    if (connection.deferred != nullptr) event_debug_unassign(connection.deferred);
    if (connection.be_ops->destroy != nullptr) connection.be_ops->destroy(connection);
    connection.destroy();
  };
  event_finalize(0, &ev_read, end);
}

// ---- calling the program

template <class Call>
void Connection::call(const Call& callback) {
  const bool unlocks = (options & BEV_OPT_UNLOCK_CALLBACKS) != 0;
  if (unlocks) give_back(lock);
  callback();
  if (unlocks) acquire(lock);
}

void Connection::trigger(short what, int extra) {
  const bool ignores = (extra & BEV_TRIG_IGNORE_WATERMARKS) != 0;
  if ((what & EV_READ) != 0 && (ignores || input_size() >= wm_read.low)) call_read(extra);
  if ((what & EV_WRITE) != 0 && (ignores || output_size() <= wm_write.low)) call_write(extra);
}

void Connection::call_read(int extra) {
  if (readcb == nullptr) return;
  if (is_deferred(extra)) {
    read_is_due = true;
    return schedule();
  }
  readcb(this, cbarg);
  check_retrigger();
}

void Connection::call_write(int extra) {
  if (writecb == nullptr) return;
  if (is_deferred(extra)) {
    write_is_due = true;
    return schedule();
  }
  writecb(this, cbarg);
}

void Connection::call_event(short what, int extra) {
  if (errorcb == nullptr) return;
  if (is_deferred(extra)) {
    events_due = static_cast<short>(events_due | what);
    error_due = errno;
    return schedule();
  }
  errorcb(this, what, cbarg);
}

// Nothing more is read while the input is full, so nothing else would call the callback again.
void Connection::check_retrigger() {
  if (wm_read.high != 0 && (enabled & EV_READ) != 0 && input_size() >= wm_read.high) {
    trigger(EV_READ, BEV_OPT_DEFER_CALLBACKS);
  }
}

bool Connection::make_deferred() {
  if (deferred != nullptr) return true;
  deferred = static_cast<event*>(allocate(sizeof(event)));
  if (deferred == nullptr) return false;
  const event_callback_fn run = [](evutil_socket_t, short, void* argument) {
    auto* connection = static_cast<Connection*>(argument);
    const Keep keep(connection);
    connection->is_scheduled = false;
    connection->run_due();
    connection->give_up();  // schedule() took it.
  };
  event_assign(deferred, event_get_base(&ev_read), -1, 0, run, this);
  event_priority_set(deferred, event_get_priority(&ev_read));
  return true;
}

void Connection::schedule() {
  if (is_finalized || !make_deferred()) return;
  if (is_scheduled) return;
  is_scheduled = true;
  take();
  activate_deferred(*deferred);
}

void Connection::run_due() {
  if ((events_due & BEV_EVENT_CONNECTED) != 0 && errorcb != nullptr) {
    events_due = static_cast<short>(events_due & ~BEV_EVENT_CONNECTED);
    call([callback = errorcb, this, argument = cbarg] {
      callback(this, BEV_EVENT_CONNECTED, argument);
    });
  }
  if (read_is_due && readcb != nullptr) {
    read_is_due = false;
    call([callback = readcb, this, argument = cbarg] { callback(this, argument); });
    check_retrigger();
  }
  if (write_is_due && writecb != nullptr) {
    write_is_due = false;
    call([callback = writecb, this, argument = cbarg] { callback(this, argument); });
  }
  if (events_due != 0 && errorcb != nullptr) {
    const short what = events_due;
    events_due = 0;
    errno = error_due;
    error_due = 0;
    call([callback = errorcb, this, what, argument = cbarg] { callback(this, what, argument); });
  }
}

// ---- resting

void Connection::rest_reading(Rest why) {
  if (reading_rests == 0) be_ops->stop(*this, EV_READ);
  reading_rests |= why;
}

void Connection::resume_reading(Rest why) {
  reading_rests &= static_cast<std::uint8_t>(~why);
  if (reading_rests == 0 && (enabled & EV_READ) != 0) be_ops->start(*this, EV_READ);
}

void Connection::rest_writing(Rest why) {
  if (writing_rests == 0) be_ops->stop(*this, EV_WRITE);
  writing_rests |= why;
}

void Connection::resume_writing(Rest why) {
  writing_rests &= static_cast<std::uint8_t>(~why);
  if (writing_rests == 0 && (enabled & EV_WRITE) != 0) be_ops->start(*this, EV_WRITE);
}

void Connection::check_input() {
  if (wm_read.high != 0 && input_size() >= wm_read.high) {
    rest_reading(kRestWatermark);
  } else {
    resume_reading(kRestWatermark);
  }
}

// ---- events

int add_event(event& ev, const timeval& timeout) {
  return event_add(&ev, is_set(timeout) ? &timeout : nullptr);
}

namespace {

void on_timeout(Connection& connection, short direction, short event) {
  const Keep keep(&connection);
  if (connection.is_finalized) return;
  bufferevent_disable(&connection, direction);
  connection.call_event(static_cast<short>(BEV_EVENT_TIMEOUT | event), 0);
}

int restart(event& ev, const timeval& timeout) {
  return is_set(timeout) ? event_add(&ev, &timeout) : 0;
}

}  // namespace

void assign_timeouts(Connection& connection) {
  const event_callback_fn reading = [](evutil_socket_t, short, void* argument) {
    on_timeout(*static_cast<Connection*>(argument), EV_READ, BEV_EVENT_READING);
  };
  const event_callback_fn writing = [](evutil_socket_t, short, void* argument) {
    on_timeout(*static_cast<Connection*>(argument), EV_WRITE, BEV_EVENT_WRITING);
  };
  event_assign(&connection.ev_read, connection.ev_base, -1, EV_FINALIZE, reading, &connection);
  event_assign(&connection.ev_write, connection.ev_base, -1, EV_FINALIZE, writing, &connection);
}

int restart_timeouts(Connection& connection, short what) {
  int result = 0;
  if ((what & EV_READ) != 0) result |= restart(connection.ev_read, connection.timeout_read);
  if ((what & EV_WRITE) != 0) result |= restart(connection.ev_write, connection.timeout_write);
  return result;
}

int adjust_timeouts(Connection& connection) {
  short waits = connection.enabled;
  if (connection.reading_rests != 0 || !is_set(connection.timeout_read)) waits &= ~EV_READ;
  if (connection.writing_rests != 0 || !is_set(connection.timeout_write)) waits &= ~EV_WRITE;
  if (connection.output_size() == 0) waits &= ~EV_WRITE;
  const int begun = restart_timeouts(connection, waits);
  return begun | stop_timeouts(connection, static_cast<short>(~waits));
}

int stop_timeouts(Connection& connection, short what) {
  int result = 0;
  if ((what & EV_READ) != 0) result |= event_del(&connection.ev_read);
  if ((what & EV_WRITE) != 0) result |= event_del(&connection.ev_write);
  return result;
}

}  // namespace spate::libevent
