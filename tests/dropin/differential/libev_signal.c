// ev_signal. ev(3): ev_signal, ev_feed_signal, ev_feed_signal_event, EVFLAG_NOSIGMASK,
// EVFLAG_SIGNALFD.
//
// Not compared: whether a blocked signal is unblocked. The original does so with EVFLAG_NOSIGMASK
// only, where ev(3) says the opposite; the drop-in follows ev(3).

#include <sys/time.h>

#include "libev_turns.h"

enum { kWatchers = 6 };

static ev_signal watchers[kWatchers];
static int handled;

static void on_signal(struct ev_loop* of, ev_signal* watcher, int revents) {
  printf("signal watcher %d of %d revents %x in its loop %d\n", (int)(watcher - watchers),
         watcher->signum, (unsigned)revents, of == watcher->data);
  seen++;
}

static void start_in(struct ev_loop* of, int number, int signum) {
  ev_signal_init(&watchers[number], on_signal, signum);
  watchers[number].data = of;
  ev_signal_start(of, &watchers[number]);
}

static void start(int number, int signum) { start_in(loop, number, signum); }

static const char* disposition(int signum) {
  struct sigaction action;
  sigaction(signum, NULL, &action);
  return action.sa_handler == SIG_DFL   ? "default"
         : action.sa_handler == SIG_IGN ? "ignored"
                                        : "set";
}

static int is_blocked(int signum) {
  sigset_t mask;
  sigprocmask(SIG_BLOCK, NULL, &mask);
  return sigismember(&mask, signum);
}

static void coalesced(void) {
  new_loop();
  start(0, SIGUSR1);
  for (int i = 0; i < 3; i++) {
    raise(SIGUSR1);
  }
  turn();
  turn();
  raise(SIGUSR1);
  turn();
}

static void several_watchers(void) {
  new_loop();
  for (int i = 0; i < kWatchers; i++) {
    ev_signal_init(&watchers[i], on_signal, i % 2 == 0 ? SIGUSR1 : SIGUSR2);
    watchers[i].data = loop;
    ev_set_priority(&watchers[i], i / 2 - 1);
    ev_signal_start(loop, &watchers[i]);
  }
  raise(SIGUSR2);
  raise(SIGUSR1);
  turn();
  ev_signal_stop(loop, &watchers[0]);
  ev_signal_stop(loop, &watchers[3]);
  raise(SIGUSR1);
  raise(SIGUSR2);
  turn();
}

static void same_priority(void) {
  static const int numbers[kWatchers] = {SIGUSR2, SIGUSR1, SIGHUP, SIGUSR1, SIGUSR2, SIGHUP};
  new_loop();
  for (int i = 0; i < kWatchers; i++) {
    start(i, numbers[i]);
  }
  raise(SIGUSR2);
  raise(SIGHUP);
  raise(SIGUSR1);
  turn();
}

static void handle(int signum) {
  (void)signum;
  handled++;
}

static void disposition_after_stop(void) {
  new_loop();
  signal(SIGUSR1, handle);
  signal(SIGUSR2, SIG_IGN);
  printf("before: %s %s\n", disposition(SIGUSR1), disposition(SIGUSR2));
  start(0, SIGUSR1);
  start(1, SIGUSR1);
  start(2, SIGUSR2);
  struct sigaction action;
  sigaction(SIGUSR1, NULL, &action);
  printf("started: %s %s restarts calls %d\n", disposition(SIGUSR1), disposition(SIGUSR2),
         (action.sa_flags & SA_RESTART) != 0);
  ev_signal_stop(loop, &watchers[0]);
  ev_signal_stop(loop, &watchers[2]);
  printf("one of two stopped: %s; the last stopped: %s\n", disposition(SIGUSR1),
         disposition(SIGUSR2));
  ev_signal_stop(loop, &watchers[1]);
  printf("stopped: %s\n", disposition(SIGUSR1));
  start(0, SIGUSR1);
  raise(SIGUSR1);
  turn();
  printf("handled %d\n", handled);
}

static void fed(void) {
  new_loop();
  start(0, SIGUSR1);
  start(1, SIGUSR2);
  ev_feed_signal(SIGUSR1);
  ev_feed_signal(SIGUSR1);
  turn();
  ev_feed_signal_event(loop, SIGUSR2);
  printf("pending %u\n", ev_pending_count(loop));
  turn();
  ev_signal_stop(loop, &watchers[0]);
  ev_feed_signal(SIGUSR1);
  ev_feed_signal_event(loop, SIGUSR1);
  ev_feed_signal(SIGWINCH);
  ev_feed_signal_event(loop, SIGWINCH);
  turn();
}

static void on_stop_others(struct ev_loop* of, ev_signal* watcher, int revents) {
  on_signal(of, watcher, revents);
  for (int i = 0; i < kWatchers; i++) {
    ev_signal_stop(of, &watchers[i]);
  }
}

static void stopped_in_the_callback(void) {
  new_loop();
  for (int i = 0; i < kWatchers; i++) {
    start(i, SIGUSR1);
    if (i % 3 == 1) {
      ev_set_cb(&watchers[i], on_stop_others);
    }
  }
  raise(SIGUSR1);
  turn();
  printf("%s\n", disposition(SIGUSR1));
}

static void stopped_before_the_turn(void) {
  new_loop();
  start(0, SIGUSR1);
  start(1, SIGUSR1);
  raise(SIGUSR1);
  ev_signal_stop(loop, &watchers[0]);
  turn();
  raise(SIGUSR1);
  ev_signal_stop(loop, &watchers[1]);
  turn();
}

static void on_raise(struct ev_loop* of, ev_signal* watcher, int revents) {
  on_signal(of, watcher, revents);
  if (seen < 4) {
    raise(watcher->signum);
  }
}

static void raised_in_the_callback(void) {
  new_loop();
  start(0, SIGUSR1);
  ev_set_cb(&watchers[0], on_raise);
  raise(SIGUSR1);
  for (int i = 0; i < 6; i++) {
    turn();
  }
}

static void two_loops(void) {
  new_loop();
  struct ev_loop* const other = ev_loop_new(0);
  start_in(loop, 0, SIGUSR1);
  start_in(other, 1, SIGUSR2);
  raise(SIGUSR2);
  raise(SIGUSR1);
  turn();
  printf("other: %d\n", ev_run(other, EVRUN_NOWAIT));
  ev_signal_stop(loop, &watchers[0]);
  start_in(other, 2, SIGUSR1);
  raise(SIGUSR1);
  turn();
  printf("other: %d\n", ev_run(other, EVRUN_NOWAIT));
}

static void ends_the_wait(void) {
  new_loop();
  start(0, SIGALRM);
  const struct itimerval soon = {.it_value = {.tv_sec = 0, .tv_usec = 20000}};
  setitimer(ITIMER_REAL, &soon, NULL);
  run_until(1);
}

// A signal without a watcher: its handler runs, and the loop continues to wait.
static void not_ours(void) {
  new_loop();
  signal(SIGALRM, handle);
  const struct itimerval soon = {.it_value = {.tv_sec = 0, .tv_usec = 10000},
                                 .it_interval = {.tv_sec = 0, .tv_usec = 10000}};
  setitimer(ITIMER_REAL, &soon, NULL);
  const ev_tstamp before = ev_time();
  run_for(0.1);
  printf("handled %d waited %d\n", handled >= 3, ev_time() - before > 0.09);
}

static void with_signalfd(void) {
  loop = ev_loop_new(EVFLAG_SIGNALFD);
  start(0, SIGUSR1);
  start(1, SIGUSR2);
  raise(SIGUSR1);
  raise(SIGUSR1);
  run_until(1);
  raise(SIGUSR2);
  run_until(2);
  ev_signal_stop(loop, &watchers[0]);
  ev_signal_stop(loop, &watchers[1]);
  printf("stopped: %s %d\n", disposition(SIGUSR1), is_blocked(SIGUSR1));
}

static void real_time_signals(void) {
  new_loop();
  start(0, SIGRTMIN);
  start(1, SIGRTMAX);
  raise(SIGRTMAX);
  raise(SIGRTMIN);
  turn();
}

static void after_destroy(void) {
  new_loop();
  start(0, SIGUSR1);
  ev_signal_stop(loop, &watchers[0]);
  ev_loop_destroy(loop);
  new_loop();
  start(0, SIGUSR1);
  raise(SIGUSR1);
  turn();
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"coalesced", coalesced},
      {"several watchers", several_watchers},
      {"same priority", same_priority},
      {"disposition after stop", disposition_after_stop},
      {"fed", fed},
      {"stopped in the callback", stopped_in_the_callback},
      {"stopped before the turn", stopped_before_the_turn},
      {"raised in the callback", raised_in_the_callback},
      {"two loops", two_loops},
      {"ends the wait", ends_the_wait},
      {"not ours", not_ours},
      {"with signalfd", with_signalfd},
      {"real-time signals", real_time_signals},
      {"after destroy", after_destroy},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
