// The functions of libev with every argument that a program might pass: see arguments.h.
//
// Left out are the differences that docs/drop-in.md names: bad descriptors, and missing backends.
// differential: --undefined
#include <sys/wait.h>

#include "libev_arguments.h"

typedef void (*Act)(struct ev_loop* of, void* watcher);

#define ACT_OF(name, type) \
  static void name##_of(struct ev_loop* of, void* watcher) { name(of, (type*)watcher); }
#define ACTS_OF(type)        \
  ACT_OF(type##_start, type) \
  ACT_OF(type##_stop, type)

ACTS_OF(ev_io)
ACTS_OF(ev_timer)
ACTS_OF(ev_periodic)
ACTS_OF(ev_signal)
ACTS_OF(ev_child)
ACTS_OF(ev_stat)
ACTS_OF(ev_idle)
ACTS_OF(ev_prepare)
ACTS_OF(ev_check)
ACTS_OF(ev_fork)
ACTS_OF(ev_cleanup)
ACTS_OF(ev_embed)
ACTS_OF(ev_async)

static const Act kStarts[kKinds] = {NULL,
                                    ev_io_start_of,
                                    ev_timer_start_of,
                                    ev_periodic_start_of,
                                    ev_signal_start_of,
                                    ev_child_start_of,
                                    ev_stat_start_of,
                                    ev_idle_start_of,
                                    ev_prepare_start_of,
                                    ev_check_start_of,
                                    ev_fork_start_of,
                                    ev_cleanup_start_of,
                                    ev_embed_start_of,
                                    ev_async_start_of};
static const Act kStops[kKinds] = {NULL,
                                   ev_io_stop_of,
                                   ev_timer_stop_of,
                                   ev_periodic_stop_of,
                                   ev_signal_stop_of,
                                   ev_child_stop_of,
                                   ev_stat_stop_of,
                                   ev_idle_stop_of,
                                   ev_prepare_stop_of,
                                   ev_check_stop_of,
                                   ev_fork_stop_of,
                                   ev_cleanup_stop_of,
                                   ev_embed_stop_of,
                                   ev_async_stop_of};

// ---- loops

static void call_loop_new(const long* at) {
  struct ev_loop* made = at[1] ? ev_default_loop((unsigned)at[0]) : ev_loop_new((unsigned)at[0]);
  printf("backend %#x\n", made ? ev_backend(made) : 0);
  if (!made) return;
  printf("default %d iteration %u depth %u\n", ev_is_default_loop(made), ev_iteration(made),
         ev_depth(made));
  printf("run %d\n", ev_run(made, EVRUN_NOWAIT));
  ev_loop_destroy(made);
}

static void call_destroy(const long* at) {
  open_world(at[0]);
  init_subject(at[1]);
  if (at[1] != kNoWatcher) kStarts[at[1]](loop, &subject);
  ev_loop_destroy(loop_of(at[0]));
  printf("active %d\n", ev_is_active((ev_watcher*)&subject) != 0);
}

static void call_destroy_null(const long* at) {
  (void)at;
  ev_loop_destroy(NULL);
  printf("destroyed nothing\n");
}

static void call_look_in(const long* at) {
  open_world(at[0]);
  struct ev_loop* of = loop_of(at[0]);
  switch (at[1]) {
    case 0:
      printf("%#x\n", ev_backend(of));
      break;
    case 1:
      printf("%u\n", ev_iteration(of));
      break;
    case 2:
      printf("%u\n", ev_depth(of));
      break;
    case 3:
      printf("%d\n", ev_now(of) > 0);
      break;
    case 4:
      printf("%u\n", ev_pending_count(of));
      break;
    case 5:
      ev_verify(of);
      printf("verified\n");
      break;
    case 6:
      ev_loop_fork(of);
      look_on();
      break;
    default:
      ev_now_update(of);
      look_on();
  }
}

static void call_run(const long* at) {
  open_world(at[0]);
  init_subject(kTimer);
  ev_timer_start(loop, &subject.timer);
  printf("run %d\n", ev_run(loop_of(at[0]), (int)at[1]));
  close_world();
}

static void call_run_empty(const long* at) {
  open_world(at[0]);
  printf("run %d\n", ev_run(loop_of(at[0]), (int)at[1]));
  printf("depth %u iteration %u\n", ev_depth(loop), ev_iteration(loop));
}

static int break_how;

static void on_break(struct ev_loop* of, ev_watcher* watcher, int revents) {
  on_event(of, watcher, revents);
  if (callbacks == 1) ev_break(of, break_how);
}

static void call_break(const long* at) {
  open_world(at[0]);
  ev_break(loop_of(at[0]), (int)at[1]);
  init_subject(kIdle);
  ev_set_cb(&subject.idle, (void (*)(struct ev_loop*, ev_idle*, int))on_break);
  break_how = (int)at[1];
  ev_idle_start(loop, &subject.idle);
  callbacks = 0;
  printf("run %d\n", ev_run(loop, 0));
  close_world();
}

static void call_references(const long* at) {
  open_world(1);
  init_subject(kTimer);
  ev_timer_start(loop, &subject.timer);
  for (long i = 0; i < at[0]; i++) ev_ref(loop);
  for (long i = 0; i < at[1]; i++) ev_unref(loop);
  close_world();
}

static void call_suspend(const long* at) {
  open_world(1);
  init_subject(kTimer);
  ev_timer_start(loop, &subject.timer);
  for (long i = 0; i < at[0]; i++) ev_suspend(loop);
  advance(500.);
  for (long i = 0; i < at[1]; i++) ev_resume(loop);
  print_seconds("remaining", ev_timer_remaining(loop, &subject.timer));
  close_world();
}

static void call_userdata(const long* at) {
  open_world(at[0]);
  ev_set_userdata(loop_of(at[0]), at[1] ? &subject : NULL);
  printf("%d\n", ev_userdata(loop) == &subject);
}

static void on_pending(struct ev_loop* of) { ev_invoke_pending(of); }
static void on_edge(struct ev_loop* of) { (void)of; }

static void call_hooks(const long* at) {
  open_world(1);
  ev_set_invoke_pending_cb(loop, at[0] ? on_pending : NULL);
  ev_set_loop_release_cb(loop, at[1] ? on_edge : NULL, at[2] ? on_edge : NULL);
  init_subject(kTimer);
  ev_timer_start(loop, &subject.timer);
  printf("run %d\n", ev_run(loop, EVRUN_ONCE));
  close_world();
}

static void call_intervals(const long* at) {
  open_world(1);
  ev_set_io_collect_interval(loop, kSeconds[at[0]]);
  ev_set_timeout_collect_interval(loop, kSeconds[at[1]]);
  init_subject(kTimer);
  ev_timer_start(loop, &subject.timer);
  look("at once");
  advance(200.);
  look("soon");
  init_subject(kIo);
  ev_io_start(loop, &subject.io);
  printf("run %d\n", ev_run(loop, EVRUN_ONCE));
}

static void call_sleep(const long* at) {
  const int64_t before = virtual_now;
  ev_sleep(kSeconds[at[0]]);
  print_seconds("slept", fabs((double)(virtual_now - before) * 1e-9));
}

static void call_set_nothing(const long* at) {
  (void)at;
  ev_set_allocator(NULL);
  ev_set_syserr_cb(NULL);
  printf("%d.%d\n", ev_version_major(), ev_version_minor());
}

// ---- watchers of all kinds

static void call_start(const long* at) {
  open_world(2);
  init_subject(at[0]);
  for (long i = 0; i < at[1]; i++) kStarts[at[0]](loop, at[0] ? &subject : NULL);
  close_world();
}

static void call_stop(const long* at) {
  open_world(2);
  init_subject(at[0]);
  if (at[1]) kStarts[at[0]](loop, &subject);
  kStops[at[0]](loop, at[0] ? &subject : NULL);
  kStops[at[0]](loop, at[0] ? &subject : NULL);
  close_world();
}

static void call_start_null(const long* at) {
  static const Act* const acts[] = {kStarts, kStops};
  open_world(1);
  acts[at[1]][at[0] == kNoWatcher ? kAsync : at[0]](loop, NULL);
  close_world();
}

static void call_priority(const long* at) {
  open_world(2);
  init_subject(at[0]);
  ev_set_priority((ev_watcher*)&subject, (int)at[1]);
  kStarts[at[0]](loop, &subject);
  close_world();
}

static void call_fed_priority(const long* at) {
  open_world(1);
  init_subject(kCheck);
  ev_set_priority((ev_watcher*)&subject, (int)at[0]);
  ev_check_start(loop, &subject.check);
  ev_feed_event(loop, &subject, EV_CUSTOM);
  close_world();
}

// ---- events made up

static void call_feed_event(const long* at) {
  open_world(2);
  init_subject(at[0]);
  ev_feed_event(loop, at[0] ? &subject : NULL, (int)at[1]);
  close_world();
}

static void call_feed_fd_event(const long* at) {
  open_world(1);
  init_subject(kIo);
  ev_io_set(&subject.io, pair[0], EV_READ | EV_WRITE);
  ev_io_start(loop, &subject.io);
  ev_feed_fd_event(loop, fd_of(at[0]), (int)at[1]);
  printf("pending %d\n", ev_clear_pending(loop, &subject));
  close_world();
}

static void call_feed_signal(const long* at) {
  open_world(1);
  init_subject(kSignal);
  if (at[1]) ev_signal_start(loop, &subject.signal);
  ev_feed_signal((int)at[0]);
  ev_feed_signal_event(loop, (int)at[0]);
  close_world();
}

static void call_invoke(const long* at) {
  open_world(1);
  init_subject(kIdle);
  ev_invoke(loop, at[0] ? &subject : NULL, (int)at[1]);
  printf("cleared %#x\n", (unsigned)ev_clear_pending(loop, &subject));
  close_world();
}

static void call_clear_pending(const long* at) {
  open_world(1);
  init_subject(kIdle);
  if (at[0] == 2) ev_feed_event(loop, &subject, EV_CUSTOM);
  for (int i = 0; i < 2; i++) {
    printf("%#x\n", (unsigned)ev_clear_pending(loop, at[0] ? &subject : NULL));
  }
  close_world();
}

static void call_once(const long* at) {
  open_world(1);
  ev_once(loop, at[0] == 2 ? -2 : at[0] ? pair[0] : -1, (int)at[1], kSeconds[at[2]], on_once, NULL);
  close_world();
}

static void call_async_send(const long* at) {
  open_world(1);
  init_subject(kAsync);
  if (at[0] == 1) ev_async_start(loop, &subject.async);
  ev_async_send(loop, at[0] == 2 ? NULL : &subject.async);
  printf("sent %d\n", ev_async_pending(&subject.async));
  close_world();
}

// ---- functions of one kind of watcher

static void call_io(const long* at) {
  open_world(1);
  init_subject(kIo);
  ev_io_set(&subject.io, pair[0], (int)at[0]);
  ev_io_start(loop, &subject.io);
  close_world();
}

static void call_timer(const long* at) {
  open_world(1);
  init_subject(kTimer);
  ev_timer_set(&subject.timer, kSeconds[at[0]], kSeconds[at[1]]);
  print_seconds("remaining", ev_timer_remaining(loop, &subject.timer));
  ev_timer_start(loop, &subject.timer);
  print_seconds("remaining", ev_timer_remaining(loop, &subject.timer));
  close_world();
}

static void call_timer_again(const long* at) {
  open_world(1);
  init_subject(kTimer);
  if (at[0]) ev_timer_start(loop, &subject.timer);
  subject.timer.repeat = kSeconds[at[1]];
  ev_timer_again(loop, &subject.timer);
  print_seconds("remaining", ev_timer_remaining(loop, &subject.timer));
  close_world();
}

static ev_tstamp wanted_time;

static ev_tstamp tell_wanted_time(ev_periodic* watcher, ev_tstamp now) {
  (void)watcher;
  return now + wanted_time;
}

static void call_periodic(const long* at) {
  open_world(1);
  init_subject(kPeriodic);
  ev_periodic_set(&subject.periodic, kSeconds[at[0]], kSeconds[at[1]], NULL);
  ev_periodic_start(loop, &subject.periodic);
  print_seconds("at", ev_periodic_at(&subject.periodic) - ev_now(loop));
  if (at[2]) ev_periodic_again(loop, &subject.periodic);
  close_world();
}

static void call_periodic_from_now(const long* at) {
  open_world(1);
  init_subject(kPeriodic);
  ev_periodic_set(&subject.periodic, floor(ev_now(loop)) + kSeconds[at[0]], kSeconds[at[1]], NULL);
  ev_periodic_start(loop, &subject.periodic);
  print_seconds("at", ev_periodic_at(&subject.periodic) - ev_now(loop));
  close_world();
}

static void call_rescheduled(const long* at) {
  open_world(1);
  init_subject(kPeriodic);
  wanted_time = kSeconds[at[0]];
  ev_periodic_set(&subject.periodic, 0., 0., tell_wanted_time);
  ev_periodic_start(loop, &subject.periodic);
  print_seconds("at", ev_periodic_at(&subject.periodic) - ev_now(loop));
  close_world();
}

static void call_signal_number(const long* at) {
  open_world(1);
  init_subject(kSignal);
  ev_signal_set(&subject.signal, (int)at[0]);
  ev_signal_start(loop, &subject.signal);
  close_world();
}

static void call_child(const long* at) {
  open_world(at[2]);
  const pid_t child = fork();
  if (child == 0) _exit(3);
  init_subject(kChild);
  ev_child_set(&subject.child, at[0] == 7 ? child : (int)at[0], (int)at[1]);
  ev_child_start(loop, &subject.child);
  siginfo_t info;
  waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
  look_on();
  printf("told %d\n", subject.child.rpid == child);
}

static const char* const kPaths[] = {NULL, "", "/", "/nowhere", "relative/nowhere"};

static void call_stat(const long* at) {
  open_world(1);
  init_subject(kStat);
  ev_stat_set(&subject.stat, kPaths[at[0]], kSeconds[at[1]]);
  ev_stat_start(loop, &subject.stat);
  printf("links %d\n", subject.stat.attr.st_nlink > 0);
  print_seconds("interval", subject.stat.interval);
  ev_stat_stat(loop, &subject.stat);
  print_subject();
  look("at once");
  ev_stat_stop(loop, &subject.stat);
  close_world();
}

static void call_embed(const long* at) {
  open_world(1);
  init_subject(kEmbed);
  ev_embed_set(&subject.embed, at[0] == 0   ? NULL
                               : at[0] == 1 ? ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV)
                               : at[0] == 2 ? ev_loop_new(EVBACKEND_POLL | EVFLAG_NOENV)
                                            : ev_loop_new(EVBACKEND_SELECT | EVFLAG_NOENV));
  if (at[1]) ev_embed_start(loop, &subject.embed);
  ev_embed_sweep(loop, &subject.embed);
  ev_embed_stop(loop, &subject.embed);
  close_world();
}

// ---- the table

static const Value kFlagValues[] = {
    {"0", 0},
    {"select", EVBACKEND_SELECT},
    {"poll", EVBACKEND_POLL},
    {"epoll", EVBACKEND_EPOLL},
    {"kqueue", EVBACKEND_KQUEUE},
    {"devpoll", EVBACKEND_DEVPOLL},
    {"port", EVBACKEND_PORT},
    {"0x100", 0x100},
    {"0x8000", 0x8000},
    {"select|poll", EVBACKEND_SELECT | EVBACKEND_POLL},
    {"forkcheck", (long)EVFLAG_FORKCHECK},
    {"noinotify", (long)EVFLAG_NOINOTIFY},
    {"nosigmask", (long)EVFLAG_NOSIGMASK},
    {"notimerfd", (long)EVFLAG_NOTIMERFD},
    {"0x10000000", 0x10000000},
    {"0x80000000", 0x80000000L},
};
static const Domain kFlags = DOMAIN_OF(kFlagValues);

static const Value kPathValues[] = {
    {"NULL", 0}, {"\"\"", 1}, {"/", 2}, {"/nowhere", 3}, {"relative/nowhere", 4}};
static const Domain kPathDomain = DOMAIN_OF(kPathValues);

static const Value kSmallValues[] = {{"0", 0}, {"1", 1}, {"2", 2}, {"3", 3}};
static const Domain kSmall = DOMAIN_OF(kSmallValues);

// With a NaN, the original's order of two timers is undefined.
static const Domain kNumbersOnly = {kSecondValues, 20};

static const Value kSignalValues[] = {
    {"-1", -1}, {"0", 0},   {"URG", SIGURG}, {"KILL", SIGKILL}, {"32", 32},       {"64", 64},
    {"65", 65}, {"66", 66}, {"1000", 1000},  {"max", INT_MAX},  {"min", INT_MIN},
};
static const Domain kSignals = DOMAIN_OF(kSignalValues);

int main(int argc, char** argv) {
  static const Call calls[] = {
      {"ev_loop_new", call_loop_new, {&kFlags, &kBooleans}},
      {"ev_loop_destroy", call_destroy, {&kLoops, &kWatchers}},
      {"ev_loop_destroy nothing", call_destroy_null, {NULL}},
      {"ev_backend and others", call_look_in, {&kLoops, &kNumbers}},
      {"ev_run", call_run, {&kLoops, &kNumbers}},
      {"ev_run empty", call_run_empty, {&kLoops, &kNumbers}},
      {"ev_break", call_break, {&kLoops, &kNumbers}},
      {"ev_ref, ev_unref", call_references, {&kSmall, &kSmall}},
      {"ev_suspend, ev_resume", call_suspend, {&kSmall, &kSmall}},
      {"ev_set_userdata", call_userdata, {&kLoops, &kBooleans}},
      {"ev_set_loop_release_cb", call_hooks, {&kBooleans, &kBooleans, &kBooleans}},
      {"ev_set_collect_interval", call_intervals, {&kTimes, &kModestTimes}},
      {"ev_sleep", call_sleep, {&kTimes}},
      {"ev_set_allocator, ev_set_syserr_cb", call_set_nothing, {NULL}},
      {"ev_start", call_start, {&kWatchers, &kSmall}},
      {"ev_stop", call_stop, {&kWatchers, &kBooleans}},
      {"ev_start, ev_stop without a watcher", call_start_null, {&kWatchers, &kBooleans}},
      {"ev_set_priority", call_priority, {&kWatchers, &kNumbers}},
      {"ev_set_priority and feed", call_fed_priority, {&kNumbers}},
      {"ev_feed_event", call_feed_event, {&kWatchers, &kEventMasks}},
      {"ev_feed_fd_event", call_feed_fd_event, {&kFds, &kEventMasks}},
      {"ev_feed_signal", call_feed_signal, {&kSignals, &kBooleans}},
      {"ev_invoke", call_invoke, {&kBooleans, &kEventMasks}},
      {"ev_clear_pending", call_clear_pending, {&kSmall}},
      {"ev_once", call_once, {&kSmall, &kEventMasks, &kTimes}},
      {"ev_async_send", call_async_send, {&kSmall}},
      {"ev_io_start", call_io, {&kEventMasks}},
      {"ev_timer_start", call_timer, {&kNumbersOnly, &kModestTimes}},
      {"ev_timer_again", call_timer_again, {&kBooleans, &kNumbersOnly}},
      {"ev_periodic_start", call_periodic, {&kModestTimes, &kTimes, &kBooleans}},
      {"ev_periodic_start from now", call_periodic_from_now, {&kModestTimes, &kTimes}},
      {"ev_periodic_start rescheduled", call_rescheduled, {&kTimes}},
      {"ev_signal_start", call_signal_number, {&kSignals}},
      {"ev_child_start", call_child, {&kNumbers, &kNumbers, &kLoops}},
      {"ev_stat_start", call_stat, {&kPathDomain, &kTimes}},
      {"ev_embed_start", call_embed, {&kSmall, &kBooleans}},
  };
  return run_calls(argc, argv, calls, sizeof calls / sizeof *calls);
}
