// libev's emulation of libevent 1.4: each struct event is an ev_io or an ev_signal, and an
// ev_timer.
//
// Semantics: ev(3) "LIBEVENT EMULATION"; probed: flags, results, which loop is the current one,
// that a timeout ends even a persistent event, and that a signal's event is always persistent.
// Unlike the original, event_pending() returns the time of the timeout, and event_del() cancels an
// activation, both as in libevent.
#include "compat/libev/emulation.h"

#include <initializer_list>
#include <new>

#include "compat/libev/fatal.h"
#include "compat/libev/overlay.h"

using spate::libev::base;

namespace {

constexpr int kPersist = 0x10;
constexpr int kReadWrite = EV_READ | EV_WRITE;
// ev_flags.
constexpr int kHasTimeout = 0x01;
constexpr int kHasDescriptor = 0x02;
constexpr int kHasSignal = 0x04;
constexpr int kIsAdded = 0x08;
constexpr int kIsSet = 0x80;

constexpr double kMicrosecond = 1e-6;

struct ev_loop* current = nullptr;

struct ev_loop* loop_of(event_base* base) { return reinterpret_cast<struct ev_loop*>(base); }
event_base* base_of(struct ev_loop* loop) { return reinterpret_cast<event_base*>(loop); }
struct ev_loop* loop_of(const event& event) { return loop_of(event.ev_base); }

// Zero would disable the timeout.
double seconds_in(const timeval& time) {
  const double seconds =
      static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * kMicrosecond;
  return seconds == 0 ? kMicrosecond : seconds;
}

bool is_live(const ev_watcher& watcher) { return watcher.active != 0 || watcher.pending != 0; }

void call(event& event, int events) {
  event.ev_res = events & (kReadWrite | EV_TIMER | EV_SIGNAL);
  event.ev_callback(event.ev_fd, static_cast<short>(event.ev_res), event.ev_arg);
}

void on_event(struct ev_loop*, ev_watcher* watcher, int events) {
  auto* event = static_cast<struct event*>(watcher->data);
  const bool stays = (event->ev_events & (kPersist | EV_SIGNAL)) != 0;
  if (!stays || (events & EV_ERROR) != 0) event_del(event);
  call(*event, events);
}

void on_timeout(struct ev_loop*, ev_watcher* watcher, int events) {
  auto* event = static_cast<struct event*>(watcher->data);
  event_del(event);
  call(*event, events);
}

void start(event& event) {
  if ((event.ev_events & EV_SIGNAL) != 0) {
    event.iosig.sig.signum = event.ev_fd;
    ev_signal_start(loop_of(event), &event.iosig.sig);
    event.ev_flags |= kHasSignal;
  } else if ((event.ev_events & kReadWrite) != 0) {
    event.iosig.io.fd = event.ev_fd;
    event.iosig.io.events = (event.ev_events & kReadWrite) | EV__IOFDSET;
    ev_io_start(loop_of(event), &event.iosig.io);
    event.ev_flags |= kHasDescriptor;
  }
}

// A callback that is called once.
struct Once {
  int fd;
  event_callback_fn callback;
  void* argument;
};

void call_once(int events, void* argument) {
  auto* owned = static_cast<Once*>(argument);
  const Once once = *owned;
  delete owned;
  once.callback(once.fd, static_cast<short>(events), once.argument);
}

void leave(int, void* loop) { ev_break(static_cast<struct ev_loop*>(loop), EVBREAK_ONE); }

}  // namespace

// ---- bases

const char* event_get_version() { return "4.33"; }
const char* event_get_method() { return "libev"; }
const char* event_base_get_method(const event_base*) { return "libev"; }

void* event_init() {
  current = current == nullptr ? ev_default_loop(EVFLAG_AUTO) : ev_loop_new(EVFLAG_AUTO);
  return current;
}

event_base* event_base_new() { return base_of(ev_loop_new(EVFLAG_AUTO)); }

void event_base_free(event_base* base) {
  if (!ev_is_default_loop(loop_of(base))) ev_loop_destroy(loop_of(base));
}

int event_base_loop(event_base* base, int flags) { return ev_run(loop_of(base), flags) == 0; }
int event_base_dispatch(event_base* base) { return event_base_loop(base, 0); }
int event_loop(int flags) { return event_base_loop(base_of(current), flags); }
int event_dispatch() { return event_base_dispatch(base_of(current)); }

int event_base_loopexit(event_base* base, timeval* after) {
  struct ev_loop* loop = loop_of(base);
  ev_once(loop, -1, 0, after != nullptr ? seconds_in(*after) : 0, leave, loop);
  return 0;
}
int event_loopexit(timeval* after) { return event_base_loopexit(base_of(current), after); }

int event_base_once(event_base* base, int fd, short events, event_callback_fn callback,
                    void* argument, timeval* after) {
  auto* once = new (std::nothrow) Once{fd, callback, argument};
  if (once == nullptr) return -1;
  ev_once(loop_of(base), fd, events & kReadWrite, after != nullptr ? seconds_in(*after) : -1,
          call_once, once);
  return 0;
}
int event_once(int fd, short events, event_callback_fn callback, void* argument, timeval* after) {
  return event_base_once(base_of(current), fd, events, callback, argument, after);
}

int event_base_priority_init(event_base*, int) { return 0; }
int event_priority_init(int) { return 0; }

// ---- events

void event_set(event* event, int fd, short events, event_callback_fn callback, void* argument) {
  event->iosig = {};
  event->to = {};
  for (ev_watcher* watcher : {&base(event->iosig.io), &base(event->to)}) watcher->data = event;
  base(event->iosig.io).cb = on_event;
  base(event->to).cb = on_timeout;
  event->ev_base = base_of(current);
  event->ev_callback = callback;
  event->ev_arg = argument;
  event->ev_fd = fd;
  event->ev_pri = 0;
  event->ev_res = 0;
  event->ev_flags = kIsSet;
  event->ev_events = events;
}

int event_base_set(event_base* base, event* event) {
  event->ev_base = base;
  return 0;
}

int event_priority_set(event* event, int priority) {
  event->ev_pri = priority;
  return 0;
}

int event_add(event* event, timeval* after) {
  start(*event);
  if (after != nullptr) {
    event->to.repeat = seconds_in(*after);
    ev_timer_again(loop_of(*event), &event->to);
    event->ev_flags |= kHasTimeout;
  } else {
    ev_timer_stop(loop_of(*event), &event->to);
    event->ev_flags &= ~kHasTimeout;
  }
  event->ev_flags |= kIsAdded;
  return 0;
}

int event_del(event* event) {
  struct ev_loop* loop = loop_of(*event);
  if ((event->ev_events & EV_SIGNAL) != 0) {
    ev_signal_stop(loop, &event->iosig.sig);
  } else {
    ev_io_stop(loop, &event->iosig.io);
  }
  ev_timer_stop(loop, &event->to);
  event->ev_flags &= ~(kIsAdded | kHasTimeout | kHasDescriptor | kHasSignal);
  return 0;
}

void event_active(event* event, int events, short) {
  struct ev_loop* loop = loop_of(*event);
  if ((events & EV_TIMER) != 0) ev_feed_event(loop, &event->to, EV_TIMER);
  const int others = events & (kReadWrite | EV_SIGNAL);
  if (others != 0) ev_feed_event(loop, &event->iosig.io, others);
}

int event_pending(event* event, short events, timeval* expiry) {
  struct ev_loop* loop = loop_of(*event);
  int pending = 0;
  if (is_live(base(event->iosig.io))) {
    pending = event->ev_events & ((event->ev_events & EV_SIGNAL) != 0 ? EV_SIGNAL : kReadWrite);
  }
  if ((event->ev_events & EV_TIMER) != 0 || is_live(base(event->to))) pending |= EV_TIMER;
  if (expiry != nullptr && is_live(base(event->to))) {
    const double left = event->to.active != 0 ? ev_timer_remaining(loop, &event->to) : 0;
    const double at = ev_now(loop) + left;
    expiry->tv_sec = static_cast<time_t>(at);
    const double fraction = at - static_cast<double>(expiry->tv_sec);
    expiry->tv_usec = static_cast<suseconds_t>(fraction / kMicrosecond);
  }
  return events & pending;
}

event_callback_fn event_get_callback(const event* event) { return event->ev_callback; }
