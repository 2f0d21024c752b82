// Timers, periodics and everything else that depends on time, on a virtual clock (virtual_time.h),
// so that the watchers' state after each call can be printed. ev(3): ev_timer, ev_periodic,
// ev_now_update, ev_suspend, ev_sleep, ev_set_*_collect_interval, ev_once.

#include "libev_virtual.h"

static ev_timer timers[8];
static ev_periodic periodics[8];

static void on_timer(struct ev_loop* of, ev_timer* watcher, int revents) {
  printf("timer %d revents %x now %.1f active %d remaining %.1f\n", (int)(watcher - timers),
         (unsigned)revents, now_in_milliseconds(), ev_is_active(watcher) != 0,
         tenths(ev_timer_remaining(of, watcher)));
}

static void on_periodic(struct ev_loop* of, ev_periodic* watcher, int revents) {
  printf("periodic %d revents %x now %.1f active %d at %.1f\n", (int)(watcher - periodics),
         (unsigned)revents, now_in_milliseconds(), ev_is_active(watcher) != 0,
         tenths(ev_periodic_at(watcher) - ev_now(of)));
}

static ev_timer* timer(int number, double after, double repeat) {
  ev_timer_init(&timers[number], on_timer, after * 1e-3, repeat * 1e-3);
  return &timers[number];
}

static void start(int number, double after, double repeat) {
  ev_timer_start(loop, timer(number, after, repeat));
}

static void show(const char* what, int number) {
  const ev_timer* const watcher = &timers[number];
  printf("%s: active %d pending %d remaining %.1f repeat %.1f", what, ev_is_active(watcher) != 0,
         ev_is_pending(watcher) != 0, tenths(ev_timer_remaining(loop, &timers[number])),
         tenths(watcher->repeat));
  if (!ev_is_active(watcher)) {
    printf(" at %.1f", tenths(watcher->at));
  }
  printf("\n");
}

// --- ev_timer_again(): every case. ---

static void again_without_repeat(void) {
  new_loop();
  timer(0, 5, 0);
  ev_timer_again(loop, &timers[0]);
  show("inactive", 0);
  ev_timer_start(loop, &timers[0]);
  later(2);
  ev_timer_again(loop, &timers[0]);
  show("active", 0);
  ev_timer_start(loop, &timers[0]);
  show("started again", 0);
  ev_feed_event(loop, &timers[0], EV_CUSTOM);
  show("fed", 0);
  ev_timer_again(loop, &timers[0]);
  show("fed and again", 0);
  later(20);
}

static void again_with_repeat(void) {
  new_loop();
  timer(0, 5, 7);
  ev_timer_again(loop, &timers[0]);
  show("inactive", 0);
  later(3);
  show("later", 0);
  ev_timer_again(loop, &timers[0]);
  show("active", 0);
  advance(2);
  ev_timer_again(loop, &timers[0]);
  show("the loop has not seen the time yet", 0);
  ev_feed_event(loop, &timers[0], EV_CUSTOM);
  ev_timer_again(loop, &timers[0]);
  show("fed", 0);
  later(6.5);
  later(1);
  timers[0].repeat = 3e-3;
  show("repeat changed", 0);
  ev_timer_again(loop, &timers[0]);
  show("again", 0);
  timers[0].repeat = 0;
  ev_timer_again(loop, &timers[0]);
  show("repeat 0", 0);
}

static void again_of_a_zeroed_watcher(void) {
  new_loop();
  memset(&timers[0], 0, sizeof timers[0]);
  ev_init(&timers[0], on_timer);
  timers[0].repeat = 4e-3;
  ev_timer_again(loop, &timers[0]);
  show("started", 0);
  later(5);
  ev_timer_stop(loop, &timers[0]);
  show("stopped", 0);
}

static void on_again(struct ev_loop* of, ev_timer* watcher, int revents) {
  on_timer(of, watcher, revents);
  advance(1);
  watcher->repeat = watcher->repeat == 0 ? 5e-3 : watcher->repeat / 2;
  ev_timer_again(of, watcher);
  show("again in the callback", (int)(watcher - timers));
}

static void again_in_the_callback(void) {
  new_loop();
  ev_set_cb(timer(0, 3, 0), on_again);
  ev_set_cb(timer(1, 2, 40), on_again);
  ev_timer_start(loop, &timers[0]);
  ev_timer_start(loop, &timers[1]);
  for (int i = 0; i < 6; i++) {
    later(5.5);
  }
}

// --- The remaining time. ---

static void remaining(void) {
  new_loop();
  timer(0, 5, 7);
  show("set", 0);
  ev_timer_start(loop, &timers[0]);
  show("started", 0);
  later(1);
  show("a millisecond later", 0);
  later(4.5);
  show("repeated", 0);
  later(3);
  ev_timer_stop(loop, &timers[0]);
  show("stopped", 0);
  advance(100);
  ev_now_update(loop);
  show("stopped, later", 0);
  ev_timer_start(loop, &timers[0]);
  show("started with what was left", 0);
  advance(30);
  ev_now_update(loop);
  show("overdue", 0);
  ev_timer_stop(loop, &timers[0]);
  show("stopped overdue", 0);
  ev_timer_stop(loop, &timers[0]);
  show("stopped twice", 0);
}

static void one_shot_leaves(void) {
  new_loop();
  start(0, 3, 0);
  later(5.5);
  show("expired", 0);
  ev_timer_start(loop, &timers[0]);
  show("started again", 0);
  later(1);
}

static void start_twice(void) {
  new_loop();
  start(0, 5, 0);
  later(2);
  ev_timer_start(loop, &timers[0]);
  show("started twice", 0);
  ev_timer_stop(loop, &timers[0]);
  run(EVRUN_NOWAIT);
}

// --- Repeating timers. ---

static void repeat_catches_up(void) {
  new_loop();
  start(0, 10, 10);
  later(10.5);
  later(95);
  for (int i = 0; i < 4; i++) {
    later(0.2);
  }
  later(9.5);
  later(10);
}

static void repeat_does_not_drift(void) {
  new_loop();
  start(0, 10, 10);
  for (int i = 0; i < 8; i++) {
    later(10 + i * 0.4);
  }
}

static void on_repeat_change(struct ev_loop* of, ev_timer* watcher, int revents) {
  on_timer(of, watcher, revents);
  watcher->repeat = watcher->repeat > 3e-3 ? watcher->repeat - 2e-3 : 0;
}

static void repeat_changed_in_callback(void) {
  new_loop();
  ev_set_cb(timer(0, 4, 6), on_repeat_change);
  ev_timer_start(loop, &timers[0]);
  for (int i = 0; i < 8; i++) {
    later(6.5);
  }
}

static void repeat_by_itself(void) {
  new_loop();
  start(0, 3.5, 5);
  start(1, 61.2, 0);
  ev_timer_start(loop, timer(2, 7.3, 11));
  ev_unref(loop);
  ev_unref(loop);
  run(0);
  printf("iterations %u\n", ev_iteration(loop));
}

// --- When timers expire. ---

static void zero_and_negative(void) {
  new_loop();
  start(0, 0, 0);
  start(1, -5, 0);
  start(2, -3, 0);
  show("negative", 1);
  run(EVRUN_NOWAIT);
  start(3, 0, 5);
  start(4, -100, 5);
  run(EVRUN_NOWAIT);
  run(EVRUN_NOWAIT);
  later(6);
}

static void on_zero(struct ev_loop* of, ev_timer* watcher, int revents) {
  on_timer(of, watcher, revents);
  static int left = 4;
  if (left-- > 0) {
    ev_timer_set(watcher, 0., 0.);
    ev_timer_start(of, watcher);
  }
}

static void zero_in_the_callback(void) {
  new_loop();
  ev_set_cb(timer(0, 0, 0), on_zero);
  ev_timer_start(loop, &timers[0]);
  for (int i = 0; i < 6; i++) {
    run(EVRUN_NOWAIT);
    printf("iteration %u\n", ev_iteration(loop));
  }
}

// Times that a double stores exactly, and a clock that does not advance by itself.
static void due_only_when_passed(void) {
  virtual_tick = 0;
  new_loop();
  start(0, 250, 0);
  start(1, 500, 500);
  later(250);
  virtual_advance(1);
  run(EVRUN_NOWAIT);
  later(250);
  virtual_advance(499999999);
  run(EVRUN_NOWAIT);
  run(EVRUN_NOWAIT);
  virtual_advance(10);
  run(EVRUN_NOWAIT);
}

static void far_away(void) {
  static const double seconds[] = {1e5, 1e7, 1e9, 1e12, 1e30};
  new_loop();
  for (int i = 0; i < 5; i++) {
    start(i, seconds[i] * 1e3, 0);
  }
  for (int i = 0; i < 3; i++) {
    later(86400000.);
    for (int number = 0; number < 5; number++) {
      printf("%d: active %d\n", number, ev_is_active(&timers[number]) != 0);
    }
  }
}

enum { kMany = 3000 };
static ev_timer many[kMany];
static int many_calls;
static double many_last;

static void on_many(struct ev_loop* of, ev_timer* watcher, int revents) {
  (void)of;
  (void)revents;
  const double due = *(double*)watcher->data;
  many_calls++;
  if (due < many_last) {
    printf("call %d: %f after %f\n", many_calls, due, many_last);
  }
  many_last = due;
}

static void many_in_order(void) {
  static double due[kMany];
  new_loop();
  for (int i = 0; i < kMany; i++) {
    due[i] = 1e-3 * random_below(1000) + 1e-7 * i;
    ev_timer_init(&many[i], on_many, due[i], 0.);
    many[i].data = &due[i];
    ev_timer_start(loop, &many[i]);
  }
  for (int i = 0; i < kMany; i += 3) {
    ev_timer_stop(loop, &many[i]);
  }
  for (int i = 0; i < 100; i++) {
    advance(11);
    const int result = ev_run(loop, EVRUN_NOWAIT);
    many_last = 0;
    printf("%d calls, %d left\n", many_calls, result);
  }
}

static void by_priority_then_time(void) {
  new_loop();
  for (int i = 0; i < 8; i++) {
    ev_set_priority(timer(i, 20 - 2 * i, 0), i % 3 - 1);
    ev_timer_start(loop, &timers[i]);
  }
  later(30);
}

static void on_stop_others(struct ev_loop* of, ev_timer* watcher, int revents) {
  on_timer(of, watcher, revents);
  for (int i = 0; i < 6; i += 2) {
    ev_timer_stop(of, &timers[i]);
    show("stopped", i);
  }
}

static void stopped_when_due(void) {
  new_loop();
  for (int i = 0; i < 6; i++) {
    start(i, 10 - i, i % 2 == 0 ? 50 : 0);
  }
  ev_set_cb(&timers[3], on_stop_others);
  later(12);
  later(60);
}

// --- The loop's time. ---

static void on_now(struct ev_loop* of, ev_timer* watcher, int revents) {
  on_timer(of, watcher, revents);
  advance(7);
  printf("time passes: now %.1f time %.1f\n", now_in_milliseconds(),
         tenths(ev_time() - 1e-9 * (double)(kMonotonicStart + kRealAhead)));
  start(1, 5, 0);
  ev_now_update(of);
  printf("updated: now %.1f\n", now_in_milliseconds());
  show("started before", 1);
  start(2, 5, 0);
}

static void now_and_update(void) {
  new_loop();
  ev_set_cb(timer(0, 2, 0), on_now);
  ev_timer_start(loop, &timers[0]);
  later(3);
  for (int i = 0; i < 12; i++) {
    later(1);
  }
}

static void suspend_and_resume(void) {
  new_loop();
  start(0, 10, 0);
  start(1, 20, 8);
  ev_periodic_init(&periodics[0], on_periodic, ev_now(loop) + 0.0152, 0., NULL);
  ev_periodic_start(loop, &periodics[0]);
  ev_periodic_init(&periodics[1], on_periodic, ev_now(loop) + 0.0053, 0.1, NULL);
  ev_periodic_start(loop, &periodics[1]);
  later(2);
  ev_suspend(loop);
  advance(50);
  ev_resume(loop);
  show("resumed", 0);
  show("resumed", 1);
  printf("now %.1f at %.1f\n", now_in_milliseconds(),
         tenths(ev_periodic_at(&periodics[1]) - ev_now(loop)));
  for (int i = 0; i < 8; i++) {
    later(10);
  }
}

static void sleeping(void) {
  new_loop();
  const int64_t before = virtual_now;
  ev_sleep(0.0125);
  ev_sleep(0.);
  ev_sleep(-3.);
  printf("slept %lld us\n", (long long)(virtual_now - before) / kMicrosecond);
}

static void timeout_collect_interval(void) {
  new_loop();
  ev_set_timeout_collect_interval(loop, 0.0205);
  for (int i = 0; i < 8; i++) {
    start(i, 3.5 + 5 * i, 0);
  }
  for (int i = 0; i < 8; i++) {
    run(EVRUN_ONCE);
  }
}

static int collect_calls;

static void on_collect(struct ev_loop* of, ev_io* watcher, int revents) {
  (void)of;
  (void)watcher;
  (void)revents;
  collect_calls++;
}

static void io_collect_interval(void) {
  ev_io watcher;
  int fds[2];
  if (pipe(fds) != 0) {
    return;
  }
  new_loop();
  ev_set_io_collect_interval(loop, 0.01);
  ev_io_init(&watcher, on_collect, fds[1], EV_WRITE);
  ev_io_start(loop, &watcher);
  const int64_t before = virtual_now;
  for (int i = 0; i < 50; i++) {
    ev_run(loop, EVRUN_ONCE);
  }
  const double milliseconds = (double)(virtual_now - before) / 1e6;
  printf("%d calls, one in ten milliseconds or so: %d\n", collect_calls,
         milliseconds > 480 && milliseconds < 520);
}

// --- ev_once(). ---

static void on_once(int revents, void* argument) {
  printf("once %s revents %x now %.1f\n", (const char*)argument, (unsigned)revents,
         now_in_milliseconds());
}

static void once(void) {
  int fds[2];
  if (pipe(fds) != 0) {
    return;
  }
  new_loop();
  ev_once(loop, -1, 0, 0.005, on_once, "timer");
  ev_once(loop, -1, 0, 0., on_once, "timer at once");
  ev_once(loop, -1, 0, -1., on_once, "nothing");
  ev_once(loop, fds[1], EV_WRITE, -1., on_once, "write");
  ev_once(loop, fds[1], EV_WRITE, 0.009, on_once, "write or timer");
  ev_once(loop, fds[0], EV_READ, 0.01, on_once, "read or timer");
  ev_once(loop, fds[1], EV_READ | EV_WRITE, 0., on_once, "both at once");
  run(EVRUN_NOWAIT);
  for (int i = 0; i < 5; i++) {
    later(2.5);
  }
}

// Both happened: one call.
static void once_late(void) {
  int fds[2];
  if (pipe(fds) != 0) {
    return;
  }
  new_loop();
  ev_once(loop, fds[0], EV_READ, 0.005, on_once, "read and timer");
  run(EVRUN_NOWAIT);
  if (write(fds[1], "x", 1) != 1) {
    return;
  }
  later(8);
  later(8);
}

// --- Many periodics, some of which are stopped, wherever they are in the heap. ---

enum { kPeriodics = 60 };

static void on_numbered(struct ev_loop* of, ev_periodic* watcher, int revents) {
  (void)of;
  printf("periodic %d revents %x\n", (int)(intptr_t)watcher->data, (unsigned)revents);
}

static void start_numbered(ev_periodic* periodic, int number, double at) {
  ev_periodic_init(periodic, on_numbered, at, 0., NULL);
  periodic->data = (void*)(intptr_t)number;
  ev_periodic_start(loop, periodic);
}

static void periodics_stopped_in_between(void) {
  static ev_periodic numbered[kPeriodics];
  new_loop();
  const double now = floor(ev_now(loop));
  for (int i = 0; i < kPeriodics; i++) {
    start_numbered(&numbered[i], i, now + 1.0005 + random_below(1000) * 0.1 + i * 1e-3);
  }
  for (int round = 0; round < 20; round++) {
    ev_periodic_stop(loop, &numbered[random_below(kPeriodics)]);
    ev_periodic_stop(loop, &numbered[random_below(kPeriodics)]);
    later(5000.);
  }
}

// In the heap, the element that replaces the stopped one is due before those above it.
static void the_last_periodic_is_an_early_one(void) {
  static const int seconds[] = {1, 50, 2, 60, 70, 3, 20, 61, 62, 71, 72, 4};
  static ev_periodic numbered[12];
  new_loop();
  const double now = floor(ev_now(loop));
  for (int i = 0; i < 12; i++) start_numbered(&numbered[i], i, now + 0.0005 + seconds[i]);
  ev_periodic_stop(loop, &numbered[3]);
  later(10000.);
  later(80000.);
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"again without repeat", again_without_repeat},
      {"again with repeat", again_with_repeat},
      {"again of a zeroed watcher", again_of_a_zeroed_watcher},
      {"again in the callback", again_in_the_callback},
      {"remaining", remaining},
      {"one shot leaves", one_shot_leaves},
      {"start twice", start_twice},
      {"repeat catches up", repeat_catches_up},
      {"repeat does not drift", repeat_does_not_drift},
      {"repeat changed in callback", repeat_changed_in_callback},
      {"repeat by itself", repeat_by_itself},
      {"zero and negative", zero_and_negative},
      {"zero in the callback", zero_in_the_callback},
      {"due only when passed", due_only_when_passed},
      {"far away", far_away},
      {"many in order", many_in_order},
      {"by priority then time", by_priority_then_time},
      {"stopped when due", stopped_when_due},
      {"now and update", now_and_update},
      {"suspend and resume", suspend_and_resume},
      {"sleeping", sleeping},
      {"timeout collect interval", timeout_collect_interval},
      {"io collect interval", io_collect_interval},
      {"once", once},
      {"once late", once_late},
      {"periodics stopped in between", periodics_stopped_in_between},
      {"the last periodic is an early one", the_last_periodic_is_an_early_one},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
