// Semantics: event2/bufferevent.h; probed: the order of calls from the loop, that a callback which
// leaves too much in the input is called again, and that a bufferevent is freed from within the
// loop.
#include "compat/libevent/bufferevent/connection.h"

#include <cerrno>
#include <cstddef>
#include <new>
#include <utility>

#include "compat/libevent/bufferevent/rate_limit.h"
#include "compat/libevent/event/deferred.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

namespace spate::libevent {
namespace {

constexpr std::uint8_t kParts = 3;

// With the allocator's word 448: the whole size of an idle bufferevent.
static_assert(sizeof(Connection) == sizeof(bufferevent) + 48);

void on_input_changed(Connection& connection, const evbuffer_cb_info& change) {
  if (connection.wm_read.high == 0) return;
  connection.check_input();
  const bool has_room = change.n_deleted != 0 && connection.reading_rests == 0;
  if (has_room && connection.be_ops->input_has_room != nullptr) {
    connection.be_ops->input_has_room(connection);
  }
}

void on_output_changed(Connection& connection, const evbuffer_cb_info& change) {
  if (change.n_added != 0) connection.be_ops->output_added(connection, change);
}

evbuffer* make_buffer(const Connection& owner, void* place) {
  const auto* begin = reinterpret_cast<const unsigned char*>(&owner);
  return new (place) evbuffer(static_cast<unsigned char*>(place) - begin);
}

// A buffer with pending callbacks stays until they were called.
void end_buffer(evbuffer& buffer) {
  {
    const Use use(&buffer);
    buffer.leave_owner();
  }
  evbuffer_free(&buffer);
}

}  // namespace

// ---- called by its buffers

void notify_owner(bufferevent& owner, const evbuffer& buffer, const evbuffer_cb_info& change) {
  Connection& connection = connection_of(&owner);
  if (&buffer == connection.input) {
    on_input_changed(connection, change);
  } else {
    on_output_changed(connection, change);
  }
}

void* lock_of_owner(const bufferevent& owner) { return connection_of(&owner).lock(); }

void release_with_owner(bufferevent& owner) { connection_of(&owner).end_part(); }

// ---- lifetime

bool Connection::open(event_base* base, const bufferevent_ops& ops, int connection_options) {
  be_ops = &ops;
  ev_base = base;
  options = connection_options & (BEV_OPT_CLOSE_ON_FREE | BEV_OPT_THREADSAFE |
                                  BEV_OPT_DEFER_CALLBACKS | BEV_OPT_UNLOCK_CALLBACKS);
  references = 1;
  enabled = EV_WRITE;
  extras_ = const_cast<Extras*>(&kNoExtras);
  parts_ = kParts;
  input = make_buffer(*this, &input_);
  output = make_buffer(*this, &output_);
  if ((options & (BEV_OPT_UNLOCK_CALLBACKS | BEV_OPT_DEFER_CALLBACKS)) ==
      BEV_OPT_UNLOCK_CALLBACKS) {
    warnx("BEV_OPT_UNLOCK_CALLBACKS needs BEV_OPT_DEFER_CALLBACKS");
    return false;
  }
  if ((options & BEV_OPT_THREADSAFE) == 0) return true;
  void* own = make_lock();
  if (own == nullptr) return false;
  if (!share_lock(own)) {
    free_lock(own);
    return false;
  }
  return extras_->owns_lock = true;
}

void Connection::freeze_buffers() {
  input->freeze(false, true);
  output->freeze(true, true);
}

bool Connection::share_lock(void* other) {
  if (other == nullptr) return true;
  Extras* extras = make_extras();
  if (extras == nullptr) return false;
  extras->lock = other;
  input->use_owners_lock();
  output->use_owners_lock();
  return true;
}

Extras* Connection::make_extras() {
  if (extras_ != &kNoExtras) return extras_;
  auto* extras = static_cast<Extras*>(allocate_zeroed(sizeof(Extras)));
  if (extras != nullptr) extras_ = extras;
  return extras;
}

void Connection::destroy() {
  void* last_lock = extras_->owns_lock ? lock() : nullptr;
  end_buffer(input_);
  end_buffer(output_);
  release(extras_->deferred);
  release_rate_limit(extras_->rate_limit);
  if (extras_ != &kNoExtras) release(extras_);
  end_part();
  free_lock(last_lock);
}

void Connection::end_part() {
  if (parts_.fetch_sub(1, std::memory_order_acq_rel) == 1) release(this);
}

bool Connection::give_up() {
  if (--references != 0 || is_finalized) return false;
  finalize();
  return true;
}

// The finalizer is called by the loop, between callbacks. Another thread that is about to call a
// callback finds the connection finalized.
void Connection::finalize() {
  is_finalized = true;
  if (be_ops->unlink != nullptr) be_ops->unlink(*this);
  leave_rate_limit(*this);
  event_del_noblock(&ev_write);
  if (extras_->deferred != nullptr) event_del_noblock(extras_->deferred);
  const event_finalize_callback_fn end = [](event*, void* argument) {
    auto& connection = *static_cast<Connection*>(argument);
    void* lock = connection.lock();
    acquire(lock);  // Waits until another thread that has dropped the last reference releases the
                    // lock.
    give_back(lock);
    event_debug_unassign(&connection.ev_read);
    event_debug_unassign(&connection.ev_write);
    if (event* deferred = connection.extras().deferred) event_debug_unassign(deferred);
    if (connection.be_ops->destroy != nullptr) connection.be_ops->destroy(connection);
    connection.destroy();
  };
  finalize_deferred(ev_read, end);
}

// ---- calling the program

template <class Call>
void Connection::call(const Call& callback) {
  const bool unlocks = (options & BEV_OPT_UNLOCK_CALLBACKS) != 0;
  if (unlocks) give_back(lock());
  callback();
  if (unlocks) acquire(lock());
}

void Connection::trigger(short what, int extra) {
  const bool ignores = (extra & BEV_TRIG_IGNORE_WATERMARKS) != 0;
  if ((what & EV_READ) != 0 && (ignores || input_size() >= wm_read.low)) call_read(extra);
  if ((what & EV_WRITE) != 0 && (ignores || output_size() <= wm_write.low)) call_write(extra);
}

void Connection::call_read(int extra) {
  if (readcb == nullptr) return;
  if (is_deferred(extra)) return schedule([](Extras& due) { due.read_is_due = true; });
  readcb(this, cbarg);
  check_retrigger();
}

void Connection::call_write(int extra) {
  if (writecb == nullptr) return;
  if (is_deferred(extra)) return schedule([](Extras& due) { due.write_is_due = true; });
  writecb(this, cbarg);
}

void Connection::call_event(short what, int extra) {
  if (errorcb == nullptr) return;
  if (is_deferred(extra)) {
    return schedule([what, error = errno](Extras& due) {
      due.events_due = static_cast<short>(due.events_due | what);
      due.error_due = error;
    });
  }
  errorcb(this, what, cbarg);
}

// Nothing more is read while the input is full, so no other event would call the callback again.
void Connection::check_retrigger() {
  if (wm_read.high != 0 && (enabled & EV_READ) != 0 && input_size() >= wm_read.high) {
    trigger(EV_READ, BEV_OPT_DEFER_CALLBACKS);
  }
}

bool Connection::make_deferred() {
  if (extras_->deferred != nullptr) return true;
  auto* deferred = static_cast<event*>(allocate(sizeof(event)));
  if (deferred == nullptr) return false;
  const event_callback_fn run = [](evutil_socket_t, short, void* argument) {
    auto* connection = static_cast<Connection*>(argument);
    const Keep keep(connection);
    connection->run_due();
    connection->give_up();  // schedule() took it.
  };
  event_assign(deferred, event_get_base(&ev_read), -1, 0, run, this);
  event_priority_set(deferred, event_get_priority(&ev_read));
  extras_->deferred = deferred;
  return true;
}

// Schedules callbacks that are called from the loop. Each activation has a reference that its call
// gives up. A call that waits for the lock is no longer active, so another one may follow.
template <class Note>
void Connection::schedule(const Note& note) {
  Extras* due = make_extras();
  if (due == nullptr) return;
  note(*due);
  if (is_finalized || !make_deferred()) return;
  if (activate_deferred(*due->deferred)) take();
}

// Each callback may schedule more.
void Connection::run_due() {
  Extras& due = *extras_;
  if ((due.events_due & BEV_EVENT_CONNECTED) != 0 && errorcb != nullptr) {
    due.events_due = static_cast<short>(due.events_due & ~BEV_EVENT_CONNECTED);
    call([callback = errorcb, this, argument = cbarg] {
      callback(this, BEV_EVENT_CONNECTED, argument);
    });
  }
  if (due.read_is_due && readcb != nullptr) {
    due.read_is_due = false;
    call([callback = readcb, this, argument = cbarg] { callback(this, argument); });
    check_retrigger();
  }
  if (due.write_is_due && writecb != nullptr) {
    due.write_is_due = false;
    call([callback = writecb, this, argument = cbarg] { callback(this, argument); });
  }
  if (due.events_due != 0 && errorcb != nullptr) {
    const short what = std::exchange(due.events_due, short{0});
    errno = std::exchange(due.error_due, 0);
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
