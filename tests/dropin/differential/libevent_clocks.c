// The two clocks, while one of them is set: the effects on evutil's timers, a base's time of day
// and its timeouts. On the clock of virtual_steps.h.
#include <event2/util.h>

#include "libevent_cases.h"
#include "virtual_steps.h"

static struct event_base* base;

static void stuck(void) { event_base_loopbreak(base); }

static void set_wall_clock(int64_t seconds) {
  virtual_wall_jump += seconds * kSecond;
  printf("the clock is set by %lld s\n", (long long)seconds);
}

// ---- evutil

static struct timeval first;

static void print_since_first(struct evutil_monotonic_timer* timer) {
  struct timeval now = {0, 0};
  show("result", evutil_gettime_monotonic(timer, &now));
  if (first.tv_sec == 0) first = now;
  printf("%lld us\n",
         (long long)(now.tv_sec - first.tv_sec) * 1000000 + now.tv_usec - first.tv_usec);
}

static void timer_with(int flags) {
  static const int jumps[] = {0, -50, 0, 20, -1000, 2000, -1, 1};
  struct evutil_monotonic_timer* timer = evutil_monotonic_timer_new();
  first.tv_sec = 0;
  printf("flags %d\n", flags);
  if (flags >= 0) show("configure", evutil_configure_monotonic_time(timer, flags));
  for (int i = 0; i < 8; i++) {
    print_since_first(timer);
    set_wall_clock(jumps[i]);
    advance_steps(3);
    print_since_first(timer);
    print_since_first(timer);
  }
  evutil_monotonic_timer_free(timer);
}

static void timers(void) {
  static const int flags[] = {-1, 0, EV_MONOT_PRECISE, EV_MONOT_FALLBACK,
                              EV_MONOT_PRECISE | EV_MONOT_FALLBACK};
  for (int i = 0; i < 5; i++) timer_with(flags[i]);
}

// ---- a base

static int is_settled;

static void print_times(evutil_socket_t fd, short what, void* argument) {
  (void)fd, (void)argument;
  struct timeval now;
  show("  cached", event_base_gettimeofday_cached(base, &now));
  const int64_t behind =
      wall_micros_now() + virtual_wall_jump / 1000 - (now.tv_sec * 1000000LL + now.tv_usec);
  printf("  what %#x, behind %lld us\n", (unsigned)what, is_settled ? (long long)behind : 0);
}

// The base reads the wall clock again after some seconds; how many differs between the libraries.
static void time_of_day(void) {
  base = event_base_new();
  struct event* ev = event_new(base, -1, EV_PERSIST, print_times, NULL);
  add_in(ev, 1000000);
  for (int i = 0; i < 60; i++) {
    if (i % 15 == 2) set_wall_clock(i % 2 ? -100 : 100);
    is_settled = i % 15 < 2 || i % 15 > 10;
    show("loop", event_base_loop(base, EVLOOP_ONCE));
  }
  event_free(ev);
  event_base_free(base);
}

static void until(struct event* ev) {
  struct timeval at = {0, 0};
  show_hex("pending", event_pending(ev, EV_TIMEOUT, &at));
  printf("in %lld us\n", (long long)(at.tv_sec * 1000000LL + at.tv_usec - wall_micros_now() -
                                     virtual_wall_jump / 1000));
}

static void pending_until(void) {
  base = event_base_new();
  struct event* ev = event_new(base, -1, 0, print_times, NULL);
  add_in(ev, 60000000);
  for (int i = 0; i < 4; i++) {
    until(ev);
    set_wall_clock(30);
    advance_steps(60);
    show("loop", event_base_loop(base, EVLOOP_NONBLOCK));
  }
  event_free(ev);
  event_base_free(base);
}

// ---- timers that are late by whole intervals, to the microsecond

static void print_call(evutil_socket_t fd, short what, void* argument) {
  (void)fd, (void)argument;
  printf("  what %#x at %lld\n", (unsigned)what, (long long)(micros_now() / kStep));
}

static void late_by_whole_intervals(void) {
  base = event_base_new();
  struct event* ev = event_new(base, -1, EV_PERSIST, print_call, NULL);
  for (int interval = 1; interval < 4; interval++) {
    for (int late = 0; late < 8; late++) {
      printf("interval %d, late by %d\n", interval, late);
      add_in(ev, interval * kStep);
      advance_steps(late);
      for (int i = 0; i < 4; i++)
        show("loop", event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
      event_del(ev);
    }
  }
  event_free(ev);
  event_base_free(base);
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"timers", timers},
      {"time of day", time_of_day},
      {"pending until", pending_until},
      {"late by whole intervals", late_by_whole_intervals},
  };
  use_steps(stuck);
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
