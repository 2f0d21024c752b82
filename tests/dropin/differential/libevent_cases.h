#pragma once

// Shared by the programs that test libevent case by case: a callback that prints its arguments,
// bases of each method, results as text.

#include <errno.h>
#include <event2/event.h>
#include <event2/event_compat.h>
#include <event2/event_struct.h>
#include <event2/thread.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "harness.h"

static inline void show(const char* what, long value) { printf("%s: %ld\n", what, value); }

static inline void show_hex(const char* what, long value) { printf("%s: %#lx\n", what, value); }

static inline void show_text(const char* what, const char* text) {
  printf("%s: %s\n", what, text ? text : "(none)");
}

// An event of a case: the text that its callback prints, and a further action.
typedef struct Subject {
  const char* name;
  struct event* ev;
  void (*act)(struct Subject* self, evutil_socket_t fd, short what);
  int calls;
} Subject;

static inline void on_subject(evutil_socket_t fd, short what, void* arg) {
  Subject* subject = arg;
  printf("  %s what=%#x\n", subject->name, what);
  subject->calls++;
  if (subject->act) subject->act(subject, fd, what);
}

static inline struct event* open_subject(Subject* subject, struct event_base* base, int fd,
                                         short events) {
  subject->ev = event_new(base, fd, events, on_subject, subject);
  return subject->ev;
}

static inline void free_subject(Subject* subject) {
  if (subject->ev) event_free(subject->ev);
  subject->ev = NULL;
}

static inline void turn(struct event_base* base) {
  printf("turn\n");
  show("loop", event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
}

static inline struct timeval micros(long value) {
  return (struct timeval){value / 1000000, value % 1000000};
}

static inline int add_in(struct event* ev, long microseconds) {
  const struct timeval timeout = micros(microseconds);
  return event_add(ev, &timeout);
}

enum { kMethods = 3 };
static const char* const kMethodNames[kMethods] = {"epoll", "poll", "select"};

static inline struct event_base* base_with(int method, int flags) {
  struct event_config* config = event_config_new();
  for (int i = 0; i < method; i++) event_config_avoid_method(config, kMethodNames[i]);
  event_config_set_flag(config, flags);
  struct event_base* base = event_base_new_with_config(config);
  event_config_free(config);
  return base;
}

static inline void open_pair(int pair[2]) {
  socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
}

static inline void close_pair(const int pair[2]) {
  close(pair[0]);
  close(pair[1]);
}

static inline void put(int fd, const char* text) {
  if (write(fd, text, strlen(text)) < 0) show_text("write", strerror(errno));
}

static inline long drain(int fd) {
  char bytes[64];
  return (long)read(fd, bytes, sizeof bytes);
}

// Log messages differ between the libraries. Only the reason at the end is the same.
static inline void on_log(int severity, const char* text) {
  printf("  log of severity %d", severity);
  for (int number = 1; number < 100; number++) {
    const char* why = strerror(number);
    const size_t length = strlen(why);
    const size_t whole = strlen(text);
    if (whole > length && strcmp(text + whole - length, why) == 0) printf(": %s", why);
  }
  printf("\n");
}
