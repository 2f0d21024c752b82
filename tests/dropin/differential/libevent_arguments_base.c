// The functions of bases, their configurations and their loops with any arguments that a program
// may pass: see arguments.h.
// differential: --undefined
#include "libevent_arguments.h"

enum { kNoBase, kBase, kBusyBase };

static const Value kBaseValues[] = {
    {"NULL", kNoBase},
    {"base", kBase},
    {"busy base", kBusyBase},
};
static const Domain kBases = DOMAIN_OF(kBaseValues);

static struct event_base* chosen;

// A busy base has an event of each kind. A NULL base may mean the one that event_init() created.
static void choose_base(long which) {
  open_world(0);
  if (which == kBusyBase) {
    for (long kind = kArmed; kind <= kUnwatched; kind++) make_event(kind);
  }
  chosen = which == kNoBase ? NULL : base;
  errno = 0;
}

static const Value kFlagValues[] = {
    {"0", 0},
    {"ONCE", EVLOOP_ONCE},
    {"NONBLOCK", EVLOOP_NONBLOCK},
    {"ONCE|NONBLOCK", EVLOOP_ONCE | EVLOOP_NONBLOCK},
    {"NO_EXIT_ON_EMPTY", EVLOOP_NO_EXIT_ON_EMPTY},
    {"NO_EXIT_ON_EMPTY|NONBLOCK", EVLOOP_NO_EXIT_ON_EMPTY | EVLOOP_NONBLOCK},
    {"8", 8},
    {"0x100", 0x100},
    {"-1", -1},
    {"min", INT_MIN},
};
static const Domain kLoopFlags = DOMAIN_OF(kFlagValues);

// ---- loops

static void call_loop(const long* at) {
  choose_base(at[0]);
  print_result(event_base_loop(chosen, (int)at[1]));
  close_world();
}

static void call_dispatch(const long* at) {
  choose_base(at[0]);
  print_result(event_base_dispatch(chosen));
  close_world();
}

static void call_loopexit(const long* at) {
  choose_base(at[0]);
  print_result(event_base_loopexit(chosen, time_of(at[1])));
  show("loop", event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_NO_EXIT_ON_EMPTY));
  show("exit", event_base_got_exit(base));
  close_world();
}

static void call_loopbreak(const long* at) {
  choose_base(at[0]);
  print_result(event_base_loopbreak(chosen));
  show("break", event_base_got_break(base));
  print_result(event_base_loopcontinue(chosen));
  close_world();
}

static void call_got(const long* at) {
  choose_base(at[0]);
  if (at[1]) show("exit", event_base_got_exit(chosen));
  if (!at[1]) show("break", event_base_got_break(chosen));
}

static void call_running_event(const long* at) {
  choose_base(at[0]);
  show("event", event_base_get_running_event(chosen) != NULL);
}

// ---- settings and looking in

static void call_method(const long* at) {
  choose_base(at[0]);
  if (at[1]) show_text("method", event_base_get_method(chosen));
  if (!at[1]) show_hex("features", event_base_get_features(chosen));
}

static void call_priority_init(const long* at) {
  choose_base(at[0]);
  subject = event_on(-1, 0);
  event_priority_set(subject, kWorldPriorities - 1);
  print_result(event_base_priority_init(chosen, (int)at[1]));
  show("priorities", event_base_get_npriorities(base));
  show("event's", event_get_priority(event_on(-1, 0)));
  event_active(subject, EV_TIMEOUT, 1);
  close_world();
}

static void call_npriorities(const long* at) {
  choose_base(at[0]);
  show("priorities", event_base_get_npriorities(chosen));
}

static void call_num_events(const long* at) {
  choose_base(at[0]);
  print_result(event_base_get_num_events(chosen, (unsigned)at[1] & ~EVENT_BASE_COUNT_VIRTUAL));
}

static void call_max_events(const long* at) {
  choose_base(at[0]);
  const unsigned kinds = (unsigned)at[1] & ~EVENT_BASE_COUNT_VIRTUAL;
  print_result(event_base_get_max_events(chosen, kinds, (int)at[2]));
  print_result(event_base_get_max_events(chosen, kinds, (int)at[2]));
}

static int count_each(const struct event_base* of, const struct event* ev, void* argument) {
  printf("  %d %d\n", of == base, ev != NULL);
  return --*(int*)argument;
}

static void call_foreach(const long* at) {
  int until = at[2] == 0 ? 100 : (int)at[2];
  choose_base(at[0]);
  print_result(event_base_foreach_event(chosen, at[1] ? count_each : NULL, &until));
}

static void call_dump(const long* at) {
  choose_base(at[0]);
  char* text = NULL;
  size_t size = 0;
  FILE* file = at[1] ? open_memstream(&text, &size) : NULL;
  event_base_dump_events(chosen, file);
  fclose(file);
  show("lines", size > 0);
}

static void call_active_by_fd(const long* at) {
  choose_base(at[0]);
  event_base_active_by_fd(chosen, fd_of(at[1]), (short)at[2]);
  close_world();
}

static void call_active_by_signal(const long* at) {
  choose_base(at[0]);
  event_base_active_by_signal(chosen, (int)at[1]);
  close_world();
}

static void call_common_timeout(const long* at) {
  choose_base(at[0]);
  const struct timeval* common = event_base_init_common_timeout(chosen, time_of(at[1]));
  show("common", common != NULL);
  if (common) {
    printf("%lld %#lx\n", (long long)common->tv_sec, (unsigned long)common->tv_usec);
    subject = event_on(-1, 0);
    print_result(event_add(subject, common));
  }
  close_world();
}

static void call_times(const long* at) {
  struct timeval now = {-7, -7};
  choose_base(at[0]);
  if (at[1] == 0) print_result(event_base_gettimeofday_cached(chosen, at[2] ? &now : NULL));
  if (at[1] == 1) print_result(event_gettime_monotonic(chosen, at[2] ? &now : NULL));
  if (at[1] == 2) print_result(event_base_update_cache_time(chosen));
  show("told", now.tv_sec != -7);
}

static void call_reinit(const long* at) {
  choose_base(at[0]);
  print_result(event_reinit(chosen));
  close_world();
}

static void call_notifiable(const long* at) {
  choose_base(at[0]);
  print_result(evthread_make_base_notifiable(chosen));
  close_world();
}

static void call_free(const long* at) {
  choose_base(at[0]);
  struct event_base* current = at[2] ? event_init() : NULL;
  if (at[1]) {
    event_base_free(chosen);
  } else {
    event_base_free_nofinalize(chosen);
  }
  if (current && chosen) show("current", event_base_loop(current, EVLOOP_NONBLOCK));
}

// ---- the base that event_init() created, or none

static void with_current(long has_current) {
  open_world(0);
  struct event_base* current = has_current ? event_init() : NULL;
  if (current) base = current;
}

static void call_current(const long* at) {
  with_current(at[0]);
  switch (at[1]) {
    case 0:
      print_result(event_dispatch());
      break;
    case 1:
      print_result(event_loopbreak());
      break;
    case 2:
      show_text("method", event_get_method());
      break;
    default:
      show("priorities", event_base_get_npriorities(NULL));
  }
}

static void call_current_loop(const long* at) {
  with_current(at[0]);
  print_result(event_loop((int)at[1]));
}

static void call_current_exit(const long* at) {
  with_current(at[0]);
  print_result(event_loopexit(time_of(at[1])));
  close_world();
}

static void call_current_priorities(const long* at) {
  with_current(at[0]);
  print_result(event_priority_init((int)at[1]));
  close_world();
}

// ---- configurations

static void call_new_with_config(const long* at) {
  open_world(0);
  struct event_config* config = at[0] ? event_config_new() : NULL;
  struct event_base* made = event_base_new_with_config(config);
  show_text("method", made ? event_base_get_method(made) : NULL);
  event_config_free(config);
}

static void print_made(struct event_config* config) {
  struct event_base* made = event_base_new_with_config(config);
  show_text("method", made ? event_base_get_method(made) : NULL);
  if (made) show_hex("features", event_base_get_features(made));
}

static void call_avoid(const long* at) {
  static const char* const names[] = {NULL, "", "epoll", "EPOLL", "kqueue", "epoll "};
  open_world(0);
  struct event_config* config = at[0] ? event_config_new() : NULL;
  print_result(event_config_avoid_method(config, names[at[1]]));
  print_made(config);
}

static void call_features(const long* at) {
  open_world(0);
  struct event_config* config = at[0] ? event_config_new() : NULL;
  print_result(event_config_require_features(config, (int)at[1]));
  print_made(config);
}

static void call_flag(const long* at) {
  open_world(0);
  struct event_config* config = at[0] ? event_config_new() : NULL;
  print_result(event_config_set_flag(config, (int)at[1]));
  print_made(config);
}

static void call_cpus(const long* at) {
  open_world(0);
  struct event_config* config = at[0] ? event_config_new() : NULL;
  print_result(event_config_set_num_cpus_hint(config, (int)at[1]));
}

// Two timers at each priority show between which of them the loop polls.
static void call_dispatch_interval(const long* at) {
  open_world(0);
  struct event_config* config = at[0] ? event_config_new() : NULL;
  print_result(
      event_config_set_max_dispatch_interval(config, time_of(at[1]), (int)at[2], (int)at[3]));
  base = event_base_new_with_config(config);
  event_base_priority_init(base, kWorldPriorities);
  for (int i = 0; i < 2 * kWorldPriorities; i++) {
    struct event* ev = event_on(-1, 0);
    event_priority_set(ev, i % kWorldPriorities);
    event_active(ev, EV_TIMEOUT, 1);
  }
  show("loop", event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
  show("left", event_base_get_num_events(base, EVENT_BASE_COUNT_ACTIVE));
  close_world();
}

// ---- the table

static const Value kNameValues[] = {{"NULL", 0},  {"\"\"", 1},   {"epoll", 2},
                                    {"EPOLL", 3}, {"kqueue", 4}, {"epoll and a blank", 5}};
static const Domain kNames = DOMAIN_OF(kNameValues);

static const Value kIntervalValues[] = {{"NULL", kNoTime}, {"0", 0},       {"1us", 1},
                                        {"-1us", 4},       {"-1s", 5},     {"1000000us", 11},
                                        {"10^12 s", 19},   {"min min", 25}};
static const Domain kIntervals = DOMAIN_OF(kIntervalValues);

static const Value kFewValues[] = {
    {"-1", -1}, {"1", 1}, {"2", 2}, {"max", INT_MAX}, {"min", INT_MIN}};
static const Domain kFew = DOMAIN_OF(kFewValues);

static const Value kThreeValues[] = {{"first", 0}, {"second", 1}, {"third", 2}};
static const Domain kThree = DOMAIN_OF(kThreeValues);

int main(int argc, char** argv) {
  static const Call calls[] = {
      {"event_base_loop", call_loop, {&kBases, &kLoopFlags}},
      {"event_base_dispatch", call_dispatch, {&kBases}},
      {"event_base_loopexit", call_loopexit, {&kBases, &kTimeouts}},
      {"event_base_loopbreak", call_loopbreak, {&kBases}},
      {"event_base_got", call_got, {&kBases, &kBooleans}},
      {"event_base_get_running_event", call_running_event, {&kBases}},
      {"event_base_get_method, features", call_method, {&kBases, &kBooleans}},
      {"event_base_priority_init", call_priority_init, {&kBases, &kNumbers}},
      {"event_base_get_npriorities", call_npriorities, {&kBases}},
      {"event_base_get_num_events", call_num_events, {&kBases, &kNumbers}},
      {"event_base_get_max_events", call_max_events, {&kBases, &kNumbers, &kNumbers}},
      {"event_base_foreach_event", call_foreach, {&kBases, &kBooleans, &kNumbers}},
      {"event_base_dump_events", call_dump, {&kBases, &kBooleans}},
      {"event_base_active_by_fd", call_active_by_fd, {&kBases, &kFds, &kWhats}},
      {"event_base_active_by_signal", call_active_by_signal, {&kBases, &kNumbers}},
      {"event_base_init_common_timeout", call_common_timeout, {&kBooleans, &kTimeouts}},
      {"times", call_times, {&kBases, &kThree, &kBooleans}},
      {"event_reinit", call_reinit, {&kBases}},
      {"evthread_make_base_notifiable", call_notifiable, {&kBases}},
      {"event_base_free", call_free, {&kBases, &kBooleans, &kBooleans}},
      {"event_dispatch and others", call_current, {&kBooleans, &kNumbers}},
      {"event_loop", call_current_loop, {&kBooleans, &kLoopFlags}},
      {"event_loopexit", call_current_exit, {&kBooleans, &kTimeouts}},
      {"event_priority_init", call_current_priorities, {&kBooleans, &kNumbers}},
      {"event_base_new_with_config", call_new_with_config, {&kBooleans}},
      {"event_config_avoid_method", call_avoid, {&kBooleans, &kNames}},
      {"event_config_require_features", call_features, {&kBooleans, &kNumbers}},
      {"event_config_set_flag", call_flag, {&kBooleans, &kNumbers}},
      {"event_config_set_num_cpus_hint", call_cpus, {&kBooleans, &kNumbers}},
      {"event_config_set_max_dispatch_interval",
       call_dispatch_interval,
       {&kBooleans, &kIntervals, &kFew, &kNumbers}},
  };
  return run_calls(argc, argv, calls, sizeof calls / sizeof *calls);
}
