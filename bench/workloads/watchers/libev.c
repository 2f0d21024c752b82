/* libev: watchers in one array, as its embedders keep them. */
#include "watchers.h"

#include <ev.h>

static struct ev_loop *loop;
static ev_io *ios;
static ev_timer *timers;

static void on_io(struct ev_loop *l, ev_io *io, int events) {
  (void)l, (void)io, (void)events;
  watchers_invoked();
}

static void on_timer(struct ev_loop *l, ev_timer *timer, int events) {
  (void)l, (void)timer, (void)events;
  watchers_invoked();
}

static void watchers_open(void) { loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV); }

static size_t watchers_object_bytes(void) {
  return watchers_kind == WATCHERS_IO ? sizeof(ev_io) : sizeof(ev_timer);
}

static void watchers_create(void) {
  const size_t count = (size_t)watchers_count;
  if (watchers_kind == WATCHERS_IO) {
    ios = (ev_io *)malloc(count * sizeof *ios);
    for (size_t i = 0; i < count; i++) {
      ev_io_init(&ios[i], on_io, watchers_sockets[0], EV_READ);
      ev_io_start(loop, &ios[i]);
    }
  } else {
    timers = (ev_timer *)malloc(count * sizeof *timers);
    for (size_t i = 0; i < count; i++) {
      ev_timer_init(&timers[i], on_timer, 0., 0.);
      ev_timer_start(loop, &timers[i]);
    }
  }
}

static void watchers_pass(void) { ev_run(loop, EVRUN_NOWAIT); }

static void watchers_destroy(void) {
  if (watchers_kind == WATCHERS_IO)
    for (long i = watchers_count; i-- > 0;) ev_io_stop(loop, &ios[i]);
  else
    for (long i = watchers_count; i-- > 0;) ev_timer_stop(loop, &timers[i]);
  free(ios);
  free(timers);
}

static void watchers_version(void) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d", ev_version_major(), ev_version_minor());
  bench_version(version, "libev.so");
}
