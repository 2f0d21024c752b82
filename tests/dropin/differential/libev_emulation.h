#pragma once

// The struct and the functions of libev's emulation of libevent 1.4, as Debian's binaries use them:
// nothing else needs the package with the header.

#include <ev.h>
#include <sys/time.h>

typedef void (*Callback)(int fd, short events, void* argument);

typedef struct Event {
  union {
    ev_io io;
    ev_signal signal;
  } source;
  ev_timer timer;
  void* base;
  Callback callback;
  void* argument;
  int fd;
  int priority;
  int result;
  int flags;
  short events;
} Event;

_Static_assert(sizeof(Event) == 144, "as in a program that was built on the emulation");

enum { kPersist = 0x10, kOnceFlag = EVRUN_ONCE, kNoWaitFlag = EVRUN_NOWAIT };

const char* event_get_version(void);
const char* event_get_method(void);
void* event_init(void);
void event_base_free(void* base);
int event_loop(int flags);
int event_loopexit(struct timeval* after);
int event_dispatch(void);
void event_set(Event* event, int fd, short events, Callback callback, void* argument);
int event_once(int fd, short events, Callback callback, void* argument, struct timeval* after);
int event_add(Event* event, struct timeval* after);
int event_del(Event* event);
void event_active(Event* event, int events, short calls);
int event_pending(Event* event, short events, struct timeval* when);
Callback event_get_callback(const Event* event);
int event_priority_init(int priorities);
int event_priority_set(Event* event, int priority);
void* event_base_new(void);
const char* event_base_get_method(const void* base);
int event_base_set(void* base, Event* event);
int event_base_loop(void* base, int flags);
int event_base_loopexit(void* base, struct timeval* after);
int event_base_dispatch(void* base);
int event_base_once(void* base, int fd, short events, Callback callback, void* argument,
                    struct timeval* after);
int event_base_priority_init(void* base, int priorities);
