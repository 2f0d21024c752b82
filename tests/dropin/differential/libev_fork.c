// Loops that continue in a child process. ev(3): ev_loop_fork, ev_fork, EVFLAG_FORKCHECK, "The
// special problem of fork".

#include <sys/stat.h>
#include <sys/wait.h>

#include "libev_turns.h"

enum { kWatchers = 4 };

static ev_io readers[kWatchers];
static ev_fork forks[kWatchers];
static ev_prepare prepare;
static ev_check check;
static ev_timer timer;
static ev_signal sigusr1;
static ev_async async;
static ev_child grandchild;
static ev_stat stat_watcher;
static int pairs[kWatchers][2];

static void on_read(struct ev_loop* of, ev_io* watcher, int revents) {
  (void)of;
  printf("io %d revents %x\n", (int)(watcher - readers), (unsigned)revents);
  drain(watcher->fd);
  seen++;
}

static void on_fork(struct ev_loop* of, ev_fork* watcher, int revents) {
  printf("fork %d revents %x depth %u\n", (int)(watcher - forks), (unsigned)revents, ev_depth(of));
}

static void on_prepare(struct ev_loop* of, ev_prepare* watcher, int revents) {
  (void)of;
  (void)watcher;
  printf("prepare revents %x\n", (unsigned)revents);
}

static void on_check(struct ev_loop* of, ev_check* watcher, int revents) {
  (void)of;
  (void)watcher;
  printf("check revents %x\n", (unsigned)revents);
}

static void on_timer(struct ev_loop* of, ev_timer* watcher, int revents) {
  (void)of;
  (void)watcher;
  printf("timer revents %x\n", (unsigned)revents);
  seen++;
}

static void on_signal(struct ev_loop* of, ev_signal* watcher, int revents) {
  (void)of;
  (void)watcher;
  printf("signal revents %x\n", (unsigned)revents);
  seen++;
}

static void on_async(struct ev_loop* of, ev_async* watcher, int revents) {
  (void)of;
  (void)watcher;
  printf("async revents %x\n", (unsigned)revents);
  seen++;
}

static void on_child(struct ev_loop* of, ev_child* watcher, int revents) {
  (void)of;
  printf("child revents %x status %d\n", (unsigned)revents, WEXITSTATUS(watcher->rstatus));
  seen++;
}

static void on_stat(struct ev_loop* of, ev_stat* watcher, int revents) {
  (void)of;
  printf("stat revents %x links %ld\n", (unsigned)revents, (long)watcher->attr.st_nlink);
  seen++;
}

// Runs it in a child process, and waits for its end.
static void in_child(void (*run)(void)) {
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    run();
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
  }
  printf("child ended %d\n", status);
}

static void start_readers(void) {
  for (int i = 0; i < kWatchers; i++) {
    make_pair(pairs[i]);
    ev_io_init(&readers[i], on_read, pairs[i][0], EV_READ);
    ev_io_start(loop, &readers[i]);
  }
}

static void start_forks(void) {
  for (int i = 0; i < kWatchers; i++) {
    ev_fork_init(&forks[i], on_fork);
    ev_set_priority(&forks[i], i % 2);
    ev_fork_start(loop, &forks[i]);
  }
}

static void start_hooks(void) {
  start_forks();
  ev_prepare_init(&prepare, on_prepare);
  ev_prepare_start(loop, &prepare);
  ev_check_init(&check, on_check);
  ev_check_start(loop, &check);
}

static void read_in_turns(const char* who) {
  for (int i = 0; i < 2; i++) {
    printf("%s\n", who);
    put(pairs[i][1]);
    turn();
  }
}

// --- Forks announced with ev_loop_fork(). ---

static void told_child(void) {
  ev_loop_fork(loop);
  read_in_turns("in the child");
}

static void told(void) {
  new_loop();
  start_readers();
  start_hooks();
  turn();
  in_child(told_child);
  read_in_turns("in the parent");
}

static void told_many_times(void) {
  new_loop();
  start_hooks();
  for (int i = 0; i < 3; i++) {
    ev_loop_fork(loop);
  }
  turn();
  turn();
  ev_fork_stop(loop, &forks[1]);
  ev_loop_fork(loop);
  turn();
}

static void on_fork_changes(struct ev_loop* of, ev_fork* watcher, int revents) {
  on_fork(of, watcher, revents);
  ev_fork_stop(of, watcher);
  ev_fork_start(of, &forks[3]);
  put(pairs[0][1]);
}

static void changes_in_the_callback(void) {
  new_loop();
  start_readers();
  start_forks();
  ev_fork_stop(loop, &forks[3]);
  ev_set_cb(&forks[0], on_fork_changes);
  ev_loop_fork(loop);
  turn();
  ev_loop_fork(loop);
  turn();
}

// --- Forks that the loop detects. ---

static void checked_child(void) { read_in_turns("in the child"); }

static void checked_grandparent(void) {
  read_in_turns("in the child");
  in_child(checked_child);
  read_in_turns("in the child again");
}

static void checked(void) {
  loop = ev_loop_new(EVFLAG_NOENV | EVFLAG_FORKCHECK);
  start_readers();
  start_forks();
  turn();
  in_child(checked_grandparent);
  read_in_turns("in the parent");
}

// poll has no state in the kernel that a child would share.
static void untold_child(void) { read_in_turns("in the child"); }

static void untold_with_poll(void) {
  loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_POLL);
  start_readers();
  start_forks();
  turn();
  in_child(untold_child);
  read_in_turns("in the parent");
}

// --- Children that do not use the parent's loop. ---

static void new_loop_child(void) {
  new_loop();
  start_readers();
  read_in_turns("in the child");
}

static void child_makes_its_own(void) {
  new_loop();
  start_readers();
  turn();
  in_child(new_loop_child);
  read_in_turns("in the parent");
}

static void destroying_child(void) {
  for (int i = 0; i < kWatchers; i++) {
    ev_io_stop(loop, &readers[i]);
    close(pairs[i][0]);
  }
  ev_loop_destroy(loop);
}

static void child_destroys(void) {
  new_loop();
  start_readers();
  start_forks();
  turn();
  in_child(destroying_child);
  read_in_turns("in the parent");
}

// --- Everything continues. ---

static void start_all(void) {
  start_readers();
  ev_timer_init(&timer, on_timer, 0.03, 0.);
  ev_timer_start(loop, &timer);
  ev_signal_init(&sigusr1, on_signal, SIGUSR1);
  ev_signal_start(loop, &sigusr1);
  ev_async_init(&async, on_async);
  ev_async_start(loop, &async);
}

static void daemon_child(void) {
  ev_loop_fork(loop);
  turn();
  put(pairs[0][1]);
  run_until(1);
  raise(SIGUSR1);
  run_until(2);
  ev_async_send(loop, &async);
  run_until(3);
  const pid_t pid = fork();
  if (pid == 0) {
    _exit(3);
  }
  ev_child_init(&grandchild, on_child, pid, 0);
  ev_child_start(loop, &grandchild);
  run_until(4);
}

static void as_a_daemon(void) {
  loop = ev_default_loop(EVFLAG_NOENV);
  start_all();
  ev_timer_stop(loop, &timer);
  turn();
  in_child(daemon_child);
}

// Parent and child must not receive each other's signals.
static void own_signals_child(void) {
  ev_loop_fork(loop);
  turn();
  raise(SIGUSR1);
  ev_async_send(loop, &async);
  run_until(2);
  turn();
}

static void own_signals(void) {
  new_loop();
  start_all();
  ev_timer_stop(loop, &timer);
  turn();
  in_child(own_signals_child);
  printf("in the parent\n");
  turn();
  raise(SIGUSR1);
  run_until(1);
}

// The signal is raised before the fork; parent and child both report it.
static void raised_before_child(void) {
  ev_loop_fork(loop);
  turn();
}

static void raised_before(void) {
  new_loop();
  start_all();
  ev_timer_stop(loop, &timer);
  raise(SIGUSR1);
  ev_async_send(loop, &async);
  in_child(raised_before_child);
  turn();
}

static void timers_child(void) {
  ev_loop_fork(loop);
  printf("active %d\n", ev_is_active(&timer) != 0);
  run_until(1);
}

static void timers(void) {
  new_loop();
  start_all();
  turn();
  in_child(timers_child);
  run_until(1);
}

static char path[64];

static void stat_child(void) {
  ev_loop_fork(loop);
  turn();
  unlink(path);
  run_until(1);
}

static void stats(void) {
  snprintf(path, sizeof path, "/tmp/spate_fork_XXXXXX");
  close(mkstemp(path));
  new_loop();
  ev_stat_init(&stat_watcher, on_stat, path, 0.);
  ev_stat_start(loop, &stat_watcher);
  turn();
  in_child(stat_child);
  run_until(1);
}

static struct ev_loop* inner;
static ev_embed embed;

static void embed_child(void) {
  ev_loop_fork(loop);
  turn();
  put(pairs[0][1]);
  run_until(1);
}

static void embedded(void) {
  inner = ev_loop_new(EVBACKEND_EPOLL);
  loop = inner;
  start_readers();
  start_forks();
  new_loop();
  ev_embed_init(&embed, NULL, inner);
  ev_embed_start(loop, &embed);
  turn();
  in_child(embed_child);
  printf("in the parent\n");
  put(pairs[0][1]);
  run_until(1);
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"told", told},
      {"told many times", told_many_times},
      {"changes in the callback", changes_in_the_callback},
      {"checked", checked},
      {"untold, with poll", untold_with_poll},
      {"child makes its own", child_makes_its_own},
      {"child destroys", child_destroys},
      {"as a daemon", as_a_daemon},
      {"own signals", own_signals},
      {"raised before", raised_before},
      {"timers", timers},
      {"stats", stats},
      {"embedded", embedded},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
