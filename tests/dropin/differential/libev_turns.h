#pragma once

// One loop in real time, and the turns that it makes. Everything that a turn needs exists before it
// begins, or the turn waits for an event that is certain to come; kPatience expires only when
// something was lost.

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "harness.h"

static const double kPatience = 5.;

static struct ev_loop* loop;
static int seen;  // Counted by the callbacks.

static inline void new_loop(void) { loop = ev_loop_new(EVFLAG_NOENV); }

static inline void turn(void) {
  const int result = ev_run(loop, EVRUN_NOWAIT);
  printf("turn: %d\n", result);
}

static void on_patience(struct ev_loop* of, ev_timer* watcher, int revents) {
  (void)watcher;
  (void)revents;
  printf("lost patience\n");
  ev_break(of, EVBREAK_ALL);
}

// Runs until the callbacks have counted to `wanted`.
static inline void run_until(int wanted) {
  ev_timer patience;
  ev_timer_init(&patience, on_patience, kPatience, 0.);
  ev_now_update(loop);
  ev_timer_start(loop, &patience);
  while (seen < wanted && ev_is_active(&patience)) {
    ev_run(loop, EVRUN_ONCE);
  }
  ev_timer_stop(loop, &patience);
  printf("%d of %d\n", seen, wanted);
}

// Ends run_for().
static void on_over(struct ev_loop* of, ev_timer* watcher, int revents) {
  (void)watcher;
  (void)revents;
  ev_break(of, EVBREAK_ALL);
}

static inline void run_for(double seconds) {
  ev_timer over;
  ev_timer_init(&over, on_over, seconds, 0.);
  ev_now_update(loop);
  ev_timer_start(loop, &over);
  ev_run(loop, 0);
  ev_timer_stop(loop, &over);
}

static inline void make_pair(int fds[2]) {
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0) {
    abort();
  }
}

static inline void make_pipe(int fds[2]) {
  if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) != 0) {
    abort();
  }
}

static inline void put(int fd) {
  if (write(fd, "x", 1) != 1) {
    printf("could not write\n");
  }
}

static inline void drain(int fd) {
  char bytes[256];
  while (read(fd, bytes, sizeof bytes) > 0) {
  }
}
