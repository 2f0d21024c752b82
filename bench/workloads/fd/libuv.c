/* libuv: uv_poll on the socket, uv_timer for the idle timeout (milliseconds are its unit).
   uv_timer_start on an active timer moves it; no stop is needed. */
#include "fd.h"

#include <uv.h>

typedef struct {
  uv_poll_t poll;
  uv_timer_t timer;
} Connection;

static uv_loop_t loop;
static Connection *connections;

static void on_timeout(uv_timer_t *timer) {
  (void)timer;
  fd_expired++;
}

static inline void reset_timeout(long i) {
  uv_timer_start(&connections[i].timer, on_timeout, fd_timeout_ns() / 1000000u, 0);
}

static void on_readable(uv_poll_t *poll, int status, int events) {
  const long i = (long)poll->data;
  (void)status, (void)events;
  if (fd_timeouts) reset_timeout(i);
  fd_receive(i);
}

static void fd_open(int argc, char **argv) {
  (void)argc, (void)argv;
  uv_loop_init(&loop);
  connections = (Connection *)calloc((size_t)fd_pairs, sizeof *connections);
  for (long i = 0; i < fd_pairs; i++) {
    uv_poll_init(&loop, &connections[i].poll, fd_socket(i));
    connections[i].poll.data = (void *)i;
    if (fd_timeouts) uv_timer_init(&loop, &connections[i].timer);
  }
}

static inline void fd_watch(long i, int fd) {
  (void)fd; /* a uv_poll_t keeps the fd that it was made with */
  uv_poll_stop(&connections[i].poll);
  uv_poll_start(&connections[i].poll, UV_READABLE, on_readable);
  if (fd_timeouts) reset_timeout(i);
}

static inline void fd_pass(void) { uv_run(&loop, UV_RUN_NOWAIT); }

static void fd_version(void) { bench_version(uv_version_string(), "libuv.so"); }
