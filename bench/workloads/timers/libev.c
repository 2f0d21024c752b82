/* libev: ev_timer_again moves a pending timer; its loop time is cached. */
#include "timers.h"

#include <ev.h>

static struct ev_loop *loop;
static ev_timer *timers;

static void on_timer(struct ev_loop *l, ev_timer *timer, int events) {
  (void)l, (void)timer, (void)events;
  timers_fired();
}

static void timers_open(void) {
  loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
  timers = (ev_timer *)malloc((size_t)timers_pending * sizeof *timers);
  for (long i = 0; i < timers_pending; i++) ev_init(&timers[i], on_timer);
}

static void timers_version(void) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d", ev_version_major(), ev_version_minor());
  bench_version(version, "libev.so");
}

static void timers_update_now(void) { ev_now_update(loop); }

static inline void timers_restart(uint32_t i, uint64_t ns) {
  timers[i].repeat = 1e-9 * (double)ns;
  ev_timer_again(loop, &timers[i]);
}

static inline void timers_start(uint32_t i, uint64_t ns) {
  ev_timer_set(&timers[i], 1e-9 * (double)ns, 0.);
  ev_timer_start(loop, &timers[i]);
}

static inline void timers_stop(uint32_t i) { ev_timer_stop(loop, &timers[i]); }

static inline void timers_stop_start(uint32_t i, uint64_t ns) {
  timers_stop(i);
  timers_start(i, ns);
}

static inline void timers_pass(void) { ev_run(loop, EVRUN_NOWAIT); }
static void timers_inside(void (*phase)(void)) { phase(); }
