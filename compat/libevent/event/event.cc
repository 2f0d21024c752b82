// The functions of event2/event.h that take an event.
//
// Semantics: event2/event.h; probed: the results for events without a base, and for invalid
// combinations.
#include "compat/libevent/debug_mode.h"
#include "compat/libevent/event/base.h"
#include "compat/libevent/log.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

// event_self_cbarg() returns its address.
char self_argument;

void check_set_up(const event* ev, const char* function) {
  if (debug::is_on) [[unlikely]] {
    debug::check_set_up(ev, function);
  }
}

bool has_base(const event* ev, const char* function) {
  if (ev->ev_base != nullptr) [[likely]] {
    check_set_up(ev, function);
    return true;
  }
  warnx("%s: the event has no event base", function);
  return false;
}

Closure closure_for(short events) {
  if ((events & EV_SIGNAL) != 0) return Closure::signal;
  return (events & EV_PERSIST) != 0 ? Closure::persist : Closure::plain;
}

ev_uint8_t default_priority(const event_base* base) {
  return base != nullptr ? static_cast<ev_uint8_t>(base->priorities() / 2) : ev_uint8_t{0};
}

// Programs delete events after their base, which libevent tolerates. With locks a callback may be
// running; a signal's event may have calls left.
bool is_idle(const event* ev) {
  constexpr int kPending = EVLIST_TIMEOUT | EVLIST_INSERTED | EVLIST_ACTIVE;
  return !has_locks() && (ev->ev_evcallback.evcb_flags & kPending) == 0 &&
         (ev->ev_events & EV_SIGNAL) == 0;
}

// Returns true if no check is needed.
bool is_trusted(const event* ev) { return ev->ev_base != nullptr && !debug::is_on; }

// Without locks, the base may have been freed.
bool is_finalized(event* ev) {
  if (ev->ev_base == nullptr) return false;
  const Holding holding(has_locks() ? ev->ev_base->lock() : nullptr);
  return has_flag(*ev, EVLIST_FINALIZING);
}

// Debug mode has removed a finalized event from its table; deleting it has no effect.
[[gnu::noinline]] int delete_with_care(event* ev, Running running, const char* function) {
  if (debug::is_on && is_finalized(ev)) return 0;
  if (!has_base(ev, function)) return -1;
  if (debug::is_on) debug::note_added(ev, false);
  if (is_idle(ev)) return 0;
  const Holding holding(ev->ev_base->lock());
  return ev->ev_base->del(*ev, running);
}

int delete_event(event* ev, Running running, const char* function) {
  if (!is_trusted(ev)) return delete_with_care(ev, running, function);
  if (is_idle(ev)) return 0;
  event_base& base = *ev->ev_base;
  return base.lock() == nullptr ? base.del(*ev, running) : delete_with_care(ev, running, function);
}

[[gnu::noinline]] int add_with_care(event* ev, const timeval* timeout) {
  if (!has_base(ev, "event_add")) return -1;
  const Holding holding(ev->ev_base->lock());
  const int result = ev->ev_base->add(*ev, timeout);
  if (debug::is_on && result == 0) debug::note_added(ev, true);
  return result;
}

}  // namespace

// ---- setting up

void* event_self_cbarg() { return &self_argument; }

// The memory may be uninitialised.
static void set_up(event* ev, event_base* base, evutil_socket_t fd, short events,
                   event_callback_fn callback, void* argument) {
  clear_nodes(*ev);
  ev->ev_evcallback.evcb_flags = EVLIST_INIT;
  ev->ev_evcallback.evcb_pri = default_priority(base);
  set_closure(*ev, closure_for(events));
  ev->ev_evcallback.evcb_cb_union.evcb_callback = callback;
  ev->ev_evcallback.evcb_arg = argument;
  ev->ev_fd = fd;
  ev->ev_base = base;
  ev->ev_events = events;
  debug::is_too_late.store(true, std::memory_order_relaxed);
}

static bool is_consistent(short events) {
  return (events & EV_SIGNAL) == 0 || (events & (EV_READ | EV_WRITE | EV_CLOSED)) == 0;
}

[[gnu::noinline]] static int assign_checked(event* ev, event_base* base, evutil_socket_t fd,
                                            short events, event_callback_fn callback,
                                            void* argument) {
  if (debug::is_on && (events & EV_SIGNAL) == 0) debug::check_non_blocking(fd);
  if (debug::is_on) debug::check_not_added(ev, "event_assign");
  if (!is_consistent(events)) {
    warnx("event_assign: EV_SIGNAL goes with none of EV_READ, EV_WRITE and EV_CLOSED");
    return -1;
  }
  set_up(ev, base, fd, events, callback, argument);
  if (debug::is_on) debug::note_set_up(ev);
  return 0;
}

int event_assign(event* ev, event_base* base, evutil_socket_t fd, short events,
                 event_callback_fn callback, void* argument) {
  if (base == nullptr) base = current_base;
  if (argument == &self_argument) argument = ev;
  if (debug::is_on || !is_consistent(events)) [[unlikely]] {
    return assign_checked(ev, base, fd, events, callback, argument);
  }
  set_up(ev, base, fd, events, callback, argument);
  return 0;
}

int event_base_set(event_base* base, event* ev) {
  if (ev->ev_evcallback.evcb_flags != EVLIST_INIT) return -1;
  check_set_up(ev, "event_base_set");
  ev->ev_base = base;
  ev->ev_evcallback.evcb_pri = default_priority(base);
  return 0;
}

event* event_new(event_base* base, evutil_socket_t fd, short events, event_callback_fn callback,
                 void* argument) {
  auto* ev = static_cast<event*>(allocate(sizeof(event)));
  if (ev == nullptr) return nullptr;
  if (event_assign(ev, base, fd, events, callback, argument) == 0) return ev;
  release(ev);
  return nullptr;
}

void event_free(event* ev) {
  event_del(ev);
  if (debug::is_on) debug::note_torn_down(ev);
  release(ev);
}

int event_priority_set(event* ev, int priority) {
  check_set_up(ev, "event_priority_set");
  if (ev->ev_base == nullptr || has_flag(*ev, EVLIST_ACTIVE)) return -1;
  if (priority < 0 || priority >= ev->ev_base->priorities()) return -1;
  ev->ev_evcallback.evcb_pri = static_cast<ev_uint8_t>(priority);
  return 0;
}

// ---- adding, deleting, activating

int event_add(event* ev, const timeval* timeout) {
  if (!is_trusted(ev) || ev->ev_base->lock() != nullptr) return add_with_care(ev, timeout);
  return ev->ev_base->add(*ev, timeout);
}

int event_del(event* ev) { return delete_event(ev, Running::wait_unless_finalized, "event_del"); }
int event_del_block(event* ev) { return delete_event(ev, Running::wait, "event_del_block"); }
int event_del_noblock(event* ev) { return delete_event(ev, Running::ignore, "event_del_noblock"); }

int event_remove_timer(event* ev) {
  if (!has_base(ev, "event_remove_timer")) return -1;
  const Holding holding(ev->ev_base->lock());
  ev->ev_base->remove_timer(*ev);
  return 0;
}

void event_active(event* ev, int what, short calls) {
  if (!has_base(ev, "event_active")) return;
  const Holding holding(ev->ev_base->lock());
  // A signal's callback is called so many times; a negative number wraps around.
  ev->ev_base->activate(*ev, static_cast<short>(what), static_cast<unsigned short>(calls));
  ev->ev_base->notify();
}

// ---- looking in

int event_pending(const event* ev, short events, timeval* expiry) {
  constexpr int kAnswers = EV_TIMEOUT | EV_READ | EV_WRITE | EV_CLOSED | EV_SIGNAL;
  if (!has_base(ev, "event_pending")) return 0;
  const Holding holding(ev->ev_base->lock());
  auto& known = const_cast<event&>(*ev);  // spate's nodes are reached through it, but not changed.
  int pending = 0;
  if (has_flag(known, EVLIST_INSERTED)) pending |= ev->ev_events & ~EV_TIMEOUT;
  if (has_flag(known, EVLIST_ACTIVE)) pending |= ev->ev_res;
  if (has_flag(known, EVLIST_TIMEOUT)) pending |= EV_TIMEOUT;
  pending &= events & kAnswers;
  if (expiry != nullptr && (pending & EV_TIMEOUT) != 0) {
    *expiry = timeval_of(timer_node(known).deadline + ev->ev_base->to_wall_clock());
  }
  return pending;
}

int event_initialized(const event* ev) {
  return (ev->ev_evcallback.evcb_flags & EVLIST_INIT) != 0 ? 1 : 0;
}

evutil_socket_t event_get_fd(const event* ev) {
  check_set_up(ev, "event_get_fd");
  return ev->ev_fd;
}

event_base* event_get_base(const event* ev) {
  check_set_up(ev, "event_get_base");
  return ev->ev_base;
}

short event_get_events(const event* ev) {
  check_set_up(ev, "event_get_events");
  return ev->ev_events;
}

event_callback_fn event_get_callback(const event* ev) {
  check_set_up(ev, "event_get_callback");
  return ev->ev_evcallback.evcb_cb_union.evcb_callback;
}

void* event_get_callback_arg(const event* ev) {
  check_set_up(ev, "event_get_callback_arg");
  return ev->ev_evcallback.evcb_arg;
}

int event_get_priority(const event* ev) {
  check_set_up(ev, "event_get_priority");
  return ev->ev_evcallback.evcb_pri;
}

void event_get_assignment(const event* ev, event_base** base, evutil_socket_t* fd, short* events,
                          event_callback_fn* callback, void** argument) {
  check_set_up(ev, "event_get_assignment");
  if (base != nullptr) *base = ev->ev_base;
  if (fd != nullptr) *fd = ev->ev_fd;
  if (events != nullptr) *events = ev->ev_events;
  if (callback != nullptr) *callback = ev->ev_evcallback.evcb_cb_union.evcb_callback;
  if (argument != nullptr) *argument = ev->ev_evcallback.evcb_arg;
}

size_t event_get_struct_event_size() { return sizeof(event); }
