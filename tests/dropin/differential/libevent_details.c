// The behaviour of one event: the rules of timeouts, of several events on one descriptor, of
// priorities, and the fields that programs read. On the clock of virtual_steps.h.
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

static void say_time(void) {
  printf("  at %lld\n", (long long)(virtual_now - kMonotonicStart) / kMicrosecond);
}

static void run_until(struct event_base* base, long microseconds) {
  const struct timeval end = micros(microseconds);
  event_base_loopexit(base, &end);
  show("dispatch", event_base_dispatch(base));
}

// ---- timeouts

// Slow callbacks. They update the loop's cached time: otherwise the original sleeps for too long.
static void advance_by_calls(Subject* self, evutil_socket_t fd, short what) {
  (void)fd, (void)what;
  static const int ticks[] = {0, 1, 0, 5, 0, 3, 0, 0, 12, 0, 0};
  say_time();
  advance_steps(ticks[self->calls % 11]);
  event_base_update_cache_time(event_get_base(self->ev));
}

static void persistent_timeout_skips_what_was_missed(void) {
  struct event_base* base = open_base();
  Subject timer = {"timer", NULL, advance_by_calls, 0};
  add_in(open_subject(&timer, base, -1, EV_PERSIST), 250000);
  run_until(base, 6000000);
  free_subject(&timer);
  event_base_free(base);
}

static void drain_and_say(Subject* self, evutil_socket_t fd, short what) {
  (void)self;
  say_time();
  if (what & EV_READ) printf("  read %ld\n", drain(fd));
}

static int traffic_pair[2];

static void put_traffic(Subject* self, evutil_socket_t fd, short what) {
  (void)self, (void)fd, (void)what;
  put(traffic_pair[1], "x");
}

static void readiness_resets_a_persistent_timeout(void) {
  struct event_base* base = open_base();
  open_pair(traffic_pair);
  Subject reader = {"reader", NULL, drain_and_say, 0};
  Subject writer = {"writer", NULL, put_traffic, 0};
  add_in(open_subject(&reader, base, traffic_pair[0], EV_READ | EV_PERSIST), 500001);
  add_in(open_subject(&writer, base, -1, 0), 300002);
  run_until(base, 3000003);
  free_subject(&reader);
  free_subject(&writer);
  event_base_free(base);
  close_pair(traffic_pair);
}

static void deadline_and_readiness_in_one_turn(void) {
  static const short kinds[] = {EV_READ, EV_READ | EV_PERSIST, EV_READ | EV_WRITE, EV_WRITE};
  for (int i = 0; i < 4; i++) {
    struct event_base* base = open_base();
    int pair[2];
    open_pair(pair);
    Subject both = {"both", NULL, drain_and_say, 0};
    add_in(open_subject(&both, base, pair[0], kinds[i]), 300000);
    put(pair[1], "x");
    advance_steps(4);
    turn(base);
    show_hex("pending", event_pending(both.ev, 0xff, NULL));
    turn(base);
    free_subject(&both);
    event_base_free(base);
    close_pair(pair);
  }
}

static void zero_and_long_timeouts(void) {
  static const struct timeval values[] = {{0, 0},  {0, 1},      {0, 999999}, {1, 0},
                                          {0, 50}, {100000, 0}, {1 << 24, 7}};
  for (int i = 0; i < 14; i++) {
    struct event_base* base = open_base();
    const int64_t begin = micros_now();
    Subject timer = {"timer", NULL, NULL, 0};
    show("add", event_add(open_subject(&timer, base, -1, i % 2 ? EV_PERSIST : 0), &values[i / 2]));
    show("loop", event_base_loop(base, EVLOOP_ONCE));
    show("later", (long)(micros_now() - begin));
    show_hex("pending", event_pending(timer.ev, 0xff, NULL));
    free_subject(&timer);
    event_base_free(base);
  }
}

static void add_again_keeps_or_replaces_the_timeout(void) {
  struct event_base* base = open_base();
  Subject timer = {"timer", NULL, drain_and_say, 0};
  open_subject(&timer, base, -1, 0);
  struct timeval until = {0, 0};
  add_in(timer.ev, 700000);
  show("kept", event_add(timer.ev, NULL));
  show_hex("pending", event_pending(timer.ev, EV_TIMEOUT, &until));
  show("in", (long)(until.tv_sec * 1000000 + until.tv_usec - wall_micros_now()));
  add_in(timer.ev, 200000);
  event_pending(timer.ev, EV_TIMEOUT, &until);
  show("in", (long)(until.tv_sec * 1000000 + until.tv_usec - wall_micros_now()));
  show("remove_timer", event_remove_timer(timer.ev));
  show_hex("pending", event_pending(timer.ev, 0xff, NULL));
  show("remove_timer", event_remove_timer(timer.ev));
  show("loop", event_base_loop(base, 0));
  until = (struct timeval){-7, -7};
  show_hex("pending", event_pending(timer.ev, EV_TIMEOUT, &until));
  show("untouched", until.tv_sec == -7);
  free_subject(&timer);
  event_base_free(base);
}

static void common_timeouts(void) {
  struct event_base* base = open_base();
  const struct timeval duration = micros(500000);
  const struct timeval equal = {0, 500000};
  const struct timeval* common = event_base_init_common_timeout(base, &duration);
  show("another pointer", common != &duration);
  show("same for the same", common == event_base_init_common_timeout(base, &equal));
  show("given back", event_base_init_common_timeout(base, common) == common);
  Subject timers[4] = {{"0", 0, drain_and_say, 0},
                       {"1", 0, drain_and_say, 0},
                       {"2", 0, drain_and_say, 0},
                       {"3", 0, drain_and_say, 0}};
  struct timeval copy = *common;
  for (int i = 0; i < 4; i++) {
    open_subject(&timers[i], base, -1, i == 3 ? EV_PERSIST : 0);
    show("add", event_add(timers[i].ev, i == 1 ? &copy : common));
    advance_steps(1);
  }
  struct timeval until;
  event_pending(timers[3].ev, EV_TIMEOUT, &until);
  show("in", (long)(until.tv_sec * 1000000 + until.tv_usec - wall_micros_now()));
  event_del(timers[2].ev);
  run_until(base, 1700000);
  for (int i = 0; i < 4; i++) free_subject(&timers[i]);
  event_base_free(base);
}

static void many_common_timeouts(void) {
  struct event_base* base = open_base();
  const struct timeval excess = {0, 3000000};
  const struct timeval* normal = event_base_init_common_timeout(base, &excess);
  show("seconds", normal ? (long)normal->tv_sec : -1);
  int made = 0;
  for (int i = 0; i < 250; i++) {
    const struct timeval duration = micros(1000 + i);
    made += event_base_init_common_timeout(base, &duration) != NULL;
  }
  show("made", made);
  event_base_free(base);
}

// ---- several events on one descriptor

static void events_of_one_descriptor_newest_first(void) {
  static const short kinds[] = {EV_READ, EV_WRITE, EV_READ | EV_WRITE, EV_READ | EV_PERSIST};
  for (int method = 0; method < kMethods; method++) {
    struct event_base* base = base_with(method, 0);
    int pair[2];
    open_pair(pair);
    Subject subjects[4] = {{"a", 0, 0, 0}, {"b", 0, 0, 0}, {"c", 0, 0, 0}, {"d", 0, 0, 0}};
    for (int i = 0; i < 4; i++) {
      event_add(open_subject(&subjects[i], base, pair[0], kinds[i]), NULL);
    }
    put(pair[1], "x");
    turn(base);
    turn(base);
    for (int i = 3; i >= 0; i--) event_add(subjects[i].ev, NULL);
    turn(base);
    event_add(subjects[0].ev, NULL);
    event_del(subjects[3].ev);
    event_add(subjects[3].ev, NULL);
    event_add(subjects[1].ev, NULL);
    turn(base);
    for (int i = 0; i < 4; i++) free_subject(&subjects[i]);
    event_base_free(base);
    close_pair(pair);
  }
}

static Subject* victim;

static void del_victim(Subject* self, evutil_socket_t fd, short what) {
  (void)fd, (void)what;
  if (victim != self) show("  del", event_del(victim->ev));
}

static void deleting_another_ready_event(void) {
  struct event_base* base = open_base();
  int pair[2];
  open_pair(pair);
  Subject subjects[3] = {{"a", 0, del_victim, 0}, {"b", 0, del_victim, 0}, {"c", 0, del_victim, 0}};
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) event_add(open_subject(&subjects[j], base, pair[0], EV_READ), NULL);
    victim = &subjects[i];
    put(pair[1], "x");
    turn(base);
    for (int j = 0; j < 3; j++) free_subject(&subjects[j]);
  }
  event_base_free(base);
  close_pair(pair);
}

static void activations_merge(void) {
  struct event_base* base = open_base();
  Subject first = {"first", NULL, NULL, 0};
  Subject second = {"second", NULL, NULL, 0};
  open_subject(&first, base, -1, 0);
  open_subject(&second, base, -1, EV_PERSIST);
  event_active(first.ev, EV_READ, 1);
  event_active(second.ev, EV_WRITE, 0);
  event_active(first.ev, EV_WRITE, 5);
  show_hex("pending", event_pending(first.ev, 0xff, NULL));
  show_hex("pending for a read", event_pending(first.ev, EV_READ, NULL));
  show_hex("pending for a timeout", event_pending(first.ev, EV_TIMEOUT, NULL));
  turn(base);
  event_active(first.ev, EV_READ, 1);
  show("del", event_del(first.ev));
  turn(base);
  free_subject(&first);
  free_subject(&second);
  event_base_free(base);
}

// ---- edges

static int acting_call;
static short told;  // The events passed to event_active().

static void del_and_activate(Subject* self, evutil_socket_t fd, short what) {
  if (what & EV_READ) printf("  read %ld\n", drain(fd));
  if (self->calls != acting_call) return;
  show("  del", event_del(self->ev));
  event_active(self->ev, told, 1);
}

static void del_and_add(Subject* self, evutil_socket_t fd, short what) {
  if (what & EV_READ) printf("  read %ld\n", drain(fd));
  if (self->calls != acting_call) return;
  show("  del", event_del(self->ev));
  show("  add", add_in(self->ev, 500000));
}

// A new registration with the kernel reports an edge again; an unchanged one does not.
static void edges_come_again(int flags) {
  struct event_base* base = base_with(0, flags);
  int pair[2];
  open_pair(pair);
  Subject reader = {"reader", NULL, NULL, 0};
  Subject writer = {"writer", NULL, NULL, 0};
  printf("%s\n", event_base_get_method(base));
  event_add(open_subject(&reader, base, pair[0], EV_READ | EV_ET | EV_PERSIST), NULL);
  open_subject(&writer, base, pair[0], EV_WRITE | EV_ET);
  put(pair[1], "x");
  turn(base);
  turn(base);
  put(pair[1], "y");
  turn(base);
  printf("deleted and added\n");
  event_del(reader.ev);
  event_add(reader.ev, NULL);
  turn(base);
  printf("added twice\n");
  event_add(reader.ev, NULL);
  turn(base);
  printf("another of the same descriptor\n");
  event_add(writer.ev, NULL);
  turn(base);
  turn(base);
  free_subject(&reader);
  free_subject(&writer);
  event_base_free(base);
  close_pair(pair);
}

static void edges(void) {
  edges_come_again(0);
  edges_come_again(EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
}

typedef void (*Act)(Subject*, evutil_socket_t, short);

static void added_again(Act act, short kind, int without_timeout) {
  struct event_base* base = open_base();
  int pair[2];
  open_pair(pair);
  put(pair[1], "x");
  Subject subject = {"subject", NULL, act, 0};
  show_hex("kind", kind);
  add_in(open_subject(&subject, base, pair[0], kind), 300000);
  if (without_timeout) {
    event_del(subject.ev);
    event_add(subject.ev, NULL);
  }
  for (int i = 0; i < 6; i++) {
    if (i % 2) put(pair[1], "y");
    show("loop", event_base_loop(base, EVLOOP_ONCE));
    show_hex("pending", event_pending(subject.ev, 0xff, NULL));
  }
  free_subject(&subject);
  event_base_free(base);
  close_pair(pair);
}

// If a persistent event is activated after it was deleted, its timeout starts again, and it waits
// again for all its conditions. The timeout is the last that it had.
static void added_again_in_a_callback(void) {
  static const short kinds[] = {EV_READ, EV_WRITE | EV_ET, EV_READ | EV_WRITE | EV_ET, 0};
  for (int i = 0; i < 8; i++) {
    acting_call = 1 + i % 2;
    for (int without_timeout = 0; without_timeout < 2; without_timeout++) {
      told = EV_TIMEOUT;
      added_again(del_and_activate, kinds[i / 2] | EV_PERSIST, without_timeout);
      told = EV_WRITE;
      added_again(del_and_activate, kinds[i / 2] | EV_PERSIST, without_timeout);
      added_again(del_and_add, kinds[i / 2] | EV_PERSIST, without_timeout);
    }
  }
}

// ---- priorities, batches

static int urgent_pair[2];

static void put_urgent(Subject* self, evutil_socket_t fd, short what) {
  (void)fd, (void)what;
  if (self->calls == 1) put(urgent_pair[1], "x");
  advance_steps(1);
}

static void run_batches(const struct timeval* interval, int callbacks, int min_priority) {
  struct event_config* config = event_config_new();
  show("set", event_config_set_max_dispatch_interval(config, interval, callbacks, min_priority));
  struct event_base* base = event_base_new_with_config(config);
  event_config_free(config);
  running_base = base;
  event_base_priority_init(base, 3);
  open_pair(urgent_pair);
  Subject urgent = {"urgent", NULL, drain_and_say, 0};
  event_priority_set(open_subject(&urgent, base, urgent_pair[0], EV_READ | EV_PERSIST), 0);
  event_add(urgent.ev, NULL);
  static const char* names[] = {"a1", "b1", "c1", "d1", "e2", "f2", "g2"};
  Subject others[7];
  for (int i = 0; i < 7; i++) {
    others[i] = (Subject){names[i], NULL, put_urgent, 0};
    event_priority_set(open_subject(&others[i], base, -1, 0), i < 4 ? 1 : 2);
    event_active(others[i].ev, EV_TIMEOUT, 1);
  }
  show("loop", event_base_loop(base, EVLOOP_NONBLOCK));
  for (int i = 0; i < 7; i++) free_subject(&others[i]);
  free_subject(&urgent);
  event_base_free(base);
  close_pair(urgent_pair);
}

static void batches_and_looking_again(void) {
  const struct timeval interval = micros(250000);
  const struct timeval nothing = {0, 0};
  run_batches(NULL, -1, 0);
  run_batches(NULL, 1, 0);
  run_batches(NULL, 2, 0);
  run_batches(NULL, 0, 0);
  run_batches(NULL, 1, 2);
  run_batches(NULL, 3, 1);
  run_batches(&interval, -1, 0);
  run_batches(&interval, 2, 1);
  run_batches(&interval, -1, 2);
  run_batches(&nothing, -1, 0);
  run_batches(NULL, -1, -3);
}

static void priorities_have_limits(void) {
  struct event_base* base = open_base();
  static const int counts[] = {0, -1, 1, 2, 255, 256, 257, 3};
  show("at first", event_base_get_npriorities(base));
  Subject user = {"user", NULL, NULL, 0};
  open_subject(&user, base, -1, 0);
  show("default", event_get_priority(user.ev));
  free_subject(&user);
  for (int i = 0; i < 8; i++) {
    show("wanted", counts[i]);
    show("init", event_base_priority_init(base, counts[i]));
    show("have", event_base_get_npriorities(base));
    open_subject(&user, base, -1, 0);
    show("default", event_get_priority(user.ev));
    show("set to count", event_priority_set(user.ev, event_base_get_npriorities(base)));
    show("set to -1", event_priority_set(user.ev, -1));
    show("set to last", event_priority_set(user.ev, event_base_get_npriorities(base) - 1));
    show("now", event_get_priority(user.ev));
    event_active(user.ev, EV_READ, 1);
    show("set while active", event_priority_set(user.ev, 0));
    show("init while active", event_base_priority_init(base, 2));
    free_subject(&user);
  }
  event_base_free(base);
}

// ---- time

static void say_cached(Subject* self, evutil_socket_t fd, short what) {
  (void)fd, (void)what;
  struct event_base* base = event_get_base(self->ev);
  struct timeval now;
  struct timeval monotonic;
  advance_steps(3);
  show("cached", event_base_gettimeofday_cached(base, &now));
  show("behind", (long)(wall_micros_now() - now.tv_sec * 1000000LL - now.tv_usec));
  show("update", event_base_update_cache_time(base));
  event_base_gettimeofday_cached(base, &now);
  show("behind", (long)(wall_micros_now() - now.tv_sec * 1000000LL - now.tv_usec));
  advance_steps(1);
  show("monotonic", event_gettime_monotonic(base, &monotonic));
  show("behind", (long)(micros_now() - monotonic.tv_sec * 1000000LL - monotonic.tv_usec));
}

static void cached_time(void) {
  for (int flags = 0; flags <= EVENT_BASE_FLAG_NO_CACHE_TIME;
       flags += EVENT_BASE_FLAG_NO_CACHE_TIME) {
    struct event_base* base = base_with(0, flags);
    Subject timer = {"timer", NULL, say_cached, 0};
    Subject later = {"later", NULL, drain_and_say, 0};
    open_subject(&timer, base, -1, 0);
    printf("outside\n");
    say_cached(&timer, -1, 0);
    add_in(timer.ev, 100000);
    add_in(open_subject(&later, base, -1, 0), 350001);
    event_base_loop(base, EVLOOP_ONCE);
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    free_subject(&timer);
    free_subject(&later);
    event_base_free(base);
  }
}

// ---- the fields of the struct

static void print_fields(const char* when, const struct event* ev) {
  printf("%s: fd=%d base=%d events=%#x res=%#x flags=%#x priority=%d arg=%d\n", when, ev->ev_fd,
         ev->ev_base == running_base, ev->ev_events, ev->ev_res, ev->ev_evcallback.evcb_flags,
         event_get_priority(ev), ev->ev_evcallback.evcb_arg != NULL);
}

static void print_own_fields(evutil_socket_t fd, short what, void* arg) {
  (void)fd, (void)what;
  print_fields("  inside", arg);
}

static void fields_tell_the_truth(void) {
  static const short kinds[] = {
      EV_READ,    EV_READ | EV_PERSIST,   EV_WRITE | EV_ET, EV_READ | EV_CLOSED | EV_FINALIZE,
      EV_TIMEOUT, EV_SIGNAL | EV_PERSIST, EV_SIGNAL};
  int pair[2];
  open_pair(pair);
  put(pair[1], "x");
  struct event_base* base = open_base();
  for (int i = 0; i < 7; i++) {
    struct event ev;
    memset(&ev, 0xa5, sizeof ev);
    const int fd = kinds[i] & EV_SIGNAL ? SIGUSR1 : kinds[i] == EV_TIMEOUT ? -1 : pair[0];
    show("assign", event_assign(&ev, base, fd, kinds[i], print_own_fields, event_self_cbarg()));
    ev.ev_res = 0;  // The library does not set it before the first activation.
    print_fields("assigned", &ev);
    add_in(&ev, 400000);
    print_fields("added", &ev);
    event_active(&ev, EV_WRITE, 1);
    print_fields("active", &ev);
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    print_fields("called", &ev);
    event_add(&ev, NULL);
    print_fields("added again", &ev);
    event_del(&ev);
    print_fields("deleted", &ev);
  }
  event_base_free(base);
  close_pair(pair);
}

static void getters(void) {
  struct event_base* base = open_base();
  Subject user = {"user", NULL, NULL, 0};
  open_subject(&user, base, 5, EV_READ | EV_PERSIST);
  struct event_base* of = NULL;
  evutil_socket_t fd = -2;
  short events = 0;
  event_callback_fn callback = NULL;
  void* arg = NULL;
  event_get_assignment(user.ev, &of, &fd, &events, &callback, &arg);
  show("base", of == base && event_get_base(user.ev) == base);
  show("fd", fd == 5 && event_get_fd(user.ev) == 5 && event_get_signal(user.ev) == 5);
  show_hex("events", events);
  show("same events", events == event_get_events(user.ev));
  show("callback", callback == on_subject && event_get_callback(user.ev) == on_subject);
  show("arg", arg == &user && event_get_callback_arg(user.ev) == &user);
  event_get_assignment(user.ev, NULL, NULL, NULL, NULL, NULL);
  free_subject(&user);
  struct event* self = event_new(base, -1, 0, print_own_fields, event_self_cbarg());
  show("self", event_get_callback_arg(self) == self);
  show("self is a constant", event_self_cbarg() == event_self_cbarg());
  event_free(self);
  struct event zeroed;
  memset(&zeroed, 0, sizeof zeroed);
  show("zeroed", event_initialized(&zeroed));
  event_assign(&zeroed, base, -1, 0, on_subject, NULL);
  show("assigned", event_initialized(&zeroed));
  show("pending", event_pending(&zeroed, 0xff, NULL));
  show("del", event_del(&zeroed));
  event_base_free(base);
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"timeout: persistent ones skip what was missed", persistent_timeout_skips_what_was_missed},
      {"timeout: readiness resets a persistent one", readiness_resets_a_persistent_timeout},
      {"timeout: deadline and readiness in one turn", deadline_and_readiness_in_one_turn},
      {"timeout: zero and long ones", zero_and_long_timeouts},
      {"timeout: add again", add_again_keeps_or_replaces_the_timeout},
      {"timeout: common ones", common_timeouts},
      {"timeout: many common ones", many_common_timeouts},
      {"order: events of one descriptor", events_of_one_descriptor_newest_first},
      {"order: deleting another ready event", deleting_another_ready_event},
      {"order: activations merge", activations_merge},
      {"edges: come again", edges},
      {"edges: added again in a callback", added_again_in_a_callback},
      {"priorities: batches and looking again", batches_and_looking_again},
      {"priorities: limits", priorities_have_limits},
      {"time: cached", cached_time},
      {"struct: fields", fields_tell_the_truth},
      {"struct: getters", getters},
  };
  use_steps(break_loop);
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
