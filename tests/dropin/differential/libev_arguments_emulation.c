// The functions of libev's emulation of libevent 1.4 with every argument that a program might pass:
// see arguments.h.
//
// Left out are the differences that docs/drop-in.md names: event_pending()'s time, and event_del()
// of an event that event_active() has queued. Events without a base are left out too: the original
// then writes through a null loop.
// differential: --undefined
#include "libev_arguments.h"
#include "libev_emulation.h"

static Event event;
static void* other_base;

static void on_emulated(int fd, short what, void* argument) {
  printf("  callback fd=%s what=%#x argument=%d at %.0f\n",
         fd == pair[0] ? "its"
         : fd < 0      ? "none"
                       : "another",
         (unsigned)what, argument == &event, floor(now_in_milliseconds() / 100 + 0.5));
  if (++callbacks == kCallbacksMax) {
    printf("  enough\n");
    ev_break(loop, EVBREAK_ALL);
  }
}

// ---- domains

typedef enum EventKind {
  kNullEvent,
  kEventTimer,
  kEventPersistentTimer,
  kEventArmed,
  kEventReader,
  kEventWriter,
  kEventAddedReader,
  kEventAddedWriter,
  kEventSignal,
  kEventAddedSignal
} EventKind;

static const Value kEventValues[] = {
    {"NULL", kNullEvent},
    {"timer", kEventTimer},
    {"persistent timer", kEventPersistentTimer},
    {"armed timer", kEventArmed},
    {"reader", kEventReader},
    {"writer", kEventWriter},
    {"added reader", kEventAddedReader},
    {"added persistent writer", kEventAddedWriter},
    {"signal", kEventSignal},
    {"added signal", kEventAddedSignal},
};
static const Domain kEvents = DOMAIN_OF(kEventValues);

static struct timeval kTimevals[] = {
    {0, 0},
    {0, 1},
    {0, 350500},
    {1, 500},
    {0, -1},
    {-1, 0},
    {-1, 999999},
    {1, -500500},
    {1, -1500500},
    {0, 1500500},
    {0, -1000000},
    {INT_MAX, 0},
    {INT_MIN, 0},
    {1L << 33, 0},
    {1000000000000, 0},
    {0, 1L << 40},
    {0, -(1L << 40)},
    {LONG_MAX, 0},
    {LONG_MIN, 0},
    {0, LONG_MAX},
    {0, LONG_MIN},
    {LONG_MAX, LONG_MAX},
    {LONG_MIN, LONG_MIN},
};
static const Value kTimevalValues[] = {
    {"NULL", -1},    {"0", 0},           {"1us", 1},          {"350ms", 2},     {"1s", 3},
    {"-1us", 4},     {"-1s", 5},         {"-1s+999999us", 6}, {"1s-500ms", 7},  {"1s-1500ms", 8},
    {"1500ms", 9},   {"-1000000us", 10}, {"intmax s", 11},    {"intmin s", 12}, {"2^33 s", 13},
    {"10^12 s", 14}, {"2^40 us", 15},    {"-2^40 us", 16},    {"max s", 17},    {"min s", 18},
    {"max us", 19},  {"min us", 20},     {"max max", 21},     {"min min", 22},
};
static const Domain kTimevalDomain = DOMAIN_OF(kTimevalValues);

static struct timeval* timeval_of(long value) { return value < 0 ? NULL : &kTimevals[value]; }

// ---- the world

static Event* make_event(long kind) {
  static const short whats[] = {[kEventPersistentTimer] = 0x10,        [kEventReader] = EV_READ,
                                [kEventAddedReader] = EV_READ,         [kEventWriter] = EV_WRITE,
                                [kEventAddedWriter] = EV_WRITE | 0x10, [kEventSignal] = EV_SIGNAL,
                                [kEventAddedSignal] = EV_SIGNAL};
  if (kind == kNullEvent) return NULL;
  const int fd = kind < kEventReader ? -1 : kind < kEventSignal ? pair[0] : SIGURG;
  event_set(&event, fd, whats[kind], on_emulated, &event);
  if (kind == kEventArmed) event_add(&event, &kTimevals[2]);
  if (kind == kEventAddedReader || kind == kEventAddedWriter || kind == kEventAddedSignal) {
    event_add(&event, NULL);
  }
  return &event;
}

static void open_emulation(void) {
  open_world(1);
  ev_loop_destroy(loop);
  loop = event_init();
  other_base = event_base_new();
}

static void print_event(const Event* of) {
  if (of == NULL) return;
  const int all = EV_READ | EV_WRITE | EV_TIMER | EV_SIGNAL;
  printf("pending %#x flags %#x result %#x priority %d\n",
         (unsigned)event_pending(&event, (short)all, NULL), (unsigned)of->flags,
         (unsigned)of->result, of->priority);
}

static void look_at(const char* when, const Event* of) {
  callbacks = 0;
  advance(0.02);
  printf("%s: %d\n", when, event_loop(EVRUN_NOWAIT));
  print_event(of);
}

static void close_emulation(const Event* of) {
  print_event(of);
  look_at("at once", of);
  advance(100.);
  look_at("soon", of);
  advance(2000.);
  look_at("later", of);
  advance(1e10);
  look_at("much later", of);
  raise(SIGURG);
  look_at("signal", of);
}

static void print_result(int result) { printf("result %d\n", result); }

// ---- calls

static void call_names(const long* at) {
  open_emulation();
  printf("%s %s %s\n", event_get_version(), event_get_method(),
         event_base_get_method(at[0] ? other_base : NULL));
}

static void call_init(const long* at) {
  for (long i = 0; i < at[0]; i++) printf("%d\n", event_init() != NULL);
  event_base_free(at[1] ? event_base_new() : NULL);
  printf("freed\n");
}

static void call_add(const long* at) {
  open_emulation();
  Event* of = make_event(at[0]);
  print_result(event_add(of, timeval_of(at[1])));
  close_emulation(of);
}

static void call_del(const long* at) {
  open_emulation();
  Event* of = make_event(at[0]);
  for (long i = 0; i < at[1]; i++) print_result(event_del(of));
  close_emulation(of);
}

static void call_active(const long* at) {
  open_emulation();
  Event* of = make_event(at[0]);
  event_active(of, (int)at[1], (short)at[2]);
  close_emulation(of);
}

static void call_pending(const long* at) {
  struct timeval until = {-7, -7};
  open_emulation();
  Event* of = make_event(at[0]);
  printf("%#x\n", (unsigned)event_pending(of, (short)at[1], at[2] ? &until : NULL));
  printf("told %d\n", until.tv_sec != -7);
}

static void call_set(const long* at) {
  open_emulation();
  event_set(at[0] ? &event : NULL, fd_of(at[1]), (short)at[2], on_emulated, &event);
  print_event(&event);
  print_result(event_add(&event, NULL));
  close_emulation(&event);
}

static void call_callback(const long* at) {
  open_emulation();
  printf("%d\n", event_get_callback(make_event(at[0])) == on_emulated);
}

static void call_priority_set(const long* at) {
  open_emulation();
  Event* of = make_event(at[0]);
  print_result(event_priority_set(of, (int)at[1]));
  close_emulation(of);
}

static void call_priority_init(const long* at) {
  if (at[0]) open_emulation();
  print_result(event_priority_init((int)at[1]));
  print_result(event_base_priority_init(at[0] ? other_base : NULL, (int)at[1]));
}

static void call_base_set(const long* at) {
  open_emulation();
  Event* of = make_event(at[1]);
  print_result(event_base_set(at[0] ? other_base : NULL, of));
  printf("base %d\n", of->base == other_base);
}

static void call_loop(const long* at) {
  open_emulation();
  make_event(at[0]);
  ev_once(loop, -1, 0, 5.0005, on_once, NULL);  // Both wait equally long.
  callbacks = 0;
  print_result(at[2] ? event_base_loop(loop, (int)at[1]) : event_loop((int)at[1]));
  print_event(&event);
}

static void call_loop_null(const long* at) {
  if (at[0] == 1) open_emulation();
  print_result(at[1] ? event_base_loop(NULL, EVRUN_NOWAIT) : event_dispatch());
}

static void call_loopexit(const long* at) {
  open_emulation();
  make_event(kEventAddedWriter);
  print_result(at[1] ? event_base_loopexit(loop, timeval_of(at[0]))
                     : event_loopexit(timeval_of(at[0])));
  close_emulation(&event);
}

static void call_once(const long* at) {
  open_emulation();
  print_result(
      at[2] ? event_base_once(loop, pair[0], (short)at[1], on_emulated, &event, timeval_of(at[0]))
            : event_once(-1, (short)at[1], on_emulated, &event, timeval_of(at[0])));
  close_emulation(NULL);
}

// ---- the table

static const Value kWhatValues[] = {{"0", 0},
                                    {"READ", EV_READ},
                                    {"WRITE", EV_WRITE},
                                    {"READ|WRITE", EV_READ | EV_WRITE},
                                    {"SIGNAL", EV_SIGNAL},
                                    {"TIMER", EV_TIMER},
                                    {"PERSIST", 0x10},
                                    {"0x7fff", 0x7fff},
                                    {"-1", -1},
                                    {"min", SHRT_MIN}};
static const Domain kWhats = DOMAIN_OF(kWhatValues);

// No timeout together with other events.
static const Domain kResults = {kWhatValues, 6};

static const Value kCountValues[] = {{"-1", -1}, {"0", 0}, {"1", 1}, {"max", SHRT_MAX}};
static const Domain kCounts = DOMAIN_OF(kCountValues);

static const Value kLoopFlagValues[] = {{"ONCE", EVRUN_ONCE},
                                        {"NONBLOCK", EVRUN_NOWAIT},
                                        {"both", 3},
                                        {"-1", -1},
                                        {"0x100|NONBLOCK", 0x100 | EVRUN_NOWAIT}};
static const Domain kLoopFlags = DOMAIN_OF(kLoopFlagValues);

int main(int argc, char** argv) {
  static const Call calls[] = {
      {"names", call_names, {&kBooleans}},
      {"event_init, event_base_free", call_init, {&kBooleans, &kBooleans}},
      {"event_add", call_add, {&kEvents, &kTimevalDomain}},
      {"event_del", call_del, {&kEvents, &kBooleans}},
      {"event_active", call_active, {&kEvents, &kResults, &kCounts}},
      {"event_pending", call_pending, {&kEvents, &kWhats, &kBooleans}},
      {"event_set", call_set, {&kBooleans, &kFds, &kWhats}},
      {"event_get_callback", call_callback, {&kEvents}},
      {"event_priority_set", call_priority_set, {&kEvents, &kNumbers}},
      {"event_priority_init", call_priority_init, {&kBooleans, &kNumbers}},
      {"event_base_set", call_base_set, {&kBooleans, &kEvents}},
      {"event_loop", call_loop, {&kEvents, &kLoopFlags, &kBooleans}},
      {"event_loop without a base", call_loop_null, {&kBooleans, &kBooleans}},
      {"event_loopexit", call_loopexit, {&kTimevalDomain, &kBooleans}},
      {"event_once", call_once, {&kTimevalDomain, &kWhats, &kBooleans}},
  };
  return run_calls(argc, argv, calls, sizeof calls / sizeof *calls);
}
