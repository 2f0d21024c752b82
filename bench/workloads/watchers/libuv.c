/* libuv allows one uv_poll_t an fd, so kind io watches dup()ed fds, which bounds the count; making
   and closing the duplicates is not timed. Its events come in batches of 1024; the runner's counts
   are multiples of that, so that each watcher is called once. Closing takes a turn of the loop. */
#include "watchers.h"

#include <uv.h>

static uv_loop_t loop;
static uv_poll_t *polls;
static uv_timer_t *timers;
static int *duplicates;

static void on_poll(uv_poll_t *poll, int status, int events) {
  (void)poll, (void)status, (void)events;
  watchers_invoked();
}

static void on_timer(uv_timer_t *timer) {
  (void)timer;
  watchers_invoked();
}

static void watchers_open(void) {
  uv_loop_init(&loop);
  if (watchers_kind != WATCHERS_IO) return;
  duplicates = (int *)malloc((size_t)watchers_count * sizeof *duplicates);
  for (long i = 0; i < watchers_count; i++)
    if ((duplicates[i] = dup(watchers_sockets[0])) < 0) bench_die("dup");
}

static size_t watchers_object_bytes(void) {
  return watchers_kind == WATCHERS_IO ? sizeof(uv_poll_t) : sizeof(uv_timer_t);
}

static void watchers_create(void) {
  const size_t count = (size_t)watchers_count;
  if (watchers_kind == WATCHERS_IO) {
    polls = (uv_poll_t *)malloc(count * sizeof *polls);
    for (size_t i = 0; i < count; i++) {
      uv_poll_init(&loop, &polls[i], duplicates[i]);
      uv_poll_start(&polls[i], UV_READABLE, on_poll);
    }
  } else {
    timers = (uv_timer_t *)malloc(count * sizeof *timers);
    for (size_t i = 0; i < count; i++) {
      uv_timer_init(&loop, &timers[i]);
      uv_timer_start(&timers[i], on_timer, 0, 0);
    }
  }
}

static void watchers_pass(void) { uv_run(&loop, UV_RUN_NOWAIT); }

static void watchers_destroy(void) {
  if (watchers_kind == WATCHERS_IO)
    for (long i = watchers_count; i-- > 0;) uv_close((uv_handle_t *)&polls[i], NULL);
  else
    for (long i = watchers_count; i-- > 0;) uv_close((uv_handle_t *)&timers[i], NULL);
  uv_run(&loop, UV_RUN_NOWAIT);
  free(polls);
  free(timers);
}

static void watchers_version(void) { bench_version(uv_version_string(), "libuv.so"); }
