/* libev's native interface, as in its published runs: stop, set, start; the idle timeout is
   ev_timer_again. */
#include "fd.h"

#include <ev.h>

static struct ev_loop *loop;
static ev_io *ios; /* two arrays, as in the published program */
static ev_timer *timers;

static inline void reset_timeout(long i) {
  timers[i].repeat = 1e-9 * (double)fd_timeout_ns();
  ev_timer_again(loop, &timers[i]);
}

static void on_readable(struct ev_loop *l, ev_io *io, int events) {
  const long i = (long)io->data;
  (void)l, (void)events;
  if (fd_timeouts) reset_timeout(i);
  fd_receive(i);
}

static void on_timeout(struct ev_loop *l, ev_timer *timer, int events) {
  (void)l, (void)timer, (void)events;
  fd_expired++;
}

static void fd_open(int argc, char **argv) {
  (void)argc, (void)argv;
  loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
  ios = (ev_io *)calloc((size_t)fd_pairs, sizeof *ios);
  timers = (ev_timer *)calloc((size_t)fd_pairs, sizeof *timers);
  for (long i = 0; i < fd_pairs; i++) {
    ev_init(&ios[i], on_readable);
    ev_init(&timers[i], on_timeout);
    ios[i].data = (void *)i;
  }
}

static inline void fd_watch(long i, int fd) {
  ev_io *io = &ios[i];
  ev_io_stop(loop, io);
  ev_io_set(io, fd, EV_READ);
  ev_io_start(loop, io);
  if (fd_timeouts) reset_timeout(i);
}

static inline void fd_pass(void) { ev_run(loop, EVRUN_NOWAIT); }

static void fd_version(void) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d", ev_version_major(), ev_version_minor());
  bench_version(version, "libev.so");
}
