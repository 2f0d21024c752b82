// Signals: how often a callback is called, which others are called, the restored handler, and the
// base that receives a signal. On the clock of virtual_steps.h, where a signal interrupts an
// infinite wait.
#include <sys/wait.h>

#include "libevent_cases.h"
#include "virtual_steps.h"

static struct event_base* running_base;
static int number_to_raise;

static void raise_or_break(void) {
  if (number_to_raise) {
    printf("  raised while it waits\n");
    raise(number_to_raise);
    number_to_raise = 0;
  } else {
    printf("  nothing left to wait for\n");
    event_base_loopbreak(running_base);
  }
}

static struct event_base* open_base(void) {
  event_set_log_callback(on_log);
  running_base = event_base_new();
  return running_base;
}

static void raise_times(int number, int times) {
  for (int i = 0; i < times; i++) raise(number);
}

static void loop_with(struct event_base* base, int flags) {
  running_base = base;
  const int value = event_base_loop(base, flags);
  printf("loop with %d: %d, break %d\n", flags, value, event_base_got_break(base));
}

static void each_raise_is_a_call(void) {
  static const short kinds[] = {EV_SIGNAL, EV_SIGNAL | EV_PERSIST};
  for (int i = 0; i < 2 * kMethods; i++) {
    struct event_base* base = running_base = base_with(i / 2, 0);
    Subject subject = {"subject", NULL, NULL, 0};
    show("add", event_add(open_subject(&subject, base, SIGUSR1, kinds[i % 2]), NULL));
    raise_times(SIGUSR1, 3);
    loop_with(base, EVLOOP_ONCE);
    show_hex("pending", event_pending(subject.ev, 0xff, NULL));
    show("signal", event_get_signal(subject.ev));
    if (event_pending(subject.ev, EV_SIGNAL, NULL)) raise_times(SIGUSR1, 2);
    loop_with(base, EVLOOP_NONBLOCK);
    free_subject(&subject);
    event_base_free(base);
  }
}

static void raised_while_it_waits(void) {
  for (int method = 0; method < kMethods; method++) {
    struct event_base* base = base_with(method, 0);
    Subject subject = {"subject", NULL, NULL, 0};
    event_add(open_subject(&subject, base, SIGUSR2, EV_SIGNAL | EV_PERSIST), NULL);
    number_to_raise = SIGUSR2;
    loop_with(base, EVLOOP_ONCE);
    free_subject(&subject);
    event_base_free(base);
  }
}

static void all_events_of_a_signal(void) {
  struct event_base* base = open_base();
  event_base_priority_init(base, 2);
  Subject subjects[4] = {{"a", 0, 0, 0}, {"b", 0, 0, 0}, {"c", 0, 0, 0}, {"other", 0, 0, 0}};
  for (int i = 0; i < 4; i++) {
    const int number = i < 3 ? SIGUSR1 : SIGUSR2;
    open_subject(&subjects[i], base, number, i % 2 ? EV_SIGNAL | EV_PERSIST : EV_SIGNAL);
    if (i == 1) event_priority_set(subjects[i].ev, 0);
    event_add(subjects[i].ev, NULL);
  }
  raise_times(SIGUSR1, 2);
  loop_with(base, EVLOOP_NONBLOCK);
  raise_times(SIGUSR1, 1);
  loop_with(base, EVLOOP_NONBLOCK);
  raise_times(SIGUSR2, 1);
  loop_with(base, EVLOOP_NONBLOCK);
  for (int i = 0; i < 4; i++) free_subject(&subjects[i]);
  event_base_free(base);
}

// ---- in the callback, while calls are left

static void del_self(Subject* self, evutil_socket_t fd, short what) {
  (void)fd, (void)what;
  if (self->calls == 2) show("  del", event_del(self->ev));
}

static void free_self(Subject* self, evutil_socket_t fd, short what) {
  (void)fd, (void)what;
  if (self->calls == 2) free_subject(self);
}

static void break_base(Subject* self, evutil_socket_t fd, short what) {
  (void)fd, (void)what;
  if (self->calls == 2) show("  break", event_base_loopbreak(event_get_base(self->ev)));
}

static void exit_base(Subject* self, evutil_socket_t fd, short what) {
  (void)fd, (void)what;
  if (self->calls == 2) show("  exit", event_base_loopexit(event_get_base(self->ev), NULL));
}

static void raise_again(Subject* self, evutil_socket_t fd, short what) {
  (void)what;
  if (self->calls < 3) raise_times(fd, 2);
}

static void acts_with_calls_left(void) {
  static void (*const acts[])(Subject*, evutil_socket_t, short) = {del_self, free_self, break_base,
                                                                   exit_base, raise_again};
  for (int i = 0; i < 10; i++) {
    struct event_base* base = open_base();
    Subject subject = {"subject", NULL, acts[i / 2], 0};
    Subject other = {"other", NULL, NULL, 0};
    const short kind = i % 2 ? EV_SIGNAL : EV_SIGNAL | EV_PERSIST;
    printf("act %d\n", i);
    event_add(open_subject(&other, base, SIGUSR1, EV_SIGNAL | EV_PERSIST), NULL);
    event_add(open_subject(&subject, base, SIGUSR1, kind), NULL);
    raise_times(SIGUSR1, 4);
    loop_with(base, EVLOOP_NONBLOCK);
    loop_with(base, EVLOOP_NONBLOCK);
    free_subject(&subject);
    free_subject(&other);
    event_base_free(base);
  }
}

static void activated_by_hand(void) {
  struct event_base* base = open_base();
  Subject subject = {"subject", NULL, NULL, 0};
  open_subject(&subject, base, SIGUSR1, EV_SIGNAL | EV_PERSIST);
  for (int added = 0; added < 2; added++) {
    for (short calls = 0; calls < 4; calls++) {
      printf("%d calls\n", calls);
      event_active(subject.ev, EV_SIGNAL, calls);
      loop_with(base, EVLOOP_NONBLOCK);
    }
    event_base_active_by_signal(base, SIGUSR1);
    event_base_active_by_signal(base, SIGUSR2);
    loop_with(base, EVLOOP_NONBLOCK);
    event_add(subject.ev, NULL);
  }
  free_subject(&subject);
  event_base_free(base);
}

static void signals_with_timeouts(void) {
  static const short kinds[] = {EV_SIGNAL, EV_SIGNAL | EV_PERSIST};
  for (int i = 0; i < 2; i++) {
    struct event_base* base = open_base();
    Subject subject = {"subject", NULL, NULL, 0};
    add_in(open_subject(&subject, base, SIGUSR1, kinds[i]), 300000);
    show_hex("pending", event_pending(subject.ev, 0xff, NULL));
    loop_with(base, EVLOOP_ONCE);
    show_hex("pending", event_pending(subject.ev, 0xff, NULL));
    add_in(subject.ev, 300000);
    raise_times(SIGUSR1, 1);
    loop_with(base, EVLOOP_ONCE);
    show_hex("pending", event_pending(subject.ev, 0xff, NULL));
    free_subject(&subject);
    event_base_free(base);
  }
}

// ---- the previous handler

static int handled;

static void old_handler(int number) {
  (void)number;
  handled++;
}

static void print_action(int number) {
  struct sigaction action;
  sigaction(number, NULL, &action);
  const char* who = action.sa_handler == SIG_DFL       ? "default"
                    : action.sa_handler == SIG_IGN     ? "ignored"
                    : action.sa_handler == old_handler ? "old"
                                                       : "library";
  printf("%d: %s, restart %d, nodefer %d, blocks USR2 %d\n", number, who,
         (action.sa_flags & SA_RESTART) != 0, (action.sa_flags & SA_NODEFER) != 0,
         sigismember(&action.sa_mask, SIGUSR2));
}

static void old_handlers_come_back(void) {
  struct sigaction old = {.sa_handler = old_handler, .sa_flags = SA_NODEFER};
  sigaddset(&old.sa_mask, SIGUSR2);
  sigaction(SIGUSR1, &old, NULL);
  signal(SIGHUP, SIG_IGN);
  struct event_base* base = open_base();
  static const int numbers[] = {SIGUSR1, SIGHUP, SIGURG};
  for (int i = 0; i < 3; i++) {
    Subject first = {"first", NULL, NULL, 0};
    Subject second = {"second", NULL, NULL, 0};
    print_action(numbers[i]);
    event_add(open_subject(&first, base, numbers[i], EV_SIGNAL), NULL);
    event_add(open_subject(&second, base, numbers[i], EV_SIGNAL | EV_PERSIST), NULL);
    print_action(numbers[i]);
    raise_times(numbers[i], 1);
    loop_with(base, EVLOOP_NONBLOCK);
    event_del(first.ev);
    print_action(numbers[i]);
    event_del(second.ev);
    print_action(numbers[i]);
    event_add(second.ev, NULL);
    free_subject(&first);
    free_subject(&second);
    print_action(numbers[i]);
  }
  raise_times(SIGUSR1, 2);
  show("handled", handled);
  event_base_free(base);
}

static void a_freed_base_gives_handlers_back(void) {
  struct event_base* base = open_base();
  struct event ev;
  signal(SIGUSR1, old_handler);
  event_assign(&ev, base, SIGUSR1, EV_SIGNAL | EV_PERSIST, on_subject, NULL);
  event_add(&ev, NULL);
  raise(SIGUSR1);
  print_action(SIGUSR1);
  event_base_free(base);
  print_action(SIGUSR1);
  raise(SIGUSR1);
  show("handled", handled);
}

// ---- two bases

static void one_base_after_the_other(void) {
  struct event_base* first = open_base();
  struct event_base* second = open_base();
  Subject a = {"a", NULL, NULL, 0};
  Subject b = {"b", NULL, NULL, 0};
  event_add(open_subject(&a, first, SIGUSR1, EV_SIGNAL | EV_PERSIST), NULL);
  raise(SIGUSR1);
  loop_with(first, EVLOOP_NONBLOCK);
  event_del(a.ev);
  event_add(open_subject(&b, second, SIGUSR1, EV_SIGNAL | EV_PERSIST), NULL);
  raise(SIGUSR1);
  loop_with(first, EVLOOP_NONBLOCK);
  loop_with(second, EVLOOP_NONBLOCK);
  event_del(b.ev);
  event_add(a.ev, NULL);
  raise(SIGUSR1);
  loop_with(second, EVLOOP_NONBLOCK);
  loop_with(first, EVLOOP_NONBLOCK);
  free_subject(&a);
  free_subject(&b);
  event_base_free(first);
  event_base_free(second);
}

static void ignore_log(int severity, const char* text) { (void)severity, (void)text; }

static void two_bases_at_once(void) {
  struct event_base* first = open_base();
  struct event_base* second = open_base();
  Subject a = {"a", NULL, NULL, 0};
  Subject b = {"b", NULL, NULL, 0};
  show("add", event_add(open_subject(&a, first, SIGUSR1, EV_SIGNAL | EV_PERSIST), NULL));
  show("add", event_add(open_subject(&b, second, SIGUSR2, EV_SIGNAL | EV_PERSIST), NULL));
  raise(SIGUSR2);
  loop_with(second, EVLOOP_NONBLOCK);
  event_del(b.ev);
  event_del(a.ev);
  event_set_log_callback(ignore_log);  // The original warns although one base has all signals.
  event_add(a.ev, NULL);
  raise(SIGUSR1);
  loop_with(first, EVLOOP_NONBLOCK);
  free_subject(&a);
  free_subject(&b);
  event_base_free(first);
  event_base_free(second);
}

// ---- children

static void reap(Subject* self, evutil_socket_t fd, short what) {
  (void)self, (void)fd, (void)what;
  int status = 0;
  while (waitpid(-1, &status, WNOHANG) > 0)
    printf("  a child ended with %d\n", WEXITSTATUS(status));
}

static pid_t child;

static void wait_for_child(void) {
  siginfo_t info;
  while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) != 0) {
  }
}

static void a_child_ends(void) {
  struct event_base* base = open_base();
  use_steps(wait_for_child);
  Subject subject = {"child", NULL, reap, 0};
  event_add(open_subject(&subject, base, SIGCHLD, EV_SIGNAL | EV_PERSIST), NULL);
  child = fork();
  if (child == 0) _exit(7);
  while (subject.calls == 0) event_base_loop(base, EVLOOP_ONCE);
  free_subject(&subject);
  event_base_free(base);
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"each raise is a call", each_raise_is_a_call},
      {"raised while it waits", raised_while_it_waits},
      {"all events of a signal", all_events_of_a_signal},
      {"acts with calls left", acts_with_calls_left},
      {"activated by hand", activated_by_hand},
      {"with timeouts", signals_with_timeouts},
      {"old handlers come back", old_handlers_come_back},
      {"a freed base gives handlers back", a_freed_base_gives_handlers_back},
      {"one base after the other", one_base_after_the_other},
      {"two bases at once", two_bases_at_once},
      {"a child ends", a_child_ends},
  };
  use_steps(raise_or_break);
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
