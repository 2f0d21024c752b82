/* libevent: event_add on a pending timer moves it. It caches the time only while callbacks run, so
   the phases run in one. */
#include "timers.h"

#include <event2/event.h>
#include <event2/event_struct.h>

static struct event_base *base;
static struct event *timers;

static void on_timer(evutil_socket_t fd, short what, void *argument) {
  (void)fd, (void)what, (void)argument;
  timers_fired();
}

static void timers_open(void) {
  struct event_config *config = event_config_new();
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
  base = event_base_new_with_config(config);
  event_config_free(config);
  timers = (struct event *)malloc((size_t)timers_pending * sizeof *timers);
  for (long i = 0; i < timers_pending; i++)
    event_assign(&timers[i], base, -1, 0, on_timer, NULL);
}

static void timers_version(void) { bench_version(event_get_version(), "libevent"); }
static void timers_update_now(void) { event_base_update_cache_time(base); }

static inline void timers_start(uint32_t i, uint64_t ns) {
  const struct timeval after = {(time_t)(ns / 1000000000u), (suseconds_t)(ns % 1000000000u / 1000)};
  event_add(&timers[i], &after);
}

static inline void timers_restart(uint32_t i, uint64_t ns) { timers_start(i, ns); }
static inline void timers_stop(uint32_t i) { event_del(&timers[i]); }

static inline void timers_stop_start(uint32_t i, uint64_t ns) {
  timers_stop(i);
  timers_start(i, ns);
}

static inline void timers_pass(void) { event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK); }

static void call_phase(evutil_socket_t fd, short what, void *argument) {
  (void)fd, (void)what;
  (*(void (**)(void))argument)();
}

static void timers_inside(void (*phase)(void)) {
  static const struct timeval at_once = {0, 0};
  event_base_once(base, -1, EV_TIMEOUT, call_phase, &phase, &at_once);
  event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}
