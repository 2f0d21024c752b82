// Errors, set-up, and destruction. ev(3): "ERROR HANDLING", ev_loop_new, ev_default_loop,
// ev_loop_destroy, ev_set_allocator, ev_set_syserr_cb, "The special problem of files".
//
// An ev_io with a closed descriptor: ev(3) says that it is stopped and called with EV_ERROR.
// Debian's build of the original ends the program by an assertion in most cases. The test accepts
// either.

#include <sys/resource.h>
#include <sys/stat.h>

#include "libev_turns.h"

extern struct ev_loop* ev_default_loop_ptr;  // ev.h declares it only in a function.

static ev_io watchers[4];
static ev_timer timer;
static ev_async async;

static void on_io(struct ev_loop* of, ev_io* watcher, int revents) {
  (void)of;
  printf("io %d revents %x active %d\n", (int)(watcher - watchers), (unsigned)revents,
         ev_is_active(watcher) != 0);
  seen++;
}

static void on_timer(struct ev_loop* of, ev_timer* watcher, int revents) {
  (void)of;
  (void)watcher;
  printf("timer revents %x\n", (unsigned)revents);
  seen++;
}

static void on_async(struct ev_loop* of, ev_async* watcher, int revents) {
  (void)of;
  (void)watcher;
  printf("async revents %x\n", (unsigned)revents);
  seen++;
}

static void start(int number, int fd, int events) {
  ev_io_init(&watchers[number], on_io, fd, events);
  ev_io_start(loop, &watchers[number]);
}

// --- Files. ---

static void files_with(unsigned flags) {
  loop = ev_loop_new(EVFLAG_NOENV | flags);
  const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  start(0, fd, EV_READ);
  start(1, fd, EV_READ | EV_WRITE);
  turn();
  turn();
  ev_io_stop(loop, &watchers[1]);
  turn();
  ev_io_stop(loop, &watchers[0]);
  turn();
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  start(2, null, EV_READ | EV_WRITE);
  turn();
}

static void files(void) { files_with(0); }
static void files_with_poll(void) { files_with(EVBACKEND_POLL); }
static void files_with_select(void) { files_with(EVBACKEND_SELECT); }

static void file_beside_a_pipe(void) {
  int fds[2];
  new_loop();
  make_pipe(fds);
  start(0, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), EV_READ);
  ev_set_priority(&watchers[1], 1);
  ev_io_init(&watchers[1], on_io, fds[0], EV_READ);
  ev_set_priority(&watchers[1], 1);
  ev_io_start(loop, &watchers[1]);
  turn();
  put(fds[1]);
  turn();
  printf("waits for nothing: %d\n", ev_run(loop, EVRUN_ONCE));
}

// Closing a descriptor before stopping its watcher is an error of the program, but must not end it.
static void closed_while_watched(void) {
  int fds[2];
  new_loop();
  make_pair(fds);
  start(0, fds[0], EV_READ);
  turn();
  close(fds[0]);
  turn();
  ev_io_stop(loop, &watchers[0]);
  turn();
  printf("active %d\n", ev_is_active(&watchers[0]) != 0);
}

static void on_bad_number(struct ev_loop* of, ev_io* watcher, int revents) {
  (void)of;
  _exit((revents & EV_ERROR) != 0 && !ev_is_active(watcher) ? 2 : 0);
}

static void bad_number(void) {
  const pid_t pid = fork();
  if (pid == 0) {
    signal(SIGABRT, SIG_DFL);
    if (freopen("/dev/null", "w", stderr) == NULL) {
      _exit(0);
    }
    new_loop();
    ev_io_init(&watchers[0], on_bad_number, 77, EV_READ);
    ev_io_start(loop, &watchers[0]);
    ev_run(loop, EVRUN_NOWAIT);
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  printf("noticed: %d\n", WIFSIGNALED(status) || WEXITSTATUS(status) == 2);
}

static void on_signal(struct ev_loop* of, ev_signal* watcher, int revents) {
  (void)of;
  (void)watcher;
  (void)revents;
}

static void signal_numbers(void) {
  static const int numbers[] = {-1, 0, 1, 64, 65, 66, 1000};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
      signal(SIGABRT, SIG_DFL);
      if (freopen("/dev/null", "w", stderr) == NULL) {
        _exit(1);
      }
      new_loop();
      ev_signal watcher;
      ev_signal_init(&watcher, on_signal, numbers[i]);
      ev_signal_start(loop, &watcher);
      _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    printf("signal %d: %s\n", numbers[i], status == 0 ? "started" : "refused");
  }
}

// --- Backends and flags. ---

static void versions(void) {
  printf("version %d.%d\n", ev_version_major(), ev_version_minor());
  printf("supported %x recommended %x embeddable %x\n",
         ev_supported_backends() & (EVBACKEND_SELECT | EVBACKEND_POLL | EVBACKEND_EPOLL),
         ev_recommended_backends(), ev_embeddable_backends() & EVBACKEND_EPOLL);
}

static void backend_of(unsigned flags) {
  struct ev_loop* const made = ev_loop_new(flags);
  if (made == NULL) {
    printf("flags %x: none\n", flags);
    return;
  }
  printf("flags %x: backend %x iteration %u depth %u pending %u userdata %d default %d\n", flags,
         ev_backend(made), ev_iteration(made), ev_depth(made), ev_pending_count(made),
         ev_userdata(made) != NULL, ev_is_default_loop(made));
  ev_loop_destroy(made);
}

static void backends(void) {
  static const unsigned flags[] = {
      0,
      EVBACKEND_SELECT,
      EVBACKEND_POLL,
      EVBACKEND_EPOLL,
      EVBACKEND_SELECT | EVBACKEND_POLL,
      EVBACKEND_SELECT | EVBACKEND_EPOLL,
      EVBACKEND_KQUEUE,
      EVBACKEND_PORT,
      EVBACKEND_KQUEUE | EVBACKEND_POLL,
      EVFLAG_NOENV,
      EVFLAG_FORKCHECK | EVBACKEND_POLL,
      EVFLAG_NOINOTIFY | EVFLAG_SIGNALFD | EVFLAG_NOSIGMASK | EVFLAG_NOTIMERFD,
  };
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    backend_of(flags[i]);
  }
}

static void environment(void) {
  setenv("LIBEV_FLAGS", "2", 1);
  backend_of(0);
  backend_of(EVBACKEND_EPOLL);
  backend_of(EVFLAG_NOENV);
  backend_of(EVFLAG_NOENV | EVBACKEND_SELECT);
  setenv("LIBEV_FLAGS", "1", 1);
  backend_of(EVFLAG_FORKCHECK);
  setenv("LIBEV_FLAGS", "8", 1);
  backend_of(0);
  setenv("LIBEV_FLAGS", "nonsense", 1);
  backend_of(EVBACKEND_POLL);
  setenv("LIBEV_FLAGS", "", 1);
  backend_of(EVBACKEND_POLL);
}

static void userdata(void) {
  int value = 0;
  new_loop();
  ev_set_userdata(loop, &value);
  printf("%d\n", ev_userdata(loop) == &value);
  ev_set_userdata(loop, NULL);
  printf("%d\n", ev_userdata(loop) == NULL);
}

// --- The default loop. ---

static void default_loop(void) {
  printf("none yet: %d\n", ev_default_loop_ptr == NULL);
  loop = ev_default_loop(EVBACKEND_POLL);
  printf("made: %d %x\n", ev_default_loop_ptr == loop, ev_backend(loop));
  printf("the same: %d %x\n", ev_default_loop(EVBACKEND_SELECT) == loop, ev_backend(loop));
  printf("default %d, uc %d\n", ev_is_default_loop(loop), EV_DEFAULT_UC == loop);
  struct ev_loop* const other = ev_loop_new(0);
  printf("another: %d\n", ev_is_default_loop(other));
  ev_loop_destroy(other);
  ev_loop_destroy(loop);
  printf("destroyed: %d\n", ev_default_loop_ptr == NULL);
}

static void default_loop_again(void) {
  for (int i = 0; i < 3; i++) {
    loop = ev_default_loop(EVFLAG_NOENV);
    int fds[2];
    make_pair(fds);
    put(fds[1]);
    start(0, fds[0], EV_READ);
    ev_async_init(&async, on_async);
    ev_async_start(loop, &async);
    ev_async_send(loop, &async);
    run_until(2 * i + 2);
    ev_io_stop(loop, &watchers[0]);
    ev_async_stop(loop, &async);
    ev_loop_destroy(loop);
    close(fds[0]);
    close(fds[1]);
  }
}

static void default_loop_refused(void) {
  printf("none: %d\n", ev_default_loop(EVFLAG_NOENV | EVBACKEND_KQUEUE) == NULL);
  loop = ev_default_loop(EVFLAG_NOENV);
  printf("then one: %d\n", loop != NULL);
}

static void destroyed_with_everything(void) {
  int fds[2];
  new_loop();
  make_pair(fds);
  start(0, fds[0], EV_WRITE);
  ev_timer_init(&timer, on_timer, 1., 1.);
  ev_timer_start(loop, &timer);
  ev_async_init(&async, on_async);
  ev_async_start(loop, &async);
  turn();
  ev_loop_destroy(loop);
  printf("still open: %d\n", fcntl(fds[0], F_GETFD) >= 0);
}

// --- The allocator. ---

static long blocks;
static long allocations;

static void* count_blocks(void* block, long size) {
  if (size == 0) {
    blocks -= block != NULL;
    free(block);
    return NULL;
  }
  allocations++;
  blocks += block == NULL;
  return realloc(block, (size_t)size);
}

static void fill_a_loop(void) {
  static ev_timer timers[300];
  static ev_periodic periodics[100];
  static ev_idle idles[50];
  for (int i = 0; i < 300; i++) {
    ev_timer_init(&timers[i], on_timer, 100. + i, 0.);
    ev_timer_start(loop, &timers[i]);
  }
  for (int i = 0; i < 100; i++) {
    ev_periodic_init(&periodics[i], NULL, ev_now(loop) + 100. + i, 0., NULL);
    ev_periodic_start(loop, &periodics[i]);
  }
  for (int i = 0; i < 50; i++) {
    ev_idle_init(&idles[i], NULL);
    ev_idle_start(loop, &idles[i]);
    ev_feed_event(loop, &idles[i], EV_CUSTOM);
    ev_idle_stop(loop, &idles[i]);
  }
  ev_async_init(&async, on_async);
  ev_async_start(loop, &async);
}

static void allocator(void) {
  ev_set_allocator(count_blocks);
  for (int i = 0; i < 3; i++) {
    int fds[2];
    new_loop();
    fill_a_loop();
    make_pair(fds);
    start(0, fds[0], EV_WRITE);
    turn();
    ev_loop_fork(loop);
    turn();
    printf("uses it: %d %d\n", allocations > 0, blocks > 0);
    ev_loop_destroy(loop);
    close(fds[0]);
    close(fds[1]);
    printf("left: %ld\n", blocks);
  }
}

static void* never(void* block, long size) {
  if (size == 0) {
    free(block);
  }
  return NULL;
}

static void on_system_error(const char* message) {
  printf("system error: %d\n", message != NULL);
  fflush(stdout);
  _exit(4);
}

static void no_memory(void) {
  ev_set_syserr_cb(on_system_error);
  ev_set_allocator(never);
  // It may abort or return an error, but must not continue without memory.
  const pid_t pid = fork();
  if (pid == 0) {
    signal(SIGABRT, SIG_DFL);
    if (freopen("/dev/null", "w", stderr) == NULL) {
      _exit(1);
    }
    _exit(ev_loop_new(EVFLAG_NOENV) != NULL ? 1 : 0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  printf("noticed: %d\n", status != 0x100);
}

// --- System calls that fail. ---

// With no descriptor left, the original still creates a loop with poll; the drop-in needs one to
// wake the loop.
static void no_descriptors(void) {
  const struct rlimit none = {.rlim_cur = 3, .rlim_max = 1024};
  setrlimit(RLIMIT_NOFILE, &none);
  loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
  printf("epoll: %d\n", loop != NULL);
}

// The loop's descriptor was closed: no wait can succeed again.
static void closed_under_the_loop(void) {
  ev_set_syserr_cb(on_system_error);
  loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
  turn();
  for (int fd = 3; fd < 20; fd++) {
    close(fd);
  }
  ev_timer_init(&timer, on_timer, 0.01, 0.);
  ev_timer_start(loop, &timer);
  run_until(1);
}

static void broken_pipe(void) {
  int fds[2];
  new_loop();
  signal(SIGPIPE, SIG_IGN);
  make_pipe(fds);
  close(fds[0]);
  start(0, fds[1], EV_WRITE);
  turn();
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"files", files},
      {"files with poll", files_with_poll},
      {"files with select", files_with_select},
      {"file beside a pipe", file_beside_a_pipe},
      {"closed while watched", closed_while_watched},
      {"bad number", bad_number},
      {"signal numbers", signal_numbers},
      {"versions", versions},
      {"backends", backends},
      {"environment", environment},
      {"userdata", userdata},
      {"default loop", default_loop},
      {"default loop again", default_loop_again},
      {"default loop refused", default_loop_refused},
      {"destroyed with everything", destroyed_with_everything},
      {"allocator", allocator},
      {"no memory", no_memory},
      {"no descriptors", no_descriptors},
      {"closed under the loop", closed_under_the_loop},
      {"broken pipe", broken_pipe},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
