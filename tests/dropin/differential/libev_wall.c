// Periodics, and a wall clock that is set. ev(3): ev_periodic. The clock is virtual_time.h's. The
// kernel's timerfd does not report a jump of it, so libraries detect a jump by comparing the
// clocks.

#include "libev_virtual.h"

static ev_periodic watchers[6];
static ev_timer timer;
static int rule_calls;

static double from_start(ev_tstamp at) {
  return tenths(at - 1e-9 * (double)(kMonotonicStart + kRealAhead));
}

static ev_tstamp start_of_time(void) { return 1e-9 * (double)(kMonotonicStart + kRealAhead); }

static void on_periodic(struct ev_loop* of, ev_periodic* watcher, int revents) {
  (void)of;
  printf("periodic %d revents %x now %.1f active %d at %.1f\n", (int)(watcher - watchers),
         (unsigned)revents, now_in_milliseconds(), ev_is_active(watcher) != 0,
         from_start(ev_periodic_at(watcher)));
}

static void on_timer(struct ev_loop* of, ev_timer* watcher, int revents) {
  (void)of;
  (void)watcher;
  printf("timer revents %x now %.1f\n", (unsigned)revents, now_in_milliseconds());
}

static void start(int number, double offset_from_start, double interval,
                  ev_tstamp (*rule)(ev_periodic*, ev_tstamp)) {
  ev_periodic_init(&watchers[number], on_periodic, start_of_time() + offset_from_start * 1e-3,
                   interval * 1e-3, rule);
  ev_periodic_start(loop, &watchers[number]);
}

static void show(const char* what, int number) {
  const ev_periodic* const watcher = &watchers[number];
  printf("%s: active %d pending %d at %.1f offset %.1f interval %.1f\n", what,
         ev_is_active(watcher) != 0, ev_is_pending(watcher) != 0,
         from_start(ev_periodic_at(watcher)), from_start(watcher->offset), watcher->interval * 1e3);
}

static void absolute(void) {
  new_loop();
  start(0, 5.5, 0, NULL);
  start(1, -5.5, 0, NULL);
  start(2, 2.5, 0, NULL);
  show("future", 0);
  show("past", 1);
  run(EVRUN_NOWAIT);
  later(4);
  later(4);
  show("expired", 0);
  ev_periodic_start(loop, &watchers[0]);
  show("started again", 0);
  run(EVRUN_NOWAIT);
}

static void interval(void) {
  new_loop();
  start(0, 0.3, 10, NULL);
  start(1, -1000.2, 10, NULL);
  start(2, 77777.4, 10, NULL);
  start(3, 0.6, 3.5, NULL);
  for (int number = 0; number < 4; number++) {
    show("started", number);
  }
  for (int i = 0; i < 8; i++) {
    later(3.3);
  }
  later(1000);  // Missed occurrences are not made up for.
  later(10);
}

static void by_itself(void) {
  new_loop();
  start(0, 0.3, 10, NULL);
  start(1, 25.5, 0, NULL);
  ev_unref(loop);
  run(0);
  printf("iterations %u\n", ev_iteration(loop));
}

static void short_interval(void) {
  new_loop();
  start(0, 0.3, 0.001, NULL);
  for (int i = 0; i < 5; i++) {
    virtual_advance(2 * kMillisecond);
    ev_run(loop, EVRUN_NOWAIT);
    const double ahead = ev_periodic_at(&watchers[0]) - ev_now(loop);
    printf("active %d soon %d\n", ev_is_active(&watchers[0]) != 0, ahead >= 0 && ahead < 1e-3);
  }
}

static ev_tstamp seven_later(ev_periodic* watcher, ev_tstamp now) {
  rule_calls++;
  return now + 0.0071 + 1e-3 * (double)(watcher - watchers);
}

static void by_rule(void) {
  new_loop();
  start(0, 0, 0, seven_later);
  show("by rule", 0);
  start(1, 3, 5, seven_later);
  show("the rule comes before the interval", 1);
  for (int i = 0; i < 8; i++) {
    later(3.3);
  }
  ev_periodic_stop(loop, &watchers[0]);
  printf("the rule was asked: %d\n", rule_calls >= 6);
  show("stopped", 0);
}

static ev_tstamp far_later(ev_periodic* watcher, ev_tstamp now) {
  (void)watcher;
  return now + 1e30;
}

static void rule_says_never(void) {
  new_loop();
  start(0, 0, 0, far_later);
  for (int i = 0; i < 3; i++) {
    later(1e7);
    printf("active %d\n", ev_is_active(&watchers[0]) != 0);
  }
}

static void again(void) {
  new_loop();
  start(0, 0.3, 10, NULL);
  later(2);
  watchers[0].interval = 4e-3;
  show("interval changed", 0);
  later(9);
  ev_periodic_set(&watchers[0], start_of_time() + 0.2e-3, 25e-3, NULL);
  ev_feed_event(loop, &watchers[0], EV_CUSTOM);
  ev_periodic_again(loop, &watchers[0]);
  show("again", 0);
  later(30);
  ev_periodic_again(loop, &watchers[1]);
  ev_periodic_init(&watchers[2], on_periodic, start_of_time() + 0.1, 0., NULL);
  ev_periodic_again(loop, &watchers[2]);
  show("again starts", 2);
  ev_periodic_stop(loop, &watchers[2]);
  show("stopped", 2);
}

static void on_restart(struct ev_loop* of, ev_periodic* watcher, int revents) {
  on_periodic(of, watcher, revents);
  ev_periodic_stop(of, watcher);
  ev_periodic_set(watcher, ev_now(of) + 2.2e-3, 0., NULL);
  ev_periodic_start(of, watcher);
  ev_periodic_stop(of, &watchers[1]);
}

static void in_the_callback(void) {
  new_loop();
  start(0, 1.5, 3, NULL);
  start(1, 2, 0, NULL);
  ev_set_cb(&watchers[0], on_restart);
  for (int i = 0; i < 5; i++) {
    later(2.6);
  }
}

static void with_timers(void) {
  new_loop();
  ev_timer_init(&timer, on_timer, 3.3e-3, 0.);
  ev_timer_start(loop, &timer);
  start(0, 5.5, 0, NULL);
  start(1, 2.5, 0, NULL);
  ev_set_priority(&watchers[2], 0);
  later(8);
}

// --- The wall clock is set. ---

static void jump(double milliseconds) {
  virtual_wall_jump += (int64_t)llround(milliseconds * 1e6);
  printf("set by %.1f\n", milliseconds);
}

static void start_before_jump(void) {
  new_loop();
  start(0, 0.3, 5000, NULL);
  start(1, 20000.4, 0, NULL);
  start(2, 0, 0, seven_later);
  ev_timer_init(&timer, on_timer, 7.3, 0.);
  ev_timer_start(loop, &timer);
  later(1);
}

static void set_forward(void) {
  start_before_jump();
  jump(1000000);
  later(600);
  for (int i = 0; i < 4; i++) {
    later(2000);
  }
}

static void set_back(void) {
  start_before_jump();
  jump(-1000000);
  later(600);
  show("interval", 0);
  show("absolute", 1);
  show("rule", 2);
  for (int i = 0; i < 4; i++) {
    later(2000);
  }
}

// A change of less than a second is not a jump, but a correction of the clock.
static void set_a_little(void) {
  start_before_jump();
  jump(300);
  later(600);
  show("interval", 0);
  for (int i = 0; i < 4; i++) {
    later(2000);
  }
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"absolute", absolute},
      {"interval", interval},
      {"by itself", by_itself},
      {"short interval", short_interval},
      {"by rule", by_rule},
      {"rule says never", rule_says_never},
      {"again", again},
      {"in the callback", in_the_callback},
      {"with timers", with_timers},
      {"set forward", set_forward},
      {"set back", set_back},
      {"set a little", set_a_little},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
