// Rejected calls, with their result, errno and message: descriptors that are closed, reused or do
// not support polling; bad signals, priorities and bases; misuse that debug mode detects.
//
// Left out, because the original crashes: a loop, a priority or a time of a NULL base, and a NULL
// event. Left out, because it is undefined: the order of the descriptors in one turn.
//
// differential settings: debug,locks,precise,poll
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "libevent_cases.h"

static void print_refusal(const char* what, int value) {
  const int error = errno;
  printf("%s: %d", what, value);
  if (value < 0) printf(", %s", error ? strerror(error) : "no errno");
  printf("\n");
  errno = 0;
}

static void print_state(const struct event* ev) {
  printf("pending %#x, flags %#x\n", event_pending(ev, 0xff, NULL), ev->ev_evcallback.evcb_flags);
}

// ---- descriptors

static void add_to_each(const char* what, int fd, short events) {
  for (int method = 0; method < kMethods; method++) {
    struct event_base* base = base_with(method, 0);
    Subject subject = {what, NULL, NULL, 0};
    printf("%s %s\n", kMethodNames[method], what);
    open_subject(&subject, base, fd, events);
    errno = 0;
    print_refusal("add", event_add(subject.ev, NULL));
    print_state(subject.ev);
    turn(base);
    print_refusal("del", event_del(subject.ev));
    print_refusal("add", add_in(subject.ev, 1000));
    print_state(subject.ev);
    print_refusal("del", event_del(subject.ev));
    free_subject(&subject);
    event_base_free(base);
  }
}

static int closed_number(void) {
  const int fd = dup(0);
  close(fd);
  return fd + 20;  // Above the numbers that the libraries open.
}

static void bad_numbers(void) {
  event_set_log_callback(on_log);
  struct event_base* base = base_with(0, 0);
  static const int numbers[] = {-1, -2, 999, 100000};
  for (int i = 0; i < 8; i++) {
    Subject subject = {"subject", NULL, NULL, 0};
    printf("fd %d\n", numbers[i / 2]);
    open_subject(&subject, base, numbers[i / 2], i % 2 ? EV_READ : EV_WRITE | EV_PERSIST);
    errno = 0;
    print_refusal("add", event_add(subject.ev, NULL));
    print_state(subject.ev);
    event_active(subject.ev, EV_READ, 1);
    event_base_active_by_fd(base, numbers[i / 2], EV_READ);
    turn(base);
    print_refusal("del", event_del(subject.ev));
    free_subject(&subject);
  }
  event_base_free(base);
}

// Numbers too large for any method. select() is not tested, since the original ends the program.
static void numbers_too_large(void) {
  event_set_log_callback(on_log);
  static const int numbers[] = {1 << 27, (1 << 28) + 1, INT_MAX / 2, INT_MAX - 1, INT_MAX};
  for (int method = 0; method < 2; method++) {
    struct event_base* base = base_with(method, 0);
    for (int i = 0; i < 5; i++) {
      Subject subject = {"subject", NULL, NULL, 0};
      printf("%s, fd %d\n", kMethodNames[method], numbers[i]);
      open_subject(&subject, base, numbers[i], EV_READ);
      show("add", event_add(subject.ev, NULL));
      show("add with a timeout", add_in(subject.ev, 1000));
      show_hex("pending", event_pending(subject.ev, 0xff, NULL));
      free_subject(&subject);
    }
    event_base_free(base);
  }
}

// select() alone does not report a bad number but fails as a whole, and so does the original's loop
// from then on; so it is left out.
static void closed_descriptors(void) {
  event_set_log_callback(on_log);
  for (int method = 0; method < 2; method++) {
    struct event_base* base = base_with(method, 0);
    Subject subject = {"subject", NULL, NULL, 0};
    printf("%s\n", kMethodNames[method]);
    open_subject(&subject, base, closed_number(), EV_READ);
    errno = 0;
    print_refusal("add", event_add(subject.ev, NULL));
    show_hex("pending", event_pending(subject.ev, 0xff, NULL));
    turn(base);
    print_refusal("add with a timeout", add_in(subject.ev, 1000));
    show_hex("pending", event_pending(subject.ev, 0xff, NULL));
    turn(base);
    print_refusal("del", event_del(subject.ev));
    turn(base);
    free_subject(&subject);
    event_base_free(base);
  }
}

static void files(void) {
  event_set_log_callback(on_log);
  char name[] = "/tmp/libevent_errors_XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  put(file, "text");
  lseek(file, 0, SEEK_SET);
  add_to_each("file to read", file, EV_READ);
  add_to_each("file to write", file, EV_WRITE);
  const int null = open("/dev/null", O_RDWR);
  add_to_each("null", null, EV_READ | EV_WRITE);
  const int directory = open("/", O_RDONLY | O_DIRECTORY);
  add_to_each("directory", directory, EV_READ);
}

static void say_drain(Subject* self, evutil_socket_t fd, short what) {
  (void)self;
  if (what & EV_READ) show("  read", drain(fd));
}

static void closed_while_added(int method) {
  struct event_base* base = base_with(method, 0);
  printf("%s\n", kMethodNames[method]);
  int pair[2];
  open_pair(pair);
  Subject subject = {"subject", NULL, say_drain, 0};
  add_in(open_subject(&subject, base, pair[0], EV_READ | EV_PERSIST), 1000000000);
  put(pair[1], "x");
  close(pair[0]);
  errno = 0;
  if (method == 0) turn(base);
  print_refusal("del", event_del(subject.ev));
  print_refusal("del again", event_del(subject.ev));
  print_state(subject.ev);
  turn(base);
  close(pair[1]);
  free_subject(&subject);
  event_base_free(base);
}

static void closed_later(void) {
  event_set_log_callback(on_log);
  for (int method = 0; method < kMethods; method++) closed_while_added(method);
}

// When the next call is made, the number names another file.
static void number_reused(int flags, int del_before_close) {
  struct event_base* base = base_with(0, flags);
  int first[2];
  int second[2];
  open_pair(first);
  Subject a = {"a", NULL, say_drain, 0};
  Subject b = {"b", NULL, say_drain, 0};
  printf("flags %#x, deleted first %d\n", flags, del_before_close);
  event_add(open_subject(&a, base, first[0], EV_READ | EV_PERSIST), NULL);
  turn(base);
  if (del_before_close) print_refusal("del", event_del(a.ev));
  close(first[0]);
  open_pair(second);
  const int fd = dup2(second[0], first[0]);
  show("same number", fd == first[0]);
  if (!del_before_close) print_refusal("del", event_del(a.ev));
  print_refusal("add", event_add(open_subject(&b, base, fd, EV_READ | EV_PERSIST), NULL));
  put(second[1], "x");
  turn(base);
  print_refusal("add", event_add(a.ev, NULL));
  put(second[1], "y");
  turn(base);
  free_subject(&a);
  free_subject(&b);
  event_base_free(base);
  close_pair(second);
  close(fd);
  close(first[1]);
}

static void numbers_reused(void) {
  event_set_log_callback(on_log);
  number_reused(0, 1);
  number_reused(0, 0);
  number_reused(EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST, 1);
}

// The file stays open under another number, so the kernel's set still contains it.
static void duplicates(void) {
  event_set_log_callback(on_log);
  for (int method = 0; method < kMethods; method++) {
    struct event_base* base = base_with(method, 0);
    int pair[2];
    open_pair(pair);
    const int copy = dup(pair[0]);
    Subject a = {"a", NULL, say_drain, 0};
    Subject b = {"b", NULL, say_drain, 0};
    printf("%s\n", kMethodNames[method]);
    event_add(open_subject(&a, base, pair[0], EV_READ | EV_PERSIST), NULL);
    event_add(open_subject(&b, base, copy, EV_WRITE), NULL);
    turn(base);
    put(pair[1], "x");
    turn(base);
    print_refusal("del", event_del(b.ev));
    close(copy);
    put(pair[1], "y");
    turn(base);
    free_subject(&a);
    free_subject(&b);
    event_base_free(base);
    close_pair(pair);
  }
}

static void no_descriptors_left(void) {
  event_set_log_callback(on_log);
  struct event_base* base = event_base_new();
  const struct rlimit none = {3, 3};
  struct rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  setrlimit(RLIMIT_NOFILE, &(struct rlimit){none.rlim_cur, before.rlim_max});
  Subject subject = {"subject", NULL, NULL, 0};
  Subject by_signal = {"signal", NULL, NULL, 0};
  show("timer", add_in(open_subject(&subject, base, -1, 0), 1000));
  show("signal", event_add(open_subject(&by_signal, base, SIGUSR1, EV_SIGNAL), NULL));
  show("loop", event_base_loop(base, EVLOOP_ONCE));
  setrlimit(RLIMIT_NOFILE, &before);
  free_subject(&subject);
  free_subject(&by_signal);
  event_base_free(base);
}

// ---- signals

static void bad_signals(void) {
  event_set_log_callback(on_log);
  struct event_base* base = event_base_new();
  static const int numbers[] = {0, -1, -5, 1000, 65, SIGKILL, SIGSTOP};
  for (int i = 0; i < 7; i++) {
    Subject subject = {"subject", NULL, NULL, 0};
    printf("signal %d\n", numbers[i]);
    if (!open_subject(&subject, base, numbers[i], EV_SIGNAL)) {
      printf("no event\n");
      continue;
    }
    errno = 0;
    print_refusal("add", event_add(subject.ev, NULL));
    print_state(subject.ev);
    print_refusal("add with a timeout", add_in(subject.ev, 1000));
    print_state(subject.ev);
    print_refusal("del", event_del(subject.ev));
    free_subject(&subject);
  }
  event_base_active_by_signal(base, 1000);
  event_base_active_by_signal(base, -1);
  event_base_free(base);
}

static void odd_kinds(void) {
  event_set_log_callback(on_log);
  struct event_base* base = event_base_new();
  static const short kinds[] = {EV_SIGNAL | EV_READ,
                                EV_SIGNAL | EV_WRITE | EV_PERSIST,
                                EV_SIGNAL | EV_CLOSED,
                                EV_SIGNAL | EV_ET,
                                EV_SIGNAL | EV_TIMEOUT,
                                EV_ET,
                                EV_PERSIST | EV_FINALIZE | EV_TIMEOUT};
  struct event ev;
  for (int i = 0; i < 7; i++) {
    show_hex("kind", kinds[i]);
    show("assign", event_assign(&ev, base, 5, kinds[i], on_subject, NULL));
    struct event* made = event_new(base, 5, kinds[i], on_subject, NULL);
    show("new", made != NULL);
    if (made) event_free(made);
  }
  event_base_free(base);
}

// ---- without a base

static void no_base(void) {
  event_set_log_callback(on_log);
  struct event ev;
  Subject subject = {"subject", &ev, NULL, 0};
  show("assign", event_assign(&ev, NULL, -1, 0, on_subject, &subject));
  show("base", event_get_base(&ev) != NULL);
  show("initialized", event_initialized(&ev));
  show("add", add_in(&ev, 1000));
  show("del", event_del(&ev));
  show("remove_timer", event_remove_timer(&ev));
  show("pending", event_pending(&ev, 0xff, NULL));
  event_active(&ev, EV_READ, 1);
  show("finalize", event_finalize(0, &ev, NULL));
  show("loopbreak", event_base_loopbreak(NULL));
  show("loopcontinue", event_base_loopcontinue(NULL));
}

// ---- debug mode

static struct event subject_memory;

static void add_unassigned(struct event_base* base) {
  (void)base;
  memset(&subject_memory, 0, sizeof subject_memory);
  show("add", event_add(&subject_memory, NULL));
}

static void del_unassigned(struct event_base* base) {
  (void)base;
  show("del", event_del(&subject_memory));
}

static void pending_unassigned(struct event_base* base) {
  (void)base;
  show("pending", event_pending(&subject_memory, EV_READ, NULL));
}

static void assign_added(struct event_base* base) {
  event_assign(&subject_memory, base, -1, 0, on_subject, NULL);
  add_in(&subject_memory, 1000000);
  show("assign", event_assign(&subject_memory, base, -1, 0, on_subject, NULL));
}

static void unassign_added(struct event_base* base) {
  event_assign(&subject_memory, base, -1, 0, on_subject, NULL);
  add_in(&subject_memory, 1000000);
  event_debug_unassign(&subject_memory);
}

static void add_after_unassign(struct event_base* base) {
  event_assign(&subject_memory, base, -1, 0, on_subject, NULL);
  event_debug_unassign(&subject_memory);
  show("add", add_in(&subject_memory, 1000000));
}

static void enable_too_late(struct event_base* base) {
  (void)base;
  event_enable_debug_mode();
}

static void mix_edge_and_level(struct event_base* base) {
  int pair[2];
  open_pair(pair);
  event_add(event_new(base, pair[0], EV_READ | EV_ET, on_subject, NULL), NULL);
  show("add", event_add(event_new(base, pair[0], EV_READ, on_subject, NULL), NULL));
}

static void assign_blocking(struct event_base* base) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return;
  Subject subject = {"subject", NULL, NULL, 0};
  show("new", open_subject(&subject, base, pair[0], EV_READ) != NULL);
}

static void proper_use(struct event_base* base) {
  Subject subject = {"subject", NULL, NULL, 0};
  open_subject(&subject, base, -1, 0);
  add_in(subject.ev, 1000);
  event_base_loop(base, EVLOOP_ONCE);
  free_subject(&subject);
  event_assign(&subject_memory, base, -1, 0, on_subject, &subject);
  event_debug_unassign(&subject_memory);
  event_assign(&subject_memory, base, -1, 0, on_subject, &subject);
  add_in(&subject_memory, 1000);
  event_base_loop(base, EVLOOP_ONCE);
  event_assign(&subject_memory, base, -1, 0, on_subject, &subject);
  event_debug_unassign(&subject_memory);
  event_base_free(base);
  libevent_global_shutdown();
}

// An event that was added when its base was freed does not count as added.
static void set_up_after_base(struct event_base* base) {
  int pair[2];
  open_pair(pair);
  static struct event memories[4];
  static const short kinds[] = {EV_READ, EV_TIMEOUT, EV_SIGNAL, EV_READ | EV_PERSIST};
  for (int i = 0; i < 4; i++) {
    const int fd = kinds[i] & EV_SIGNAL ? SIGUSR1 : kinds[i] & EV_READ ? pair[i / 2] : -1;
    event_assign(&memories[i], base, fd, kinds[i], on_subject, NULL);
    add_in(&memories[i], 1000000);
  }
  event_active(&memories[3], EV_READ, 1);
  event_base_free(base);
  base = event_base_new();
  for (int i = 0; i < 4; i++) {
    show("assign", event_assign(&memories[i], base, -1, 0, on_subject, NULL));
    show("add", add_in(&memories[i], 1000000));
    show("del", event_del(&memories[i]));
  }
  event_base_free(base);
}

static void on_finalized(struct event* ev, void* arg) {
  (void)ev;
  (void)arg;
  printf("  finalized\n");
}

// A finalized event may be deleted, freed, or assigned again.
static void free_finalized(struct event_base* base) {
  struct event* one = evtimer_new(base, on_subject, NULL);
  event_finalize(0, one, on_finalized);
  event_assign(&subject_memory, base, -1, 0, on_subject, NULL);
  event_finalize(0, &subject_memory, on_finalized);
  struct event* freed = evtimer_new(base, on_subject, NULL);
  event_free_finalize(0, freed, on_finalized);
  event_base_loop(base, EVLOOP_NONBLOCK);
  show("del", event_del(one));
  event_free(one);
  show("assign", event_assign(&subject_memory, base, -1, 0, on_subject, NULL));
  show("add", add_in(&subject_memory, 1000000));
}

static void on_fatal(int error) {
  printf("  fatal %d\n", error);
  fflush(stdout);
  _exit(9);
}

static void run_misuse(void (*misuse)(struct event_base*)) {
  for (int with_callback = 0; with_callback < 2; with_callback++) {
    printf("callback %d\n", with_callback);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGABRT, SIG_DFL);
      event_set_log_callback(on_log);
      if (with_callback) event_set_fatal_callback(on_fatal);
      event_enable_debug_mode();
      misuse(event_base_new());
      fflush(stdout);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    show_hex("ended with", status);
  }
}

static void debug_mode(void) {
  static void (*const misuses[])(struct event_base*) = {
      proper_use,         set_up_after_base,  free_finalized,     add_unassigned,
      del_unassigned,     pending_unassigned, assign_added,       unassign_added,
      add_after_unassign, enable_too_late,    mix_edge_and_level, assign_blocking};
  for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++) {
    printf("misuse %zu\n", i);
    run_misuse(misuses[i]);
  }
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"descriptors: bad numbers", bad_numbers},
      {"descriptors: numbers too large", numbers_too_large},
      {"descriptors: closed", closed_descriptors},
      {"descriptors: files", files},
      {"descriptors: closed later", closed_later},
      {"descriptors: numbers reused", numbers_reused},
      {"descriptors: duplicates", duplicates},
      {"descriptors: none left", no_descriptors_left},
      {"signals: bad numbers", bad_signals},
      {"kinds: odd ones", odd_kinds},
      {"no base", no_base},
      {"debug mode", debug_mode},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
