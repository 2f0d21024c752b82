// fork(): after event_reinit() the child has its own events, and the parent's are unaffected by it;
// a child that does not use its base changes nothing. Each step waits for the one before it, so
// that only one process prints at a time.
//
// differential settings: debug,locks
#include <pthread.h>
#include <sys/wait.h>

#include "libevent_cases.h"

static void on_end_of_child(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  show_hex("the child ended with", status);
}

// Runs `inside` in a child, and waits for its end.
static void in_child(void (*inside)(struct event_base*), struct event_base* base) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    printf("child\n");
    inside(base);
    fflush(stdout);
    _exit(0);
  }
  on_end_of_child(child);
  printf("parent\n");
}

static void say_drain(Subject* self, evutil_socket_t fd, short what) {
  (void)self;
  if (what & EV_READ) show("  read", drain(fd));
}

// A watcher of each kind.
static int pairs[3][2];
static Subject reader = {"reader", NULL, say_drain, 0};
static Subject writer = {"writer", NULL, NULL, 0};
static Subject quiet = {"quiet", NULL, say_drain, 0};
static Subject by_signal = {"signal", NULL, NULL, 0};
static Subject timer = {"timer", NULL, NULL, 0};
static Subject user = {"user", NULL, NULL, 0};

static struct event_base* open_world(int method, int flags) {
  event_set_log_callback(on_log);
  struct event_base* base = base_with(method, flags);
  event_base_priority_init(base, 4);
  for (int i = 0; i < 3; i++) open_pair(pairs[i]);
  printf("%s\n", event_base_get_method(base));
  open_subject(&reader, base, pairs[0][0], EV_READ | EV_PERSIST);
  open_subject(&writer, base, pairs[1][0], EV_WRITE);
  open_subject(&quiet, base, pairs[2][0], EV_READ);
  open_subject(&by_signal, base, SIGUSR1, EV_SIGNAL | EV_PERSIST);
  open_subject(&timer, base, -1, EV_PERSIST);
  open_subject(&user, base, -1, 0);
  event_priority_set(reader.ev, 0);
  event_priority_set(writer.ev, 1);
  event_priority_set(by_signal.ev, 3);
  event_add(reader.ev, NULL);
  event_add(writer.ev, NULL);
  event_add(quiet.ev, NULL);
  event_add(by_signal.ev, NULL);
  return base;
}

static void close_world(struct event_base* base) {
  Subject* const all[] = {&reader, &writer, &quiet, &by_signal, &timer, &user};
  for (int i = 0; i < 6; i++) free_subject(all[i]);
  event_base_free(base);
  for (int i = 0; i < 3; i++) close_pair(pairs[i]);
}

static void use_world(struct event_base* base) {
  put(pairs[0][1], "abc");
  turn(base);
  put(pairs[2][1], "d");
  turn(base);
  raise(SIGUSR1);
  turn(base);
  add_in(timer.ev, 1000);
  show("loop", event_base_loop(base, EVLOOP_ONCE));
  event_del(timer.ev);
  event_active(user.ev, EV_TIMEOUT, 1);
  turn(base);
  turn(base);
}

static void reinit_and_use(struct event_base* base) {
  show("reinit", event_reinit(base));
  use_world(base);
  close_world(base);
}

static void a_child_with_events_of_its_own(void) {
  for (int method = 0; method < kMethods; method++) {
    struct event_base* base = open_world(method, 0);
    in_child(reinit_and_use, base);
    use_world(base);
    close_world(base);
  }
}

static void a_child_of_a_base_with_changes_to_tell(void) {
  struct event_base* base = open_world(0, EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
  in_child(reinit_and_use, base);
  use_world(base);
  close_world(base);
}

// A signal raised before the fork belongs to the parent.
static void reinit_and_look(struct event_base* base) {
  show("reinit", event_reinit(base));
  turn(base);
  raise(SIGUSR1);
  turn(base);
}

static void raised_before_the_fork(void) {
  for (int method = 0; method < kMethods; method++) {
    struct event_base* base = open_world(method, 0);
    raise(SIGUSR1);
    in_child(reinit_and_look, base);
    turn(base);
    raise(SIGUSR1);
    reinit_and_look(base);
    close_world(base);
  }
}

static void touch_nothing(struct event_base* base) { (void)base; }

static void a_child_that_touches_nothing(void) {
  for (int method = 0; method < kMethods; method++) {
    struct event_base* base = open_world(method, 0);
    turn(base);
    in_child(touch_nothing, base);
    use_world(base);
    close_world(base);
  }
}

// Deletions in the child do not affect the parent.
static void reinit_and_delete(struct event_base* base) {
  show("reinit", event_reinit(base));
  show("del", event_del(reader.ev));
  show("del", event_del(by_signal.ev));
  put(pairs[0][1], "z");
  turn(base);
  drain(pairs[0][0]);
  event_base_free(base);
}

static void a_child_that_deletes(void) {
  for (int method = 0; method < kMethods; method++) {
    struct event_base* base = open_world(method, 0);
    in_child(reinit_and_delete, base);
    use_world(base);
    close_world(base);
  }
}

static void raise_in_child(struct event_base* base) {
  show("reinit", event_reinit(base));
  raise(SIGUSR1);
  raise(SIGUSR1);
  turn(base);
  Subject another = {"another signal", NULL, NULL, 0};
  event_add(open_subject(&another, base, SIGUSR2, EV_SIGNAL | EV_PERSIST), NULL);
  raise(SIGUSR2);
  turn(base);
  event_del(by_signal.ev);
  raise(SIGUSR2);
  turn(base);
}

static void signals_stay_apart(void) {
  for (int method = 0; method < kMethods; method++) {
    struct event_base* base = open_world(method, 0);
    turn(base);
    in_child(raise_in_child, base);
    turn(base);
    raise(SIGUSR1);
    turn(base);
    in_child(raise_in_child, base);
    turn(base);
    close_world(base);
  }
}

// ---- inside a callback

static void fork_in_callback(Subject* self, evutil_socket_t fd, short what) {
  (void)what;
  struct event_base* base = event_get_base(self->ev);
  drain(fd);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    printf("child\n");
    show("reinit", event_reinit(base));
    put(pairs[2][1], "x");
    return;
  }
  on_end_of_child(child);
  printf("parent\n");
  drain(pairs[2][0]);
}

static void a_fork_inside_a_callback(void) {
  for (int method = 0; method < kMethods; method++) {
    const pid_t parent = getpid();
    struct event_base* base = open_world(method, 0);
    turn(base);
    reader.act = fork_in_callback;
    put(pairs[0][1], "x");
    turn(base);
    turn(base);
    if (getpid() != parent) {
      fflush(stdout);
      _exit(0);
    }
    put(pairs[2][1], "y");
    turn(base);
    close_world(base);
  }
}

// ---- reinit by itself

static void reinit_without_a_fork(void) {
  for (int method = 0; method < kMethods; method++) {
    struct event_base* base = open_world(method, 0);
    show("reinit", event_reinit(base));
    show("reinit", event_reinit(base));
    use_world(base);
    show("reinit", event_reinit(base));
    put(pairs[0][1], "q");
    turn(base);
    close_world(base);
  }
}

static void on_once(evutil_socket_t fd, short what, void* arg) {
  printf("  once %s what=%#x fd=%d\n", (const char*)arg, what, fd >= 0);
}

static void reinit_keeps_what_is_pending(void) {
  struct event_base* base = open_world(0, 0);
  event_base_once(base, -1, EV_TIMEOUT, on_once, "at once", NULL);
  event_base_once(base, pairs[0][0], EV_READ, on_once, "read", NULL);
  event_active(user.ev, EV_WRITE, 1);
  show("reinit", event_reinit(base));
  show_hex("user", event_pending(user.ev, 0xff, NULL));
  turn(base);
  put(pairs[0][1], "r");
  turn(base);
  close_world(base);
}

// No other event is ready when the timer is added, as it may expire before the next turn.
static void reinit_keeps_a_common_timeout(void) {
  struct event_base* base = open_world(0, 0);
  const struct timeval duration = micros(2000);
  turn(base);
  event_add(timer.ev, event_base_init_common_timeout(base, &duration));
  show("reinit", event_reinit(base));
  show_hex("timer", event_pending(timer.ev, 0xff, NULL));
  show("loop", event_base_loop(base, EVLOOP_ONCE));
  close_world(base);
}

static void reinit_with_a_closed_descriptor(void) {
  struct event_base* base = open_world(0, 0);
  close_pair(pairs[0]);
  show("reinit is refused", event_reinit(base) < 0);
  put(pairs[2][1], "x");
  event_del(writer.ev);
  turn(base);
  event_del(reader.ev);
  show("reinit", event_reinit(base));
  close_world(base);
}

// ---- with threads

static void* activate_user(void* base) {
  (void)base;
  event_active(user.ev, EV_WRITE, 1);
  return NULL;
}

// Sleeps until another thread wakes the loop, also in the child.
static void be_woken(struct event_base* base) {
  pthread_t thread;
  event_del(writer.ev);
  pthread_create(&thread, NULL, activate_user, base);
  show("loop", event_base_loop(base, EVLOOP_ONCE));
  pthread_join(thread, NULL);
}

static void reinit_and_be_woken(struct event_base* base) {
  show("reinit", event_reinit(base));
  be_woken(base);
  use_world(base);
  close_world(base);
}

static void a_child_with_threads(void) {
  evthread_use_pthreads();
  for (int method = 0; method < kMethods; method++) {
    struct event_base* base = open_world(method, 0);
    be_woken(base);
    in_child(reinit_and_be_woken, base);
    be_woken(base);
    use_world(base);
    close_world(base);
  }
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"raised before the fork", raised_before_the_fork},
      {"a child with events of its own", a_child_with_events_of_its_own},
      {"a child of a base with changes to tell", a_child_of_a_base_with_changes_to_tell},
      {"a child that touches nothing", a_child_that_touches_nothing},
      {"a child that deletes", a_child_that_deletes},
      {"signals stay apart", signals_stay_apart},
      {"a fork inside a callback", a_fork_inside_a_callback},
      {"a child with threads", a_child_with_threads},
      {"reinit without a fork", reinit_without_a_fork},
      {"reinit keeps what is pending", reinit_keeps_what_is_pending},
      {"reinit keeps a common timeout", reinit_keeps_a_common_timeout},
      {"reinit with a closed descriptor", reinit_with_a_closed_descriptor},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
