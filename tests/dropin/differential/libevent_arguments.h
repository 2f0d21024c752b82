#pragma once

// The world in which libevent's calls are made (arguments.h), on the clock of virtual_steps.h: a
// base with descriptors, an event of any kind, and their state after the call.

#include "arguments.h"
#include "libevent_cases.h"
#include "virtual_steps.h"

enum { kCallbacksMax = 12, kFarFd = 400, kWorldPriorities = 3 };
static const int64_t kFar = 100LL * 366 * 86400;  // Seconds: for ever.

static struct event_base* base;
static int pair[2];
static struct event* subject;
static int callbacks;
static int tells_no_time;

static inline int64_t steps_now(void) { return (virtual_now - kMonotonicStart) / kStep / 1000; }

static inline void count_callback(void) {
  if (++callbacks < kCallbacksMax) return;
  printf("  enough\n");
  event_base_loopbreak(base);
}

static inline void on_event(evutil_socket_t fd, short what, void* argument) {
  printf("  callback fd=%s what=%#x argument=%s at %lld\n",
         fd == pair[0] ? "its"
         : fd < 0      ? "none"
                       : "another",
         (unsigned)what,
         argument == NULL      ? "none"
         : argument == subject ? "itself"
                               : "another",
         (long long)steps_now());
  count_callback();
}

static inline void on_finalized(struct event* ev, void* argument) {
  printf("  finalized %d %d\n", ev == subject, argument == NULL);
  count_callback();
}

// The message before the original aborts the program is part of the result.
static inline void on_world_log(int severity, const char* text) {
  if (severity != EVENT_LOG_ERR) on_log(severity, text);
}

static inline void nothing_to_wait_for(void) {
  printf("  waits\n");
  event_base_loopbreak(base);
}

// ---- domains

static const Value kFdValues[] = {
    {"-1", -1},         {"-2", -2}, {"min", INT_MIN},     {"its", 0},
    {"closed", kFarFd}, {"70", 70}, {"beyond", 0x100000}, {"max", INT_MAX},
};
static const Domain kFds = DOMAIN_OF(kFdValues);

static inline int fd_of(long value) { return value == 0 ? pair[0] : (int)value; }

static const Value kWhatValues[] = {
    {"0", 0},
    {"TIMEOUT", EV_TIMEOUT},
    {"READ", EV_READ},
    {"WRITE|PERSIST", EV_WRITE | EV_PERSIST},
    {"SIGNAL", EV_SIGNAL},
    {"SIGNAL|PERSIST|ET", EV_SIGNAL | EV_PERSIST | EV_ET},
    {"SIGNAL|READ", EV_SIGNAL | EV_READ},
    {"ET", EV_ET},
    {"CLOSED", EV_CLOSED},
    {"READ|ET|CLOSED", EV_READ | EV_ET | EV_CLOSED},
    {"FINALIZE", EV_FINALIZE},
    {"0x100", 0x100},
    {"0x7f00", 0x7f00},
    {"0x7fff", 0x7fff},
    {"-1", -1},
    {"min", SHRT_MIN},
};
static const Domain kWhats = DOMAIN_OF(kWhatValues);

static const struct timeval kTimes[] = {
    {0, 0},
    {0, 1},
    {0, 350000},
    {1, 0},
    {0, -1},
    {-1, 0},
    {-1, -1},
    {-1, 999999},
    {1, -1},
    {1, -500000},
    {1, -1500000},
    {0, 1000000},
    {0, 1500000},
    {0, -1000000},
    {0, 0x50000001},
    {0, 0x50100001},
    {INT_MAX, 0},
    {INT_MIN, 0},
    {1L << 33, 0},
    {1000000000000, 0},
    {0, 1L << 40},
    {0, -(1L << 40)},
    {LONG_MIN, 0},
    {0, LONG_MAX},
    {0, LONG_MIN},
    {LONG_MIN, LONG_MIN},
    {LONG_MAX / 2, LONG_MAX / 2},
};
enum { kNoTime = -1 };
static const Value kTimeValues[] = {
    {"NULL", kNoTime},   {"0", 0},          {"1us", 1},         {"350ms", 2},
    {"1s", 3},           {"-1us", 4},       {"-1s", 5},         {"-1s-1us", 6},
    {"-1s+999999us", 7}, {"1s-1us", 8},     {"1s-500000us", 9}, {"1s-1500000us", 10},
    {"1000000us", 11},   {"1500000us", 12}, {"-1000000us", 13}, {"common 0", 14},
    {"common 1", 15},    {"intmax s", 16},  {"intmin s", 17},   {"2^33 s", 18},
    {"10^12 s", 19},     {"2^40 us", 20},   {"-2^40 us", 21},   {"min s", 22},
    {"max us", 23},      {"min us", 24},    {"min min", 25},    {"half max", 26},
};
static const Domain kTimeouts = DOMAIN_OF(kTimeValues);

// The original may return a time less than it was given if the microseconds are out of range.
static inline int is_odd_time(long value) {
  const struct timeval* time = value == kNoTime ? NULL : &kTimes[value];
  return time && (time->tv_usec < 0 || time->tv_usec >= 1000000);
}

static inline const struct timeval* time_of(long value) {
  return value == kNoTime ? NULL : &kTimes[value];
}

typedef enum Kind {
  kNullEvent,
  kZeroed,
  kBaseless,
  kTimer,
  kPersistentTimer,
  kArmed,
  kArmedPersistent,
  kReader,
  kAddedReader,
  kAddedPersistent,
  kReadable,
  kSignalEvent,
  kAddedSignal,
  kActive,
  kActiveSignal,
  kUnwatched,
  kFinalizing
} Kind;

static const Value kEventValues[] = {
    {"NULL", kNullEvent},
    {"zeroed", kZeroed},
    {"without a base", kBaseless},
    {"timer", kTimer},
    {"persistent timer", kPersistentTimer},
    {"armed timer", kArmed},
    {"armed persistent timer", kArmedPersistent},
    {"reader", kReader},
    {"added reader", kAddedReader},
    {"added persistent reader", kAddedPersistent},
    {"readable reader", kReadable},
    {"signal", kSignalEvent},
    {"added signal", kAddedSignal},
    {"active timer", kActive},
    {"active signal", kActiveSignal},
    {"reader of -1", kUnwatched},
    {"finalizing", kFinalizing},
};
static const Domain kEvents = DOMAIN_OF(kEventValues);

// ---- the world

static inline struct event* event_on(int fd, int what) {
  return event_new(base, fd, (short)what, on_event, event_self_cbarg());
}

static inline struct event* make_timer(long kind) {
  struct event* ev =
      event_on(-1, kind == kPersistentTimer || kind == kArmedPersistent ? EV_PERSIST : 0);
  if (kind == kArmed || kind == kArmedPersistent) add_in(ev, 450000);
  if (kind == kActive) event_active(ev, EV_TIMEOUT, 1);
  return ev;
}

static inline struct event* make_reader(long kind) {
  struct event* ev = event_on(kind == kUnwatched ? -1 : pair[0],
                              kind == kAddedPersistent ? EV_READ | EV_PERSIST : EV_READ);
  if (kind != kReader) event_add(ev, NULL);
  if (kind == kReadable) put(pair[1], "x");
  return ev;
}

static inline struct event* make_signal(long kind) {
  struct event* ev = event_on(SIGUSR1, EV_SIGNAL | EV_PERSIST);
  if (kind == kAddedSignal) event_add(ev, NULL);
  if (kind == kActiveSignal) event_active(ev, EV_SIGNAL, 2);
  return ev;
}

static inline struct event* make_event(long kind) {
  struct event* ev;
  switch (kind) {
    case kNullEvent:
      return NULL;
    case kZeroed:
      return calloc(1, sizeof *ev);
    case kBaseless:
      return event_new(NULL, -1, EV_PERSIST, on_event, event_self_cbarg());
    case kReader:
    case kAddedReader:
    case kAddedPersistent:
    case kReadable:
    case kUnwatched:
      return make_reader(kind);
    case kSignalEvent:
    case kAddedSignal:
    case kActiveSignal:
      return make_signal(kind);
    case kFinalizing:
      ev = event_on(-1, 0);
      event_finalize(0, ev, on_finalized);
      return ev;
    default:
      return make_timer(kind);
  }
}

static inline void open_world(int method) {
  event_set_log_callback(on_world_log);
  use_steps(nothing_to_wait_for);
  signal(SIGUSR1, SIG_IGN);
  base = base_with(method, 0);
  event_base_priority_init(base, kWorldPriorities);
  open_pair(pair);
}

static inline void open_world_with(long kind) {
  open_world(0);
  subject = make_event(kind);
  errno = 0;
}

static inline void print_result(int value) {
  const int error = errno;
  show("result", value);
  if (value < 0 && error != 0) show_text("  errno", strerror(error));
}

static inline void print_subject(void) {
  if (subject == NULL || subject->ev_base == NULL) return;
  struct timeval until = {-7, -7};
  const int mask = event_pending(subject, 0xff, &until);
  printf("pending %#x flags %#x priority %d", (unsigned)mask,
         (unsigned)subject->ev_evcallback.evcb_flags, event_get_priority(subject));
  if (until.tv_sec != -7 && mask & EV_TIMEOUT && !tells_no_time) {
    const int64_t seconds = until.tv_sec - wall_micros_now() / 1000000;
    printf(seconds > kFar    ? " far"
           : seconds < -kFar ? " long ago"
                             : " until %lld",
           (long long)seconds * 1000000 + until.tv_usec - wall_micros_now() % 1000000);
  }
  printf("\n");
}

static inline void look(const char* when) {
  callbacks = 0;
  printf("%s: %d active, %d added\n", when,
         event_base_get_num_events(base, EVENT_BASE_COUNT_ACTIVE) > 0,
         event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) > 0);
  show("loop", event_base_loop(base, EVLOOP_NONBLOCK));
}

// Runs the loop now, soon, and much later; then with a signal; then ends it.
static inline void close_world(void) {
  print_subject();
  look("at once");
  print_subject();
  advance_steps(1);
  look("soon");
  advance_steps(20);
  look("later");
  advance_steps(100000000);
  look("much later");
  raise(SIGUSR1);
  look("signal");
  event_base_free(base);
}
