// Stopping elements in the middle of the library's data structures, and the state afterwards: in
// lists, in tables, in the process. ev(3): the kinds of watchers, ev_loop_destroy.

#include <dirent.h>
#include <sys/wait.h>

#include "libev_turns.h"

enum { kWatchers = 6, kOwnFds = 40 };

static void on_watcher(ev_watcher* watcher, int revents) {
  printf("watcher %d revents %x\n", (int)(intptr_t)watcher->data, (unsigned)revents);
  seen++;
}

static void name_watcher(void* watcher, int number) {
  ((ev_watcher*)watcher)->data = (void*)(intptr_t)number;
}

// --- Children: several watchers of one child. ---

static ev_child child_watchers[kWatchers];

static void on_child(struct ev_loop* of, ev_child* watcher, int revents) {
  (void)of;
  on_watcher((ev_watcher*)watcher, revents);
}

static void one_child_without(int stopped) {
  loop = ev_default_loop(EVFLAG_NOENV);
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  for (int i = 0; i < kWatchers; i++) {
    ev_child_init(&child_watchers[i], on_child, pid, 0);
    name_watcher(&child_watchers[i], i);
    ev_child_start(loop, &child_watchers[i]);
  }
  ev_child_stop(loop, &child_watchers[stopped]);
  ev_child_stop(loop, &child_watchers[stopped]);
  seen = 0;
  run_until(kWatchers - 1);
  for (int i = 0; i < kWatchers; i++) ev_child_stop(loop, &child_watchers[i]);
}

static void children(void) {
  for (int i = 0; i < kWatchers; i++) {
    printf("without %d\n", i);
    one_child_without(i);
  }
}

// --- Paths: a watcher is stopped, and another takes its place. ---

static ev_stat stat_watchers[kWatchers];
static char directory[] = "/tmp/spate_leftovers_XXXXXX";

static char* path_of(int number) {
  static char path[kWatchers][64];
  sprintf(path[number], "%s/%d", directory, number);
  return path[number];
}

static void on_stat(struct ev_loop* of, ev_stat* watcher, int revents) {
  (void)of;
  on_watcher((ev_watcher*)watcher, revents);
}

static void paths(void) {
  if (mkdtemp(directory) == NULL) abort();
  new_loop();
  for (int i = 0; i < kWatchers; i++) {
    ev_stat_init(&stat_watchers[i], on_stat, path_of(i), 0.);
    name_watcher(&stat_watchers[i], i);
    ev_stat_start(loop, &stat_watchers[i]);
  }
  static const int stopped[] = {0, 5, 2, 1};
  for (int i = 0; i < 4; i++) {
    ev_stat_stop(loop, &stat_watchers[stopped[i]]);
    close(open(path_of(3 + i % 2), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    if (i < 2) run_until(i + 1);
  }
  for (int i = 0; i < kWatchers; i++) {
    ev_stat_stop(loop, &stat_watchers[i]);
    printf("active %d\n", ev_is_active(&stat_watchers[i]) != 0);
    unlink(path_of(i));
  }
  rmdir(directory);
  turn();
}

// --- Descriptors. ---

static int open_descriptors(void) {
  DIR* list = opendir("/proc/self/fd");
  int count = -1;  // The directory's own descriptor.
  for (; readdir(list) != NULL; count++) {
  }
  closedir(list);
  return count;
}

static ev_periodic periodic;

static void on_periodic(struct ev_loop* of, ev_periodic* watcher, int revents) {
  (void)of;
  on_watcher((ev_watcher*)watcher, revents);
}

static void a_loop_with_a_periodic(void) {
  new_loop();
  ev_periodic_init(&periodic, on_periodic, ev_now(loop) + 1000., 0., NULL);
  ev_periodic_start(loop, &periodic);
  ev_run(loop, EVRUN_NOWAIT);
}

static void descriptors_are_closed(void) {
  const int before = open_descriptors();
  for (int i = 0; i < 5; i++) {
    a_loop_with_a_periodic();
    ev_periodic_stop(loop, &periodic);
    ev_loop_destroy(loop);
    a_loop_with_a_periodic();
    ev_loop_destroy(loop);
  }
  printf("left open: %d\n", open_descriptors() - before);
}

static void own_descriptors_are_fed(void) {
  a_loop_with_a_periodic();
  for (int fd = 3; fd < kOwnFds; fd++) ev_feed_fd_event(loop, fd, EV_READ | EV_WRITE);
  turn();
  turn();
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"children", children},
      {"paths", paths},
      {"descriptors are closed", descriptors_are_closed},
      {"own descriptors are fed", own_descriptors_are_fed},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
