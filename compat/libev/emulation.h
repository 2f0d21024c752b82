// The struct event and the functions of libev's emulation of libevent 1.4, for programs compiled
// against its event.h. They are unrelated to libevent's own of the same names.
//
// Layout and declarations: as in the header that comes with libev's emulation.
#pragma once

#include <sys/time.h>

#include <cstddef>

#include "compat/libev/ev_api.h"

#pragma GCC visibility push(default)
extern "C" {

struct event_base;  // A struct ev_loop.

using event_callback_fn = void (*)(int fd, short events, void* argument);

struct event {
  union {
    ev_io io;
    ev_signal sig;
  } iosig;
  ev_timer to;
  event_base* ev_base;
  event_callback_fn ev_callback;
  void* ev_arg;
  int ev_fd;
  int ev_pri;
  int ev_res;
  int ev_flags;
  short ev_events;
};
static_assert(sizeof(event) == 144 && offsetof(event, to) == 48 && offsetof(event, ev_base) == 96);
static_assert(offsetof(event, ev_callback) == 104 && offsetof(event, ev_arg) == 112);
static_assert(offsetof(event, ev_fd) == 120 && offsetof(event, ev_res) == 128);
static_assert(offsetof(event, ev_flags) == 132 && offsetof(event, ev_events) == 136);

const char* event_get_version();
const char* event_get_method();
void* event_init();
void event_base_free(event_base* base);
int event_loop(int flags);
int event_loopexit(timeval* after);
int event_dispatch();
void event_set(event* event, int fd, short events, event_callback_fn callback, void* argument);
int event_once(int fd, short events, event_callback_fn callback, void* argument, timeval* after);
int event_add(event* event, timeval* after);
int event_del(event* event);
void event_active(event* event, int events, short calls);
int event_pending(event* event, short events, timeval* expiry);
event_callback_fn event_get_callback(const event* event);
int event_priority_init(int priorities);
int event_priority_set(event* event, int priority);
event_base* event_base_new();
const char* event_base_get_method(const event_base* base);
int event_base_set(event_base* base, event* event);
int event_base_loop(event_base* base, int flags);
int event_base_loopexit(event_base* base, timeval* after);
int event_base_dispatch(event_base* base);
int event_base_once(event_base* base, int fd, short events, event_callback_fn callback,
                    void* argument, timeval* after);
int event_base_priority_init(event_base* base, int priorities);

}  // extern "C"
#pragma GCC visibility pop
