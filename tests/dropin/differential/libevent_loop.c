// The loop as a whole: its flags and results, leaving it, nested loops, events due at the same
// time, finalizers, listing events, the calls without a base. On the clock of virtual_steps.h.
//
// differential settings: debug,changelist,precise,poll,select
#include "libevent_cases.h"
#include "virtual_steps.h"

static struct event_base* running_base;

static void break_loop(void) {
  printf("  nothing left to wait for\n");
  event_base_loopbreak(running_base);
}

static struct event_base* open_base(void) {
  event_set_log_callback(on_log);
  running_base = event_base_new();
  return running_base;
}

static void loop_with(struct event_base* base, int flags) {
  const int64_t begin = micros_now();
  const int value = event_base_loop(base, flags);
  printf("loop with %d: %d, exit %d, break %d, %lld later\n", flags, value,
         event_base_got_exit(base), event_base_got_break(base), (long long)(micros_now() - begin));
}

// ---- flags and results

static void flags_and_what_there_is(void) {
  for (int flags = 0; flags < 8; flags++) {
    struct event_base* base = open_base();
    int pair[2];
    open_pair(pair);
    printf("nothing\n");
    loop_with(base, flags);
    Subject reader = {"reader", NULL, NULL, 0};
    Subject timer = {"timer", NULL, NULL, 0};
    Subject user = {"user", NULL, NULL, 0};
    event_add(open_subject(&reader, base, pair[0], EV_READ), NULL);
    printf("a descriptor that is not ready\n");
    loop_with(base, flags);
    printf("and a timer\n");
    add_in(open_subject(&timer, base, -1, 0), 300000);
    loop_with(base, flags);
    printf("and a ready one\n");
    put(pair[1], "x");
    loop_with(base, flags);
    printf("and an active one\n");
    event_active(open_subject(&user, base, -1, 0), EV_WRITE, 1);
    loop_with(base, flags);
    free_subject(&reader);
    free_subject(&timer);
    free_subject(&user);
    event_base_free(base);
    close_pair(pair);
  }
}

// ---- leaving

typedef enum Leave { kExit, kExitSoon, kBreak, kContinue, kExitTwice, kExitThenBreak } Leave;

static Leave leave;

static void leave_loop(Subject* self, evutil_socket_t fd, short what) {
  (void)fd, (void)what;
  if (self->calls > 1) return;
  struct event_base* base = event_get_base(self->ev);
  const struct timeval soon = micros(150000);
  if (leave == kBreak || leave == kExitThenBreak) show("  break", event_base_loopbreak(base));
  if (leave == kContinue) show("  continue", event_base_loopcontinue(base));
  if (leave == kExitSoon) show("  exit", event_base_loopexit(base, &soon));
  if (leave != kExit && leave != kExitTwice && leave != kExitThenBreak) return;
  show("  exit", event_base_loopexit(base, NULL));
  if (leave == kExitTwice) show("  exit", event_base_loopexit(base, &soon));
  printf("  got exit %d, break %d\n", event_base_got_exit(base), event_base_got_break(base));
}

static void leave_with_others_active(Leave how) {
  struct event_base* base = open_base();
  leave = how;
  printf("way %d\n", how);
  event_base_priority_init(base, 3);
  Subject subjects[5] = {{"urgent", 0, 0, 0},
                         {"leaves", 0, leave_loop, 0},
                         {"equal", 0, 0, 0},
                         {"low", 0, 0, 0},
                         {"timer", 0, 0, 0}};
  for (int i = 0; i < 4; i++) {
    open_subject(&subjects[i], base, -1, 0);
    event_priority_set(subjects[i].ev, i == 0 ? 0 : i == 3 ? 2 : 1);
    event_active(subjects[i].ev, EV_READ, 1);
  }
  add_in(open_subject(&subjects[4], base, -1, EV_PERSIST), 100000);
  for (int i = 0; i < 3; i++) {
    if (i == 2) event_del(subjects[4].ev);
    loop_with(base, i == 1 ? EVLOOP_ONCE : 0);
    if (i == 0 && (how == kContinue || how == kBreak)) event_base_loopexit(base, NULL);
  }
  for (int i = 0; i < 5; i++) free_subject(&subjects[i]);
  event_base_free(base);
}

static void ways_to_leave(void) {
  leave_with_others_active(kExit);
  leave_with_others_active(kExitSoon);
  leave_with_others_active(kBreak);
  leave_with_others_active(kExitTwice);
  leave_with_others_active(kExitThenBreak);
}

static void leave_with_timer_left(Subject* self, evutil_socket_t fd, short what) {
  leave_loop(self, fd, what);
  if (self->calls > 3) event_base_loopbreak(event_get_base(self->ev));
}

static void going_on(void) {
  struct event_base* base = open_base();
  leave = kContinue;
  event_base_priority_init(base, 2);
  int pair[2];
  open_pair(pair);
  put(pair[1], "x");
  Subject first = {"first", NULL, leave_with_timer_left, 0};
  Subject second = {"second", NULL, NULL, 0};
  Subject urgent = {"urgent", NULL, NULL, 0};
  event_active(open_subject(&first, base, -1, 0), EV_READ, 1);
  event_active(open_subject(&second, base, -1, 0), EV_READ, 1);
  open_subject(&urgent, base, pair[0], EV_READ);
  event_priority_set(urgent.ev, 0);
  event_add(urgent.ev, NULL);
  event_base_loopcontinue(base);
  loop_with(base, EVLOOP_NONBLOCK);
  free_subject(&first);
  free_subject(&second);
  free_subject(&urgent);
  event_base_free(base);
  close_pair(pair);
}

static void left_before_it_began(void) {
  struct event_base* base = open_base();
  const struct timeval soon = micros(200001);
  const struct timeval later = micros(400001);
  Subject timer = {"timer", NULL, NULL, 0};
  add_in(open_subject(&timer, base, -1, EV_PERSIST), 100000);
  printf("break\n");
  event_base_loopbreak(base);
  loop_with(base, EVLOOP_ONCE);
  printf("exit\n");
  event_base_loopexit(base, NULL);
  show("got exit", event_base_got_exit(base));
  loop_with(base, 0);
  printf("exit in a while, and another\n");
  event_base_loopexit(base, &later);
  event_base_loopexit(base, &soon);
  loop_with(base, 0);
  loop_with(base, 0);
  free_subject(&timer);
  event_base_free(base);
}

// ---- loops inside loops

static struct event_base* inner_base;

static void run_inner(Subject* self, evutil_socket_t fd, short what) {
  (void)fd, (void)what;
  printf("  the same base\n");
  loop_with(event_get_base(self->ev), EVLOOP_NONBLOCK);
  printf("  another base\n");
  loop_with(inner_base, 0);
}

static void loops_inside_loops(void) {
  struct event_base* base = open_base();
  inner_base = event_base_new();
  Subject outer = {"outer", NULL, run_inner, 0};
  Subject inner = {"inner", NULL, NULL, 0};
  add_in(open_subject(&outer, base, -1, 0), 100000);
  add_in(open_subject(&inner, inner_base, -1, 0), 200000);
  loop_with(base, 0);
  free_subject(&outer);
  free_subject(&inner);
  event_base_free(base);
  event_base_free(inner_base);
}

// ---- events of one time

static void on_once(evutil_socket_t fd, short what, void* arg) {
  printf("  once %s what=%#x fd=%d running=%d\n", (const char*)arg, what, fd >= 0,
         event_base_get_running_event(running_base) != NULL);
}

static void once(void) {
  struct event_base* base = open_base();
  int pair[2];
  open_pair(pair);
  const struct timeval soon = micros(300000);
  const struct timeval sooner = micros(200001);
  const struct timeval zero = {0, 0};
  show("signal", event_base_once(base, SIGUSR1, EV_SIGNAL, on_once, "no", NULL));
  show("persist", event_base_once(base, pair[0], EV_READ | EV_PERSIST, on_once, "no", NULL));
  show("nothing", event_base_once(base, -1, 0, on_once, "no", &soon));
  show("timeout", event_base_once(base, -1, EV_TIMEOUT, on_once, "timeout", &soon));
  show("at once", event_base_once(base, -1, EV_TIMEOUT, on_once, "at once", NULL));
  show("zero", event_base_once(base, -1, EV_TIMEOUT, on_once, "zero", &zero));
  show("read", event_base_once(base, pair[0], EV_READ, on_once, "read", NULL));
  show("read too", event_base_once(base, pair[0], EV_READ | EV_TIMEOUT, on_once, "late", &sooner));
  loop_with(base, EVLOOP_NONBLOCK);
  loop_with(base, EVLOOP_ONCE);
  put(pair[1], "x");
  loop_with(base, EVLOOP_ONCE);
  loop_with(base, 0);
  show("write", event_base_once(base, pair[0], EV_WRITE, on_once, "never called", NULL));
  event_base_free(base);
  close_pair(pair);
}

// ---- finalizers

static void on_finalized(struct event* ev, void* arg) {
  printf("  finalized %s\n", ((Subject*)arg)->name);
  show("  pending", event_pending(ev, 0xff, NULL));
}

static void finalize_self(Subject* self, evutil_socket_t fd, short what) {
  (void)fd, (void)what;
  show("  finalize", event_finalize(0, self->ev, on_finalized));
}

static void finalizers(void) {
  struct event_base* base = open_base();
  event_base_priority_init(base, 2);
  int pair[2];
  open_pair(pair);
  put(pair[1], "x");
  Subject subjects[4] = {
      {"idle", 0, 0, 0}, {"ready", 0, 0, 0}, {"active", 0, 0, 0}, {"itself", 0, finalize_self, 0}};
  struct event own;
  for (int i = 0; i < 4; i++) open_subject(&subjects[i], base, i == 1 ? pair[0] : -1, EV_READ);
  event_add(subjects[1].ev, NULL);
  event_active(subjects[2].ev, EV_READ, 1);
  event_active(subjects[3].ev, EV_READ, 1);
  event_priority_set(subjects[0].ev, 0);
  for (int i = 0; i < 3; i++) {
    show("finalize", event_finalize(0, subjects[i].ev, on_finalized));
    show_hex("flags", subjects[i].ev->ev_evcallback.evcb_flags);
    show_hex("pending", event_pending(subjects[i].ev, 0xff, NULL));
    show("add", add_in(subjects[i].ev, 1));
    event_active(subjects[i].ev, EV_WRITE, 1);
    show("del", event_del(subjects[i].ev));
  }
  loop_with(base, 0);
  for (int i = 0; i < 4; i++) show_hex("flags", subjects[i].ev->ev_evcallback.evcb_flags);
  Subject left = {"left", &own, NULL, 0};
  Subject freed = {"freed", NULL, NULL, 0};
  event_assign(&own, base, pair[0], EV_READ | EV_FINALIZE, on_subject, &left);
  event_add(&own, NULL);
  open_subject(&freed, base, pair[0], EV_READ);
  show("finalize", event_finalize(0, &own, on_finalized));
  show("free_finalize", event_free_finalize(0, freed.ev, on_finalized));
  printf("freeing the base\n");
  event_base_free(base);
  printf("freed\n");
  close_pair(pair);
}

static void freed_without_finalizers(void) {
  struct event_base* base = open_base();
  struct event own;
  Subject subject = {"subject", &own, NULL, 0};
  event_assign(&own, base, -1, 0, on_subject, &subject);
  event_finalize(0, &own, on_finalized);
  event_base_free_nofinalize(base);
  printf("freed\n");
}

// ---- listing events

static struct event* sought;

static int stop_at_sought(const struct event_base* base, const struct event* ev, void* arg) {
  ++*(int*)arg;
  return base == running_base && ev == sought ? 42 : 0;
}

static void each_event(void) {
  struct event_base* base = open_base();
  int pair[2];
  open_pair(pair);
  Subject subjects[4] = {{"0", 0, 0, 0}, {"1", 0, 0, 0}, {"2", 0, 0, 0}, {"3", 0, 0, 0}};
  add_in(open_subject(&subjects[0], base, pair[0], EV_READ), 1000000);
  add_in(open_subject(&subjects[1], base, -1, 0), 2000000);
  event_active(open_subject(&subjects[2], base, -1, 0), EV_READ, 1);
  open_subject(&subjects[3], base, -1, 0);
  int calls = 0;
  show("all", event_base_foreach_event(base, stop_at_sought, &calls));
  show("calls", calls);
  for (int i = 0; i < 4; i++) {
    sought = subjects[i].ev;
    show("sought", event_base_foreach_event(base, stop_at_sought, &calls));
  }
  show("active", event_base_get_num_events(base, EVENT_BASE_COUNT_ACTIVE));
  show("added", event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED));
  show("both", event_base_get_num_events(base, EVENT_BASE_COUNT_ACTIVE | EVENT_BASE_COUNT_ADDED));
  show("virtual", event_base_get_num_events(base, EVENT_BASE_COUNT_VIRTUAL));
  show("none", event_base_get_num_events(base, 0));
  event_del(subjects[0].ev);
  show("most added", event_base_get_max_events(base, EVENT_BASE_COUNT_ADDED, 1));
  show("most added", event_base_get_max_events(base, EVENT_BASE_COUNT_ADDED, 0));
  show("most active", event_base_get_max_events(base, EVENT_BASE_COUNT_ACTIVE, 0));
  show("most", event_base_get_max_events(base, 7, 0));
  for (int i = 0; i < 4; i++) free_subject(&subjects[i]);
  event_base_free(base);
  close_pair(pair);
}

// Returns whether the line is marked as that of an internal event.
static int is_internal(const char* line) {
  const char* end = strchr(line, '\n');
  const char* mark = strstr(line, "Internal");
  return mark && end && mark < end;
}

// Prints the dump without addresses, which differ between runs.
static void print_dump(struct event_base* base) {
  static char text[16384];
  memset(text, 0, sizeof text);
  FILE* file = fmemopen(text, sizeof text - 1, "w");
  event_base_dump_events(base, file);
  fclose(file);
  for (const char* at = text; *at; at++) {
    while ((at == text || at[-1] == '\n') && is_internal(at)) at = strchr(at, '\n') + 1;
    if (*at == '\0') break;
    if (at[0] == '0' && at[1] == 'x') {
      printf("ADDRESS");
      at += 2;
      while (strchr("0123456789abcdef", *at) && *at) at++;
    }
    putchar(*at);
  }
}

static void dump_of(struct event_base* base, int fd, short events, const struct timeval* timeout) {
  Subject subject = {"subject", NULL, NULL, 0};
  open_subject(&subject, base, fd, events);
  printf("added, events=%#x, timeout %d\n", events, timeout != NULL);
  event_add(subject.ev, timeout);
  print_dump(base);
  event_active(subject.ev, EV_READ | EV_TIMEOUT | EV_WRITE | EV_CLOSED, 1);
  printf("active too\n");
  print_dump(base);
  event_del(subject.ev);
  event_active(subject.ev, EV_SIGNAL, 1);
  printf("only active\n");
  print_dump(base);
  free_subject(&subject);
}

static void dump(void) {
  static const short kinds[] = {EV_READ, EV_WRITE | EV_PERSIST, EV_READ | EV_ET | EV_CLOSED};
  struct event_base* base = open_base();
  const struct timeval timeout = micros(1500000);
  const int fd = 50;  // One number on both, whatever they have opened.
  int pair[2];
  open_pair(pair);
  dup2(pair[0], fd);
  event_base_priority_init(base, 3);
  printf("nothing\n");
  print_dump(base);
  for (int i = 0; i < 3; i++) {
    dump_of(base, fd, kinds[i], NULL);
    dump_of(base, fd, kinds[i], &timeout);
  }
  dump_of(base, -1, EV_PERSIST, &timeout);
  dump_of(base, -1, 0, NULL);
  dump_of(base, SIGUSR1, EV_SIGNAL | EV_PERSIST, NULL);
  dump_of(base, SIGUSR2, EV_SIGNAL, &timeout);
  event_base_free(base);
  close_pair(pair);
}

// ---- calls without a base

static void say_legacy(evutil_socket_t fd, short what, void* arg) {
  printf("  %s what=%#x fd=%d\n", (const char*)arg, what, fd >= 0);
}

static void without_a_base(void) {
  const struct timeval soon = micros(200000);
  struct event_base* first = event_init();
  struct event_base* base = running_base = event_init();
  show("another", first != base);
  show("priority_init", event_priority_init(3));
  show("priorities", event_base_get_npriorities(base));
  show_text("method", event_get_method());
  struct event timer;
  struct event other;
  event_set(&timer, -1, EV_PERSIST, say_legacy, "timer");
  show("current base", event_get_base(&timer) == base);
  show("priority", event_get_priority(&timer));
  evtimer_set(&other, say_legacy, "other");
  show("base_set", event_base_set(first, &other));
  show("its base", event_get_base(&other) == first);
  show("priority", event_get_priority(&other));
  evtimer_add(&timer, &soon);
  show("base_set of an added one", event_base_set(first, &timer));
  evtimer_add(&other, &soon);
  show("once", event_once(-1, EV_TIMEOUT, say_legacy, "once", &soon));
  show("loopexit", event_loopexit(&soon));
  show("dispatch", event_dispatch());
  show("loop", event_loop(EVLOOP_ONCE));
  show("loopbreak", event_loopbreak());
  show("first", event_base_loop(first, 0));
  event_del(&timer);
  event_base_free(first);
  event_base_free(NULL);
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"flags, and what there is", flags_and_what_there_is},
      {"leave: with others active", ways_to_leave},
      {"leave: going on", going_on},
      {"leave: before it began", left_before_it_began},
      {"loops inside loops", loops_inside_loops},
      {"once", once},
      {"finalizers", finalizers},
      {"finalizers: freed without them", freed_without_finalizers},
      {"look: each event", each_event},
      {"look: dump", dump},
      {"without a base", without_a_base},
  };
  use_steps(break_loop);
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
