// Watchers of every kind in a program with a custom EV_COMMON: each is started, called, fed,
// cleared and stopped, and the program's members must not change.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kKinds = 13, kTurnsMax = 2000, kSpare = 0x5a };

static const char* const names[kKinds] = {"io",   "timer", "periodic", "signal", "child",
                                          "stat", "idle",  "prepare",  "check",  "embed",
                                          "fork", "async", "cleanup"};

static union ev_any_watcher watchers[kKinds];
static int calls[kKinds];
static char path[] = "/tmp/spate_members_XXXXXX";
static int pipe_fds[2];
static ev_timer inner_timer;

static ev_watcher* watcher_at(int i) { return (ev_watcher*)&watchers[i]; }

static void fail(int i, const char* what) {
  printf("%s: %s\n", names[i], what);
  exit(1);
}

static void on_inner(struct ev_loop* loop, ev_timer* timer, int revents) {
  (void)loop, (void)timer, (void)revents;
}

static void check(int i) {
  const ev_watcher* const watcher = watcher_at(i);
  if (watcher->first != -i - 1) fail(i, "the first member was written to");
  if (watcher->second != &calls[i]) fail(i, "the second member was written to");
  if (watcher->data != names[i]) fail(i, "data was written to");
  if (watcher->last != i + 0.5) fail(i, "the last member was written to");
}

static void on_event(struct ev_loop* loop, ev_watcher* watcher, int revents) {
  const int i = -watcher->first - 1;
  if (i < 0 || i >= kKinds || watcher != watcher_at(i)) {
    printf("called with something else than a watcher\n");
    exit(1);
  }
  check(i);
  if (revents != 0) calls[i]++;
  if (revents == EV_EMBED) ev_embed_sweep(loop, (ev_embed*)watcher);
}

static void fill(int i) {
  memset(&watchers[i], kSpare, sizeof watchers[i]);
  ev_watcher* const watcher = watcher_at(i);
  ev_init(watcher, on_event);
  watcher->first = -i - 1;
  watcher->second = &calls[i];
  watcher->data = (void*)(intptr_t)names[i];
  watcher->last = i + 0.5;
}

// In the order of their names; `what` is start or stop.
#define ALL(loop, what)                              \
  do {                                               \
    ev_io_##what(loop, &watchers[0].io);             \
    ev_timer_##what(loop, &watchers[1].timer);       \
    ev_periodic_##what(loop, &watchers[2].periodic); \
    ev_signal_##what(loop, &watchers[3].signal);     \
    ev_child_##what(loop, &watchers[4].child);       \
    ev_stat_##what(loop, &watchers[5].stat);         \
    ev_idle_##what(loop, &watchers[6].idle);         \
    ev_prepare_##what(loop, &watchers[7].prepare);   \
    ev_check_##what(loop, &watchers[8].check);       \
    ev_embed_##what(loop, &watchers[9].embed);       \
    ev_fork_##what(loop, &watchers[10].fork);        \
    ev_async_##what(loop, &watchers[11].async);      \
    ev_cleanup_##what(loop, &watchers[12].cleanup);  \
  } while (0)

static void set_all(struct ev_loop* inner) {
  ev_io_set(&watchers[0].io, pipe_fds[0], EV_READ);
  ev_timer_set(&watchers[1].timer, 0., 0.001);
  ev_periodic_set(&watchers[2].periodic, 0., 0.001, NULL);
  ev_signal_set(&watchers[3].signal, SIGUSR1);
  ev_child_set(&watchers[4].child, 0, 0);
  ev_stat_set(&watchers[5].stat, path, 0.);
  ev_set_priority(&watchers[6].idle, EV_MAXPRI);
  ev_embed_set(&watchers[9].embed, inner);
  ev_timer_init(&inner_timer, on_inner, 0., 0.05);
  ev_timer_start(inner, &inner_timer);
}

static void cause_all(struct ev_loop* loop) {
  if (write(pipe_fds[1], "x", 1) != 1) abort();
  raise(SIGUSR1);
  if (fork() == 0) _exit(3);
  if (truncate(path, 5) != 0) abort();
  ev_loop_fork(loop);
  ev_async_send(loop, &watchers[11].async);
}

static int uncalled(void) {
  for (int i = 0; i < kKinds - 1; i++) {
    if (calls[i] == 0) return i;
  }
  return -1;
}

static void on_once(int revents, void* argument) { *(int*)argument = revents; }

static void check_own_members(void) {
  if (watchers[0].io.fd != pipe_fds[0]) fail(0, "has another descriptor");
  if (watchers[1].timer.repeat != 0.001) fail(1, "has another interval");
  if (watchers[2].periodic.interval != 0.001) fail(2, "has another interval");
  if (WEXITSTATUS(watchers[4].child.rstatus) != 3) fail(4, "has no exit status");
  if (watchers[5].stat.attr.st_size != 5) fail(5, "has not the file's size");
}

// Called, and the call cancelled, without the loop.
static void feed_all(struct ev_loop* loop) {
  for (int i = 0; i < kKinds; i++) {
    ev_feed_event(loop, &watchers[i], EV_CUSTOM);
    if (ev_clear_pending(loop, &watchers[i]) != EV_CUSTOM) fail(i, "was not pending");
    const int before = calls[i];
    ev_feed_event(loop, &watchers[i], EV_CUSTOM);
    ev_invoke_pending(loop);
    if (calls[i] != before + 1) fail(i, "was fed and not called");
    check(i);
  }
}

int main(void) {
  if (mkstemp(path) < 0 || pipe(pipe_fds) != 0) abort();
  struct ev_loop* const loop = ev_default_loop(EVFLAG_NOENV);
  struct ev_loop* const inner = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
  if (spate_ev_signal_loop(SIGUSR1) != NULL) fail(3, "has a loop before it was started");
  for (int i = 0; i < kKinds; i++) fill(i);
  set_all(inner);
  ALL(loop, start);
  if (spate_ev_signal_loop(SIGUSR1) != loop) fail(3, "has no loop");
  if (spate_ev_signal_loop(-1) != NULL) fail(3, "of no number has a loop");
  for (int i = 0; i < kKinds; i++) check(i);
  cause_all(loop);
  int once = 0;
  ev_once(loop, pipe_fds[0], EV_READ, 5., on_once, &once);
  for (int turn = 0; uncalled() >= 0 || once == 0; turn++) {
    if (turn == kTurnsMax) {
      unlink(path);
      fail(uncalled() < 0 ? 0 : uncalled(), "is never called");
    }
    ev_run(loop, EVRUN_NOWAIT);
    usleep(1000);
  }
  unlink(path);
  if (once != EV_READ) fail(0, "was not once called with EV_READ");
  ev_timer_again(loop, &watchers[1].timer);
  ev_periodic_again(loop, &watchers[2].periodic);
  check_own_members();
  feed_all(loop);
  ev_verify(loop);
  ALL(loop, stop);
  for (int i = 0; i < kKinds; i++) {
    check(i);
    if (ev_is_active(&watchers[i]) || ev_is_pending(&watchers[i])) fail(i, "is not stopped");
  }
  if (spate_ev_signal_loop(SIGUSR1) != NULL) fail(3, "has a loop after it was stopped");
  ev_cleanup_start(loop, &watchers[kKinds - 1].cleanup);
  const int before = calls[kKinds - 1];
  ev_loop_destroy(inner);
  ev_loop_destroy(loop);
  if (calls[kKinds - 1] != before + 1) fail(kKinds - 1, "was not called at the end");
  check(kKinds - 1);
  return 0;
}
