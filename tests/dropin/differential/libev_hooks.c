// The watchers around a turn, and the ways to end it. ev(3): ev_prepare, ev_check, ev_idle,
// ev_cleanup, ev_async, ev_run, ev_break, ev_ref, ev_feed_event, ev_clear_pending,
// ev_invoke_pending.

#include <setjmp.h>

#include "libev_turns.h"

enum { kWatchers = 6 };

static ev_prepare prepares[kWatchers];
static ev_check checks[kWatchers];
static ev_idle idles[kWatchers];
static ev_cleanup cleanups[kWatchers];
static ev_async asyncs[kWatchers];
static ev_io ready;

static void say(struct ev_loop* of, const char* kind, long number, int revents) {
  printf("%s %ld revents %x depth %u iteration %u\n", kind, number, (unsigned)revents, ev_depth(of),
         ev_iteration(of));
  seen++;
}

static void on_prepare(struct ev_loop* of, ev_prepare* watcher, int revents) {
  say(of, "prepare", watcher - prepares, revents);
}

static void on_check(struct ev_loop* of, ev_check* watcher, int revents) {
  say(of, "check", watcher - checks, revents);
}

static void on_idle(struct ev_loop* of, ev_idle* watcher, int revents) {
  say(of, "idle", watcher - idles, revents);
}

static void on_cleanup(struct ev_loop* of, ev_cleanup* watcher, int revents) {
  say(of, "cleanup", watcher - cleanups, revents);
}

static void on_async(struct ev_loop* of, ev_async* watcher, int revents) {
  (void)of;
  printf("async %d revents %x sent %d\n", (int)(watcher - asyncs), (unsigned)revents,
         (int)ev_async_pending(watcher));
  seen++;
}

static void on_ready(struct ev_loop* of, ev_io* watcher, int revents) {
  (void)watcher;
  say(of, "io", 0, revents);
}

static void start_ready(int priority) {
  int fds[2];
  make_pair(fds);
  ev_io_init(&ready, on_ready, fds[0], EV_WRITE);
  ev_set_priority(&ready, priority);
  ev_io_start(loop, &ready);
}

static void start_idle(int number, int priority) {
  ev_idle_init(&idles[number], on_idle);
  ev_set_priority(&idles[number], priority);
  ev_idle_start(loop, &idles[number]);
}

static void around_a_turn(void) {
  new_loop();
  for (int i = 0; i < kWatchers; i++) {
    ev_prepare_init(&prepares[i], on_prepare);
    ev_set_priority(&prepares[i], i % 3 - 1);
    ev_prepare_start(loop, &prepares[i]);
    ev_check_init(&checks[i], on_check);
    ev_set_priority(&checks[i], i % 3 - 1);
    ev_check_start(loop, &checks[i]);
  }
  start_ready(0);
  turn();
  ev_prepare_stop(loop, &prepares[1]);
  ev_check_stop(loop, &checks[0]);
  turn();
  ev_prepare_start(loop, &prepares[1]);
  ev_check_start(loop, &checks[0]);
  turn();
}

static void idle_priorities(void) {
  new_loop();
  start_idle(0, -2);
  start_idle(1, 0);
  start_idle(2, 0);
  start_idle(3, 1);
  turn();
  ev_idle_stop(loop, &idles[3]);
  turn();
  start_ready(0);
  turn();
  ev_io_stop(loop, &ready);
  start_ready(-1);
  turn();
  ev_idle_stop(loop, &idles[1]);
  ev_idle_stop(loop, &idles[2]);
  turn();
  ev_io_stop(loop, &ready);
  start_ready(-2);
  turn();
  ev_io_stop(loop, &ready);
  turn();
}

static void on_idle_last(struct ev_loop* of, ev_idle* watcher, int revents) {
  on_idle(of, watcher, revents);
  if (seen >= 5) {
    ev_idle_stop(of, watcher);
  }
}

static void idle_until_done(void) {
  new_loop();
  ev_idle_init(&idles[0], on_idle_last);
  ev_idle_start(loop, &idles[0]);
  const int result = ev_run(loop, 0);
  printf("run: %d\n", result);
}

static void on_prepare_break(struct ev_loop* of, ev_prepare* watcher, int revents) {
  on_prepare(of, watcher, revents);
  ev_break(of, EVBREAK_ONE);
}

static void broken_before_the_wait(void) {
  new_loop();
  ev_prepare_init(&prepares[0], on_prepare_break);
  ev_prepare_start(loop, &prepares[0]);
  ev_check_init(&checks[0], on_check);
  ev_check_start(loop, &checks[0]);
  start_ready(0);
  const int result = ev_run(loop, 0);
  printf("run: %d iteration %u\n", result, ev_iteration(loop));
}

static void on_prepare_start(struct ev_loop* of, ev_prepare* watcher, int revents) {
  on_prepare(of, watcher, revents);
  if (!ev_is_active(&ready)) {
    start_ready(0);
  } else {
    ev_io_stop(of, &ready);
  }
}

static void started_before_the_wait(void) {
  new_loop();
  ev_prepare_init(&prepares[0], on_prepare_start);
  ev_prepare_start(loop, &prepares[0]);
  for (int i = 0; i < 4; i++) {
    turn();
  }
}

// --- Cleanup. ---

static void cleaning_up(void) {
  new_loop();
  for (int i = 0; i < kWatchers; i++) {
    ev_cleanup_init(&cleanups[i], on_cleanup);
    ev_set_priority(&cleanups[i], i % 3 - 1);
    ev_cleanup_start(loop, &cleanups[i]);
  }
  ev_cleanup_stop(loop, &cleanups[2]);
  turn();
  start_idle(0, 0);
  ev_feed_event(loop, &idles[0], EV_CUSTOM);
  ev_loop_destroy(loop);
}

// --- Async. ---

static void sending(void) {
  new_loop();
  for (int i = 0; i < kWatchers; i++) {
    ev_async_init(&asyncs[i], on_async);
    ev_async_start(loop, &asyncs[i]);
  }
  for (int i = 0; i < 3; i++) {
    ev_async_send(loop, &asyncs[3]);
    ev_async_send(loop, &asyncs[1]);
    printf("sent %d %d\n", (int)ev_async_pending(&asyncs[3]), (int)ev_async_pending(&asyncs[2]));
  }
  turn();
  turn();
  ev_async_send(loop, &asyncs[4]);
  ev_async_stop(loop, &asyncs[4]);
  turn();
  ev_async_start(loop, &asyncs[4]);
  printf("started again: sent %d\n", (int)ev_async_pending(&asyncs[4]));
  turn();
  ev_async_send(loop, &asyncs[4]);
  ev_async_send(loop, &asyncs[0]);
  turn();
}

static void on_async_again(struct ev_loop* of, ev_async* watcher, int revents) {
  on_async(of, watcher, revents);
  if (seen < 4) {
    ev_async_send(of, watcher);
  }
}

static void sending_in_the_callback(void) {
  new_loop();
  ev_async_init(&asyncs[0], on_async_again);
  ev_async_start(loop, &asyncs[0]);
  ev_async_send(loop, &asyncs[0]);
  for (int i = 0; i < 6; i++) {
    turn();
  }
}

static void on_alarm(int number) {
  (void)number;
  ev_async_send(loop, &asyncs[0]);
}

static void sending_from_a_handler(void) {
  new_loop();
  signal(SIGUSR1, on_alarm);
  ev_async_init(&asyncs[0], on_async);
  ev_async_start(loop, &asyncs[0]);
  raise(SIGUSR1);
  run_until(1);
  const pid_t child = fork();
  if (child == 0) {
    usleep(20000);
    kill(getppid(), SIGUSR1);
    _exit(0);
  }
  run_until(2);
  waitpid(child, NULL, 0);
}

// --- The queue. ---

static void feeding(void) {
  new_loop();
  for (int i = 0; i < kWatchers; i++) {
    ev_prepare_init(&prepares[i], on_prepare);
    ev_set_priority(&prepares[i], i % 3 - 1);
    ev_feed_event(loop, &prepares[i], EV_CUSTOM);
  }
  printf("pending %u\n", ev_pending_count(loop));
  ev_feed_event(loop, &prepares[2], EV_READ);
  ev_feed_event(loop, &prepares[2], EV_CUSTOM);
  printf("pending %u\n", ev_pending_count(loop));
  printf("cleared %x\n", (unsigned)ev_clear_pending(loop, &prepares[4]));
  printf("cleared %x\n", (unsigned)ev_clear_pending(loop, &prepares[4]));
  printf("pending %d %d\n", ev_is_pending(&prepares[4]) != 0, ev_is_pending(&prepares[5]) != 0);
  ev_prepare_stop(loop, &prepares[5]);
  printf("pending %d\n", ev_is_pending(&prepares[5]) != 0);
  ev_invoke_pending(loop);
  printf("pending %u\n", ev_pending_count(loop));
  ev_invoke(loop, &prepares[0], EV_CUSTOM | EV_READ);
  ev_feed_event(loop, &prepares[0], EV_CUSTOM);
  ev_invoke(loop, &prepares[0], EV_WRITE);
  turn();
}

static void on_feeding(struct ev_loop* of, ev_prepare* watcher, int revents) {
  on_prepare(of, watcher, revents);
  const long number = watcher - prepares;
  if (number + 2 < kWatchers) {
    ev_feed_event(of, &prepares[number + 1], EV_CUSTOM);
    ev_feed_event(of, &prepares[number + 2], EV_CUSTOM);
  }
}

static void feeding_in_the_callback(void) {
  new_loop();
  for (int i = 0; i < kWatchers; i++) {
    ev_prepare_init(&prepares[i], on_feeding);
    ev_set_priority(&prepares[i], i % 5 - 2);
  }
  ev_feed_event(loop, &prepares[0], EV_CUSTOM);
  turn();
}

static int invocations;

static void on_invoke(struct ev_loop* of) {
  invocations++;
  ev_invoke_pending(of);
}

static void nothing(struct ev_loop* of) { (void)of; }

static void invoking_by_hand(void) {
  new_loop();
  start_ready(0);
  ev_set_invoke_pending_cb(loop, nothing);
  turn();
  printf("pending %u\n", ev_pending_count(loop));
  ev_invoke_pending(loop);
  ev_set_invoke_pending_cb(loop, on_invoke);
  turn();
  printf("asked %d\n", invocations > 0);
  ev_set_invoke_pending_cb(loop, ev_invoke_pending);
  turn();
}

// --- How a run ends. ---

static void on_nested(struct ev_loop* of, ev_prepare* watcher, int revents) {
  const long number = watcher - prepares;
  on_prepare(of, watcher, revents);
  if (number + 1 < kWatchers) {
    ev_feed_event(of, &prepares[number + 1], EV_CUSTOM);
    ev_run(of, number % 2 == 0 ? EVRUN_NOWAIT : EVRUN_ONCE);
    printf("left %ld at depth %u\n", number, ev_depth(of));
  } else {
    ev_break(of, *(int*)watcher->data);
  }
}

static void nested(int how) {
  new_loop();
  start_idle(0, 0);
  ev_set_cb(&idles[0], on_idle);
  for (int i = 0; i < kWatchers; i++) {
    ev_prepare_init(&prepares[i], on_nested);
    prepares[i].data = &how;
  }
  ev_feed_event(loop, &prepares[0], EV_CUSTOM);
  turn();
  turn();
}

static void nested_one(void) { nested(EVBREAK_ONE); }
static void nested_all(void) { nested(EVBREAK_ALL); }

static void on_break_all(struct ev_loop* of, ev_idle* watcher, int revents) {
  on_idle(of, watcher, revents);
  if (ev_depth(of) < 4) {
    ev_run(of, 0);
    printf("left at depth %u\n", ev_depth(of));
  } else {
    ev_break(of, *(int*)watcher->data);
  }
  if (seen > 12) {
    ev_idle_stop(of, watcher);
  }
}

static void run_in_run(int how) {
  new_loop();
  ev_idle_init(&idles[0], on_break_all);
  idles[0].data = &how;
  ev_idle_start(loop, &idles[0]);
  const int result = ev_run(loop, 0);
  printf("run: %d\n", result);
}

static void break_one(void) { run_in_run(EVBREAK_ONE); }
static void break_all(void) { run_in_run(EVBREAK_ALL); }

static void break_outside(void) {
  new_loop();
  start_idle(0, 0);
  ev_break(loop, EVBREAK_ALL);
  turn();
  ev_break(loop, EVBREAK_ONE);
  ev_idle_stop(loop, &idles[0]);
  const int result = ev_run(loop, 0);
  printf("run: %d\n", result);
}

static jmp_buf back;

static void on_jump(struct ev_loop* of, ev_idle* watcher, int revents) {
  on_idle(of, watcher, revents);
  longjmp(back, 1);
}

static void jumping_out(void) {
  new_loop();
  ev_idle_init(&idles[0], on_jump);
  ev_idle_start(loop, &idles[0]);
  start_idle(1, 0);
  for (volatile int i = 0; i < 3; i++) {
    if (setjmp(back) == 0) {
      ev_run(loop, 0);
    }
    printf("out at depth %u\n", ev_depth(loop));
  }
  ev_idle_stop(loop, &idles[0]);
  turn();
}

static void references(void) {
  new_loop();
  start_idle(0, 0);
  ev_unref(loop);
  printf("run: %d\n", ev_run(loop, 0));
  ev_ref(loop);
  turn();
  ev_idle_stop(loop, &idles[0]);
  ev_ref(loop);
  turn();
  ev_unref(loop);
  turn();
}

static void on_other_loop(struct ev_loop* of, ev_idle* watcher, int revents) {
  say(of, "other", watcher - idles, revents);
  ev_idle_stop(of, watcher);
}

static void on_two_loops(struct ev_loop* of, ev_idle* watcher, int revents) {
  on_idle(of, watcher, revents);
  ev_idle_stop(of, watcher);
  struct ev_loop* const other = ev_loop_new(0);
  ev_idle_init(&idles[1], on_other_loop);
  ev_idle_start(other, &idles[1]);
  printf("other run: %d, depths %u %u\n", ev_run(other, 0), ev_depth(of), ev_depth(other));
  ev_loop_destroy(other);
}

static void two_loops(void) {
  new_loop();
  ev_idle_init(&idles[0], on_two_loops);
  ev_idle_start(loop, &idles[0]);
  printf("run: %d\n", ev_run(loop, 0));
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"around a turn", around_a_turn},
      {"idle priorities", idle_priorities},
      {"idle until done", idle_until_done},
      {"broken before the wait", broken_before_the_wait},
      {"started before the wait", started_before_the_wait},
      {"cleaning up", cleaning_up},
      {"sending", sending},
      {"sending in the callback", sending_in_the_callback},
      {"sending from a handler", sending_from_a_handler},
      {"feeding", feeding},
      {"feeding in the callback", feeding_in_the_callback},
      {"invoking by hand", invoking_by_hand},
      {"nested, break one", nested_one},
      {"nested, break all", nested_all},
      {"run in run, break one", break_one},
      {"run in run, break all", break_all},
      {"break outside", break_outside},
      {"jumping out", jumping_out},
      {"references", references},
      {"two loops", two_loops},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
