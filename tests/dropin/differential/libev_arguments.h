#pragma once

// The world in which libev's calls are made (arguments.h), on the clock of virtual_time.h: a loop,
// a watcher of any kind, and their state after the call.

#include <fcntl.h>
#include <sys/socket.h>

#include "arguments.h"
#include "libev_virtual.h"

enum { kCallbacksMax = 12, kFarFd = 400 };

static const double kFar = 1e9;  // Seconds: for ever.

static int pair[2];
static union ev_any_watcher subject;
static int callbacks;

static inline void on_event(struct ev_loop* of, ev_watcher* watcher, int revents) {
  printf("  callback %s revents=%#x active=%d at %.0f\n",
         watcher == (ev_watcher*)&subject ? "its" : "another", (unsigned)revents,
         ev_is_active(watcher) != 0, floor(now_in_milliseconds() / 100 + 0.5));
  if (++callbacks == kCallbacksMax) {
    printf("  enough\n");
    ev_break(of, EVBREAK_ALL);
  }
}

static inline void on_once(int revents, void* argument) {
  printf("  once revents=%#x argument=%d\n", (unsigned)revents, argument != NULL);
}

// ---- domains

static const Value kFdValues[] = {
    {"-1", -1},
    {"min", INT_MIN},
    {"its", 0},
    {"max", INT_MAX},
};
static const Domain kFds = DOMAIN_OF(kFdValues);

static inline int fd_of(long value) { return value == 0 ? pair[0] : (int)value; }

static const Value kRevents[] = {
    {"0", 0},
    {"READ", EV_READ},
    {"READ|WRITE", EV_READ | EV_WRITE},
    {"4", 4},
    {"IOFDSET", 0x80},
    {"READ|IOFDSET", EV_READ | 0x80},
    {"TIMER", EV_TIMER},
    {"CUSTOM", EV_CUSTOM},
    {"ERROR", (long)(int)EV_ERROR},
    {"-1", -1},
    {"max", INT_MAX},
    {"min", INT_MIN},
};
static const Domain kEventMasks = DOMAIN_OF(kRevents);

static const double kSeconds[] = {
    0.,  -0.,  1e-300, -1e-300, 1e-9,  1e-6,  0.3505, 1.0005,   1000.0005, -1., -1000.,
    1e9, -1e9, 1e12,   1e18,    -1e18, 1e300, -1e300, INFINITY, -INFINITY, NAN,
};
static const Value kSecondValues[] = {
    {"0", 0},     {"-0", 1},    {"1e-300", 2}, {"-1e-300", 3}, {"1e-9", 4},   {"1e-6", 5},
    {"0.35", 6},  {"1", 7},     {"1000", 8},   {"-1", 9},      {"-1000", 10}, {"1e9", 11},
    {"-1e9", 12}, {"1e12", 13}, {"1e18", 14},  {"-1e18", 15},  {"1e300", 16}, {"-1e300", 17},
    {"inf", 18},  {"-inf", 19}, {"nan", 20},
};
static const Domain kTimes = DOMAIN_OF(kSecondValues);
// Without values that a double cannot represent exactly, or that are not numbers.
static const Domain kModestTimes = {kSecondValues, 13};

typedef enum Kind {
  kNoWatcher,
  kIo,
  kTimer,
  kPeriodic,
  kSignal,
  kChild,
  kStat,
  kIdle,
  kPrepare,
  kCheck,
  kFork,
  kCleanup,
  kEmbed,
  kAsync,
  kKinds
} Kind;

static const Value kKindValues[] = {
    {"NULL", kNoWatcher},  {"io", kIo},       {"timer", kTimer}, {"periodic", kPeriodic},
    {"signal", kSignal},   {"child", kChild}, {"stat", kStat},   {"idle", kIdle},
    {"prepare", kPrepare}, {"check", kCheck}, {"fork", kFork},   {"cleanup", kCleanup},
    {"embed", kEmbed},     {"async", kAsync},
};
static const Domain kWatchers = DOMAIN_OF(kKindValues);

static const Value kLoopValues[] = {{"NULL", 0}, {"loop", 1}, {"default loop", 2}};
static const Domain kLoops = DOMAIN_OF(kLoopValues);

// ---- the world

static inline void open_world(long which) {
  signal(SIGURG, SIG_IGN);
  loop = which == 2 ? ev_default_loop(EVFLAG_NOENV) : ev_loop_new(EVFLAG_NOENV);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0) abort();
}

static inline struct ev_loop* loop_of(long which) { return which == 0 ? NULL : loop; }

static inline void init_subject(long kind) {
  ev_init((ev_watcher*)&subject, on_event);
  switch (kind) {
    case kIo:
      ev_io_set(&subject.io, pair[0], EV_WRITE);
      break;
    case kTimer:
      ev_timer_set(&subject.timer, 0.1005, 0.);
      break;
    case kPeriodic:
      ev_periodic_set(&subject.periodic, 0., 1., NULL);
      break;
    case kSignal:
      ev_signal_set(&subject.signal, SIGURG);
      break;
    case kChild:
      ev_child_set(&subject.child, 0, 0);
      break;
    case kStat:
      ev_stat_set(&subject.stat, "/", 0.);
      break;
    case kEmbed:
      ev_embed_set(&subject.embed, ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV));
      break;
    default:
      break;
  }
}

static inline void print_subject(void) {
  const ev_watcher* watcher = (const ev_watcher*)&subject;
  printf("active %d pending %d priority %d\n", ev_is_active(watcher) != 0,
         ev_is_pending(watcher) != 0, ev_priority(watcher));
}

static inline void print_seconds(const char* what, double seconds) {
  if (isnan(seconds)) {
    printf("%s nan\n", what);
  } else if (fabs(seconds) > kFar) {
    printf("%s %s\n", what, seconds > 0 ? "far" : "long ago");
  } else {
    printf("%s %.1f\n", what, tenths(seconds));
  }
}

static inline void look(const char* when) {
  callbacks = 0;
  advance(0.02);  // How often a library reads the clock must not matter.
  const int result = ev_run(loop, EVRUN_NOWAIT);
  printf("%s: %d\n", when, result);
  print_subject();
}

// Runs the loop now, soon, and much later; then with signals and traffic; then ends it.
static inline void look_on(void) {
  print_subject();
  look("at once");
  advance(100.);
  look("soon");
  advance(2000.);
  look("later");
  advance(1e10);
  look("much later");
  raise(SIGURG);
  look("signal");
}

static inline void close_world(void) {
  look_on();
  if (loop) ev_loop_destroy(loop);
}
