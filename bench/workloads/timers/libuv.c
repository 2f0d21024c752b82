/* libuv: uv_timer_start on an active timer moves it; milliseconds are its unit; time is cached. */
#include "timers.h"

#include <uv.h>

static uv_loop_t loop;
static uv_timer_t *timers;

static void on_timer(uv_timer_t *timer) {
  (void)timer;
  timers_fired();
}

static void timers_open(void) {
  uv_loop_init(&loop);
  timers = (uv_timer_t *)malloc((size_t)timers_pending * sizeof *timers);
  for (long i = 0; i < timers_pending; i++) uv_timer_init(&loop, &timers[i]);
}

static void timers_version(void) { bench_version(uv_version_string(), "libuv.so"); }
static void timers_update_now(void) { uv_update_time(&loop); }

static inline void timers_start(uint32_t i, uint64_t ns) {
  uv_timer_start(&timers[i], on_timer, ns / 1000000u, 0);
}

static inline void timers_restart(uint32_t i, uint64_t ns) { timers_start(i, ns); }
static inline void timers_stop(uint32_t i) { uv_timer_stop(&timers[i]); }

static inline void timers_stop_start(uint32_t i, uint64_t ns) {
  timers_stop(i);
  timers_start(i, ns);
}

static inline void timers_pass(void) { uv_run(&loop, UV_RUN_NOWAIT); }
static void timers_inside(void (*phase)(void)) { phase(); }
