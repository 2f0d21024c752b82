// ev_child, which only the default loop supports. ev(3): ev_child.
//
// When several children end at once nothing is printed that depends on which came first.

#include <sys/wait.h>

#include "libev_turns.h"

enum { kWatchers = 6 };

static ev_child watchers[kWatchers];
static pid_t children[kWatchers];

static const char* name_of(pid_t pid) {
  static char name[16];
  for (int i = 0; i < kWatchers; i++) {
    if (children[i] == pid && pid != 0) {
      snprintf(name, sizeof name, "child %d", i);
      return name;
    }
  }
  return pid == 0 ? "any" : "unknown";
}

static void on_child(struct ev_loop* of, ev_child* watcher, int revents) {
  const int status = watcher->rstatus;
  printf("watcher %d revents %x of %s", (int)(watcher - watchers), (unsigned)revents,
         name_of(watcher->pid));
  printf(": %s", name_of(watcher->rpid));
  if (WIFEXITED(status)) {
    printf(" exited with %d\n", WEXITSTATUS(status));
  } else if (WIFSIGNALED(status)) {
    printf(" ended by %d\n", WTERMSIG(status));
  } else if (WIFSTOPPED(status)) {
    printf(" stopped by %d\n", WSTOPSIG(status));
  } else {
    printf(" continued %d\n", WIFCONTINUED(status) != 0);
  }
  printf("  active %d default loop %d priority %d\n", ev_is_active(watcher) != 0,
         of == ev_default_loop(0), ev_priority(watcher));
  seen++;
}

static void on_child_stop(struct ev_loop* of, ev_child* watcher, int revents) {
  on_child(of, watcher, revents);
  ev_child_stop(of, watcher);
}

// Starts a child that ends on request, by the end of a pipe or by a signal.
static int start_child(int number, int status) {
  int fds[2];
  make_pipe(fds);
  children[number] = fork();
  if (children[number] == 0) {
    char byte;
    for (int fd = 3; fd < 100; fd++) {  // Closes the other children's ends too.
      if (fd != fds[0]) {
        close(fd);
      }
    }
    fcntl(fds[0], F_SETFL, 0);
    signal(SIGTERM, SIG_DFL);
    while (read(fds[0], &byte, 1) < 0) {
    }
    _exit(status);
  }
  close(fds[0]);
  return fds[1];
}

static void watch(int number, pid_t pid, int trace) {
  ev_child_init(&watchers[number], on_child, pid, trace);
  ev_child_start(loop, &watchers[number]);
}

// Waits until it has ended, but leaves it a zombie.
static void await_end(int number) {
  siginfo_t information;
  while (waitid(P_PID, (id_t)children[number], &information, WEXITED | WNOWAIT) < 0) {
  }
}

static void exits(void) {
  loop = ev_default_loop(0);
  const int end = start_child(0, 7);
  watch(0, children[0], 0);
  turn();
  close(end);
  run_until(1);
  turn();
  printf("active %d\n", ev_is_active(&watchers[0]) != 0);
  ev_child_stop(loop, &watchers[0]);
  turn();
  printf("no zombie: %d\n", waitpid(children[0], NULL, WNOHANG) < 0 && errno == ECHILD);
}

static void killed(void) {
  loop = ev_default_loop(0);
  start_child(0, 0);
  watch(0, children[0], 0);
  kill(children[0], SIGTERM);
  run_until(1);
}

static void ends_before_it_is_watched(void) {
  loop = ev_default_loop(0);
  close(start_child(0, 3));
  await_end(0);
  watch(0, children[0], 0);
  run_until(1);
}

static void any(void) {
  loop = ev_default_loop(0);
  watch(0, 0, 0);
  for (int i = 1; i < 4; i++) {
    close(start_child(i, 10 + i));
    run_until(i);
  }
}

static unsigned called;

static void on_called(struct ev_loop* of, ev_child* watcher, int revents) {
  (void)of;
  (void)revents;
  called |= 1U << (watcher - watchers);
  printf("exited with %d\n", WEXITSTATUS(watcher->rstatus));
  seen++;
}

// Whether a watcher for any child or one for this child is called first depends on the process ID.
static void any_and_one(void) {
  loop = ev_default_loop(0);
  const int end = start_child(0, 5);
  for (int i = 0; i < 4; i++) {
    ev_child_init(&watchers[i], on_called, i % 2 == 0 ? 0 : children[0], 0);
    ev_child_start(loop, &watchers[i]);
  }
  close(end);
  run_until(4);
  printf("called %x\n", called);
}

static void traced(void) {
  loop = ev_default_loop(0);
  start_child(0, 5);
  watch(0, children[0], 1);
  watch(1, children[0], 0);
  kill(children[0], SIGSTOP);
  run_until(1);
  kill(children[0], SIGCONT);
  run_until(2);
  kill(children[0], SIGKILL);
  run_until(4);
}

static void any_traced(void) {
  loop = ev_default_loop(0);
  start_child(0, 5);
  watch(0, 0, 1);
  watch(1, 0, 0);
  kill(children[0], SIGSTOP);
  run_until(1);
  kill(children[0], SIGCONT);
  run_until(2);
  kill(children[0], SIGTERM);
  run_until(4);
}

static int statuses;

static void on_sum(struct ev_loop* of, ev_child* watcher, int revents) {
  (void)of;
  (void)revents;
  statuses |= 1 << WEXITSTATUS(watcher->rstatus);
  if (watcher->pid != watcher->rpid) {
    printf("another's\n");
  }
  seen++;
}

static void many_at_once(void) {
  int ends[kWatchers];
  loop = ev_default_loop(0);
  for (int i = 0; i < kWatchers; i++) {
    ends[i] = start_child(i, i);
  }
  for (int i = 0; i < kWatchers; i++) {
    ev_child_init(&watchers[i], on_sum, children[i], 0);
    ev_child_start(loop, &watchers[i]);
  }
  for (int i = 0; i < kWatchers; i++) {
    close(ends[i]);
  }
  for (int i = 0; i < kWatchers; i++) {
    await_end(i);
  }
  run_until(kWatchers);
  printf("statuses %x\n", (unsigned)statuses);
}

// A child without a watcher is reaped: the default loop reaps all children.
static void unwatched(void) {
  loop = ev_default_loop(0);
  const int end = start_child(0, 0);
  const int other = start_child(1, 1);
  watch(1, children[1], 0);
  close(end);
  await_end(0);
  turn();
  close(other);
  run_until(1);
  printf("no zombie: %d\n", waitpid(children[0], NULL, WNOHANG) < 0 && errno == ECHILD);
}

static void on_sigchld(struct ev_loop* of, ev_signal* watcher, int revents) {
  (void)of;
  (void)watcher;
  printf("SIGCHLD revents %x\n", (unsigned)revents);
}

static void beside_a_signal_watcher(void) {
  ev_signal sigchld;
  loop = ev_default_loop(0);
  ev_signal_init(&sigchld, on_sigchld, SIGCHLD);
  ev_signal_start(loop, &sigchld);
  const int end = start_child(0, 2);
  watch(0, children[0], 0);
  close(end);
  run_until(1);
  ev_signal_stop(loop, &sigchld);
  close(start_child(1, 4));
  watch(1, children[1], 0);
  run_until(2);
}

static void stopped_and_started(void) {
  loop = ev_default_loop(0);
  const int first = start_child(0, 1);
  const int second = start_child(1, 2);
  watch(0, children[0], 0);
  ev_child_stop(loop, &watchers[0]);
  ev_set_cb(&watchers[0], on_child_stop);
  ev_child_set(&watchers[0], children[1], 0);
  ev_child_start(loop, &watchers[0]);
  ev_child_start(loop, &watchers[0]);
  close(first);
  await_end(0);
  close(second);
  run_until(1);
  turn();
}

static void on_next(struct ev_loop* of, ev_child* watcher, int revents) {
  on_child_stop(of, watcher, revents);
  if (seen < 3) {
    const int end = start_child(seen, seen);
    ev_child_set(watcher, children[seen], 0);
    ev_child_start(of, watcher);
    close(end);
  }
}

static void one_after_the_other(void) {
  loop = ev_default_loop(0);
  const int end = start_child(0, 0);
  ev_child_init(&watchers[0], on_next, children[0], 0);
  ev_child_start(loop, &watchers[0]);
  close(end);
  run_until(3);
  turn();
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"exits", exits},
      {"killed", killed},
      {"ends before it is watched", ends_before_it_is_watched},
      {"any", any},
      {"any and one", any_and_one},
      {"traced", traced},
      {"any traced", any_traced},
      {"many at once", many_at_once},
      {"unwatched", unwatched},
      {"beside a signal watcher", beside_a_signal_watcher},
      {"stopped and started", stopped_and_started},
      {"one after the other", one_after_the_other},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
