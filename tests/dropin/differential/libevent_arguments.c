// The functions of events with any arguments that a program may pass: see arguments.h.
// differential: --undefined
#include "libevent_arguments.h"

// ---- adding, deleting, activating

static void call_add(const long* at) {
  open_world_with(at[0]);
  tells_no_time = is_odd_time(at[1]);
  print_result(event_add(subject, time_of(at[1])));
  close_world();
}

static void call_add_twice(const long* at) {
  open_world_with(at[0]);
  tells_no_time = is_odd_time(at[1]) || is_odd_time(at[2]);
  print_result(event_add(subject, time_of(at[1])));
  print_result(event_add(subject, time_of(at[2])));
  close_world();
}

static void call_del(const long* at) {
  open_world_with(at[0]);
  print_result(event_del(subject));
  close_world();
}

static void call_del_block(const long* at) {
  open_world_with(at[0]);
  print_result(event_del_block(subject));
  close_world();
}

static void call_del_noblock(const long* at) {
  open_world_with(at[0]);
  print_result(event_del_noblock(subject));
  close_world();
}

static void call_remove_timer(const long* at) {
  open_world_with(at[0]);
  print_result(event_remove_timer(subject));
  close_world();
}

static void call_active(const long* at) {
  open_world_with(at[0]);
  event_active(subject, (int)at[1], (short)at[2]);
  close_world();
}

static void call_pending(const long* at) {
  struct timeval until = {-7, -7};
  open_world_with(at[0]);
  print_result(event_pending(subject, (short)at[1], at[2] ? &until : NULL));
  show("told", until.tv_sec != -7);
  close_world();
}

static void call_priority_set(const long* at) {
  open_world_with(at[0]);
  print_result(event_priority_set(subject, (int)at[1]));
  close_world();
}

static void call_free(const long* at) {
  open_world_with(at[0]);
  event_free(subject);
  subject = NULL;
  close_world();
}

static void call_finalize(const long* at) {
  open_world_with(at[0]);
  print_result(event_finalize((unsigned)at[1], subject, at[2] ? on_finalized : NULL));
  if (at[2] && subject) print_subject();
  look("at once");
  print_subject();
  event_base_free(base);
}

static void call_free_finalize(const long* at) {
  open_world_with(at[0]);
  print_result(event_free_finalize((unsigned)at[1], subject, at[2] ? on_finalized : NULL));
  look("at once");
  event_base_free(base);
}

static void call_debug_unassign(const long* at) {
  open_world_with(at[0]);
  event_debug_unassign(subject);
  if (subject) show_hex("flags", subject->ev_evcallback.evcb_flags);
}

static void call_base_set(const long* at) {
  open_world_with(at[1]);
  struct event_base* other = event_base_new();
  print_result(event_base_set(at[0] == 2 ? other : at[0] ? base : NULL, subject));
  show("base", subject->ev_base == base ? 1 : subject->ev_base == other ? 2 : 0);
  close_world();
}

// ---- looking in

static void call_initialized(const long* at) {
  open_world_with(at[0]);
  show("initialized", event_initialized(subject));
}

static void call_get(const long* at) {
  open_world_with(at[0]);
  show("fd", event_get_fd(subject) == pair[0] ? 1000 : event_get_fd(subject));
  show("base", event_get_base(subject) == base);
  show_hex("events", event_get_events(subject));
  show("callback", event_get_callback(subject) == on_event);
  show("argument", event_get_callback_arg(subject) == subject);
  show("priority", event_get_priority(subject));
}

static void call_get_assignment(const long* at) {
  struct event_base* of = NULL;
  evutil_socket_t fd = -7;
  short events = -7;
  event_callback_fn callback = NULL;
  void* argument = NULL;
  open_world_with(at[0]);
  event_get_assignment(subject, at[1] & 1 ? &of : NULL, at[1] & 2 ? &fd : NULL,
                       at[1] & 4 ? &events : NULL, at[1] & 8 ? &callback : NULL,
                       at[1] & 16 ? &argument : NULL);
  printf("%d %d %#x %d %d\n", of == base, fd == pair[0] ? 1000 : fd, (unsigned)events,
         callback == on_event, argument == subject);
}

// ---- making

static void call_assign(const long* at) {
  open_world((int)at[4]);
  subject = at[0] ? calloc(1, sizeof *subject) : NULL;
  errno = 0;
  const int result = event_assign(subject, at[1] ? base : NULL, fd_of(at[2]), (short)at[3],
                                  on_event, event_self_cbarg());
  print_result(result);
  if (result != 0) return;
  print_result(event_add(subject, NULL));
  put(pair[1], "x");
  close_world();
}

static void call_new(const long* at) {
  open_world(0);
  subject = event_new(at[0] ? base : NULL, fd_of(at[1]), (short)at[2], at[3] ? on_event : NULL,
                      event_self_cbarg());
  show("event", subject != NULL);
  const struct timeval timeout = micros(250000);
  if (subject) print_result(event_add(subject, &timeout));
  close_world();
}

static void call_set(const long* at) {
  open_world(0);
  struct event_base* first = at[0] ? event_init() : NULL;
  subject = calloc(1, sizeof *subject);
  event_set(subject, fd_of(at[1]), (short)at[2], on_event, event_self_cbarg());
  show("base", subject->ev_base != NULL && subject->ev_base == first);
  if (first) base = first;
  const struct timeval timeout = micros(250000);
  print_result(event_add(subject, &timeout));
  put(pair[1], "x");
  close_world();
}

static void call_base_once(const long* at) {
  open_world(0);
  print_result(event_base_once(at[0] ? base : NULL, fd_of(at[1]), (short)at[2], on_event, NULL,
                               time_of(at[3])));
  put(pair[1], "x");
  close_world();
}

static void call_once(const long* at) {
  open_world(0);
  struct event_base* first = at[0] ? event_init() : NULL;
  print_result(event_once(-1, EV_TIMEOUT, on_event, NULL, time_of(at[1])));
  if (first) base = first;
  close_world();
}

static void call_struct_size(const long* at) {
  (void)at;
  show("size", (long)event_get_struct_event_size());
  show("self", event_self_cbarg() != NULL && event_self_cbarg() == event_self_cbarg());
}

// ---- the table

static const Value kShortTimeValues[] = {
    {"NULL", kNoTime}, {"0", 0}, {"350ms", 2}, {"-1us", 4}, {"-1s", 5}, {"10^12 s", 19},
};
static const Domain kSomeTimeouts = DOMAIN_OF(kShortTimeValues);

static const Value kResultValues[] = {
    {"0", 0},
    {"READ", EV_READ},
    {"TIMEOUT", EV_TIMEOUT},
    {"SIGNAL", EV_SIGNAL},
    {"0x10000", 65536},
    {"FINALIZE", EV_FINALIZE},
    {"-1", -1},
    {"max", INT_MAX},
};
static const Domain kResults = DOMAIN_OF(kResultValues);

static const Value kCountValues[] = {
    {"-1", -1}, {"0", 0}, {"1", 1}, {"5", 5}, {"max", SHRT_MAX}, {"min", SHRT_MIN},
};
static const Domain kCounts = DOMAIN_OF(kCountValues);

static const Value kBaseValues[] = {{"NULL", 0}, {"base", 1}, {"other", 2}};
static const Domain kBases = DOMAIN_OF(kBaseValues);

static const Value kWantedValues[] = {{"none", 0},      {"base", 1},     {"fd", 2},
                                      {"events", 4},    {"callback", 8}, {"argument", 16},
                                      {"all of it", 31}};
static const Domain kWanted = DOMAIN_OF(kWantedValues);

static const Value kMethodValues[] = {{"epoll", 0}, {"poll", 1}, {"select", 2}};
static const Domain kMethodsUsed = DOMAIN_OF(kMethodValues);

int main(int argc, char** argv) {
  static const Call calls[] = {
      {"event_add", call_add, {&kEvents, &kTimeouts}},
      {"event_add twice", call_add_twice, {&kEvents, &kSomeTimeouts, &kSomeTimeouts}},
      {"event_del", call_del, {&kEvents}},
      {"event_del_block", call_del_block, {&kEvents}},
      {"event_del_noblock", call_del_noblock, {&kEvents}},
      {"event_remove_timer", call_remove_timer, {&kEvents}},
      {"event_active", call_active, {&kEvents, &kResults, &kCounts}},
      {"event_pending", call_pending, {&kEvents, &kWhats, &kBooleans}},
      {"event_priority_set", call_priority_set, {&kEvents, &kNumbers}},
      {"event_free", call_free, {&kEvents}},
      {"event_finalize", call_finalize, {&kEvents, &kNumbers, &kBooleans}},
      {"event_free_finalize", call_free_finalize, {&kEvents, &kNumbers, &kBooleans}},
      {"event_debug_unassign", call_debug_unassign, {&kEvents}},
      {"event_base_set", call_base_set, {&kBases, &kEvents}},
      {"event_initialized", call_initialized, {&kEvents}},
      {"event_get", call_get, {&kEvents}},
      {"event_get_assignment", call_get_assignment, {&kEvents, &kWanted}},
      {"event_assign", call_assign, {&kBooleans, &kBooleans, &kFds, &kWhats, &kMethodsUsed}},
      {"event_new", call_new, {&kBooleans, &kFds, &kWhats, &kBooleans}},
      {"event_set", call_set, {&kBooleans, &kFds, &kWhats}},
      {"event_base_once", call_base_once, {&kBooleans, &kFds, &kWhats, &kSomeTimeouts}},
      {"event_once", call_once, {&kBooleans, &kTimeouts}},
      {"event_get_struct_event_size", call_struct_size, {NULL}},
  };
  return run_calls(argc, argv, calls, sizeof calls / sizeof *calls);
}
