// The macros and functions of each kind of watcher, of the default loop and of version 3's names,
// with every argument that a program might pass: see arguments.h.
//
// Left out are the differences that docs/drop-in.md names: bad descriptors, and missing backends.
// differential: --undefined
#include "libev_arguments.h"

// ---- domains

typedef enum State { kFresh, kStarted, kStartedTwice, kPending, kStopped } State;
static const Value kStateValues[] = {{"new", kFresh},
                                     {"started", kStarted},
                                     {"started twice", kStartedTwice},
                                     {"pending", kPending},
                                     {"stopped", kStopped}};
static const Domain kStates = DOMAIN_OF(kStateValues);

static const Value kPlaceValues[] = {{"NULL", 0}, {"its", 1}, {"another", 2}};
static const Domain kPlaces = DOMAIN_OF(kPlaceValues);

static const Value kSmallValues[] = {{"0", 0}, {"1", 1}, {"2", 2}, {"7", 7}};
static const Domain kSmall = DOMAIN_OF(kSmallValues);

static const Value kPriorityValues[] = {{"-3", -3}, {"0", 0}, {"2", 2}, {"max", INT_MAX}};
static const Domain kPriorities = DOMAIN_OF(kPriorityValues);

static const Value kSignalValues[] = {{"-1", -1}, {"0", 0},   {"URG", SIGURG},  {"KILL", SIGKILL},
                                      {"64", 64}, {"65", 65}, {"max", INT_MAX}, {"min", INT_MIN}};
static const Domain kSignals = DOMAIN_OF(kSignalValues);

static const char* const kPaths[] = {NULL, "", "/", "/nowhere"};
static const Value kPathValues[] = {{"NULL", 0}, {"\"\"", 1}, {"/", 2}, {"/nowhere", 3}};
static const Domain kPathDomain = DOMAIN_OF(kPathValues);

// ---- starting and stopping

static void start(struct ev_loop* of, long kind, union ev_any_watcher* watcher) {
  switch (kind) {
    case kIo:
      ev_io_start(of, &watcher->io);
      break;
    case kTimer:
      ev_timer_start(of, &watcher->timer);
      break;
    case kPeriodic:
      ev_periodic_start(of, &watcher->periodic);
      break;
    case kSignal:
      ev_signal_start(of, &watcher->signal);
      break;
    case kChild:
      ev_child_start(of, &watcher->child);
      break;
    case kStat:
      ev_stat_start(of, &watcher->stat);
      break;
    case kIdle:
      ev_idle_start(of, &watcher->idle);
      break;
    case kPrepare:
      ev_prepare_start(of, &watcher->prepare);
      break;
    case kCheck:
      ev_check_start(of, &watcher->check);
      break;
    case kFork:
      ev_fork_start(of, &watcher->fork);
      break;
    case kCleanup:
      ev_cleanup_start(of, &watcher->cleanup);
      break;
    case kEmbed:
      ev_embed_start(of, &watcher->embed);
      break;
    default:
      ev_async_start(of, &watcher->async);
  }
}

static void stop(struct ev_loop* of, long kind, union ev_any_watcher* watcher) {
  switch (kind) {
    case kIo:
      ev_io_stop(of, &watcher->io);
      break;
    case kTimer:
      ev_timer_stop(of, &watcher->timer);
      break;
    case kPeriodic:
      ev_periodic_stop(of, &watcher->periodic);
      break;
    case kSignal:
      ev_signal_stop(of, &watcher->signal);
      break;
    case kChild:
      ev_child_stop(of, &watcher->child);
      break;
    case kStat:
      ev_stat_stop(of, &watcher->stat);
      break;
    case kIdle:
      ev_idle_stop(of, &watcher->idle);
      break;
    case kPrepare:
      ev_prepare_stop(of, &watcher->prepare);
      break;
    case kCheck:
      ev_check_stop(of, &watcher->check);
      break;
    case kFork:
      ev_fork_stop(of, &watcher->fork);
      break;
    case kCleanup:
      ev_cleanup_stop(of, &watcher->cleanup);
      break;
    case kEmbed:
      ev_embed_stop(of, &watcher->embed);
      break;
    default:
      ev_async_stop(of, &watcher->async);
  }
}

static union ev_any_watcher another;  // It has the subject's kind, and was only initialised.

static union ev_any_watcher* place_of(long value) {
  return value == 0 ? NULL : value == 1 ? &subject : &another;
}

static void bring_to(long kind, long state) {
  init_subject(kind);
  another = subject;
  if (state >= kStarted) start(loop, kind, &subject);
  if (state == kStartedTwice) start(loop, kind, &subject);
  if (state == kPending) ev_feed_event(loop, &subject, EV_CUSTOM);
  if (state == kStopped) stop(loop, kind, &subject);
}

static void call_start(const long* at) {
  open_world(2);
  bring_to(at[0], at[1]);
  start(loop, at[0], place_of(at[2]));
  printf("pending %d\n", ev_is_pending(&subject.io) != 0);
  close_world();
}

static void call_stop(const long* at) {
  open_world(2);
  bring_to(at[0], at[1]);
  stop(loop, at[0], place_of(at[2]));
  printf("pending %d\n", ev_is_pending(&subject.io) != 0);
  close_world();
}

// ---- initialising

static void on_io(struct ev_loop* of, ev_io* watcher, int revents) {
  on_event(of, (ev_watcher*)watcher, revents);
}
static void on_timer(struct ev_loop* of, ev_timer* watcher, int revents) {
  on_event(of, (ev_watcher*)watcher, revents);
}
static void on_periodic(struct ev_loop* of, ev_periodic* watcher, int revents) {
  on_event(of, (ev_watcher*)watcher, revents);
}
static void on_signal(struct ev_loop* of, ev_signal* watcher, int revents) {
  on_event(of, (ev_watcher*)watcher, revents);
}
static void on_child(struct ev_loop* of, ev_child* watcher, int revents) {
  on_event(of, (ev_watcher*)watcher, revents);
}
static void on_stat(struct ev_loop* of, ev_stat* watcher, int revents) {
  on_event(of, (ev_watcher*)watcher, revents);
}
static void on_idle(struct ev_loop* of, ev_idle* watcher, int revents) {
  on_event(of, (ev_watcher*)watcher, revents);
}
static void on_prepare(struct ev_loop* of, ev_prepare* watcher, int revents) {
  on_event(of, (ev_watcher*)watcher, revents);
}
static void on_check(struct ev_loop* of, ev_check* watcher, int revents) {
  on_event(of, (ev_watcher*)watcher, revents);
}
static void on_fork(struct ev_loop* of, ev_fork* watcher, int revents) {
  on_event(of, (ev_watcher*)watcher, revents);
}
static void on_cleanup(struct ev_loop* of, ev_cleanup* watcher, int revents) {
  on_event(of, (ev_watcher*)watcher, revents);
}
static void on_embed(struct ev_loop* of, ev_embed* watcher, int revents) {
  on_event(of, (ev_watcher*)watcher, revents);
}
static void on_async(struct ev_loop* of, ev_async* watcher, int revents) {
  on_event(of, (ev_watcher*)watcher, revents);
}

static void begin_init(void) {
  open_world(2);
  memset(&subject, 0, sizeof subject);
}

static void end_init(long kind) {
  print_subject();
  start(loop, kind, &subject);
  close_world();
}

static void call_io_init(const long* at) {
  begin_init();
  ev_io_init(&subject.io, at[0] ? on_io : NULL, pair[0], (int)at[1]);
  ev_io_modify(&subject.io, (int)at[2]);
  printf("events %#x\n", (unsigned)subject.io.events);
  end_init(kIo);
}

static void call_timer_init(const long* at) {
  begin_init();
  ev_timer_init(&subject.timer, at[0] ? on_timer : NULL, kSeconds[at[1]], kSeconds[at[2]]);
  end_init(kTimer);
}

static void call_periodic_init(const long* at) {
  begin_init();
  ev_periodic_init(&subject.periodic, at[0] ? on_periodic : NULL, kSeconds[at[1]], kSeconds[at[2]],
                   NULL);
  end_init(kPeriodic);
}

static void call_signal_init(const long* at) {
  begin_init();
  ev_signal_init(&subject.signal, at[0] ? on_signal : NULL, (int)at[1]);
  end_init(kSignal);
}

static void call_child_init(const long* at) {
  begin_init();
  ev_child_init(&subject.child, at[0] ? on_child : NULL, (int)at[1], (int)at[2]);
  printf("flags %d\n", subject.child.flags);
  end_init(kChild);
}

static void call_stat_init(const long* at) {
  begin_init();
  ev_stat_init(&subject.stat, at[0] ? on_stat : NULL, kPaths[at[1]], kSeconds[at[2]]);
  end_init(kStat);
}

static void call_embed_init(const long* at) {
  begin_init();
  ev_embed_init(&subject.embed, at[0] ? on_embed : NULL,
                at[1] ? ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV) : NULL);
  end_init(kEmbed);
}

// The kinds whose second step does nothing.
static void call_plain_init(const long* at) {
  begin_init();
  switch (at[0]) {
    case kPrepare:
      ev_prepare_init(&subject.prepare, at[1] ? on_prepare : NULL);
      ev_prepare_set(&subject.prepare);
      break;
    case kCheck:
      ev_check_init(&subject.check, at[1] ? on_check : NULL);
      ev_check_set(&subject.check);
      break;
    case kFork:
      ev_fork_init(&subject.fork, at[1] ? on_fork : NULL);
      ev_fork_set(&subject.fork);
      break;
    case kCleanup:
      ev_cleanup_init(&subject.cleanup, at[1] ? on_cleanup : NULL);
      ev_cleanup_set(&subject.cleanup);
      break;
    case kAsync:
      ev_async_init(&subject.async, at[1] ? on_async : NULL);
      ev_async_set(&subject.async);
      break;
    default:
      ev_idle_init(&subject.idle, at[1] ? on_idle : NULL);
      ev_idle_set(&subject.idle);
  }
  ev_feed_event(loop, &subject, (int)at[2]);
  end_init(at[0]);
}

static void call_init(const long* at) {
  open_world(2);
  bring_to(at[0], at[1]);
  // ev(3) forbids to change the priority of an active watcher.
  if (!ev_is_active(&subject.io)) ev_set_priority(&subject.io, (int)at[2]);
  printf("priority %d\n", ev_priority(&subject.io));
  if (at[1] == kFresh) ev_init(&subject.io, on_io);
  printf("priority %d callback %d\n", ev_priority(&subject.io), ev_cb(&subject.io) == on_io);
  close_world();
}

// ---- loops

static void call_backends(const long* at) {
  (void)at;
  const unsigned int ours = EVBACKEND_SELECT | EVBACKEND_POLL | EVBACKEND_EPOLL;
  printf("%#x %#x %#x\n", ev_supported_backends() & ours, ev_recommended_backends() & ours,
         ev_embeddable_backends() & ours);
  const double now = ev_time();
  virtual_advance(kSecond);
  print_seconds("passed", ev_time() - now);
}

static void call_default(const long* at) {
  open_world(at[0]);
  init_subject(at[1]);
  if (at[1] != kNoWatcher) start(loop, at[1], &subject);
  if (at[2] == 0) ev_default_fork();
  if (at[2] == 1) ev_default_destroy();
  printf("default %d\n", ev_is_default_loop(loop));
  if (at[2] == 0) close_world();
}

static void call_counts(const long* at) {
  open_world(at[0]);
  struct ev_loop* of = loop_of(at[0]);
  if (at[1] == 0) printf("%u\n", ev_loop_count(of));
  if (at[1] == 1) printf("%u\n", ev_loop_depth(of));
  if (at[1] == 2) ev_loop_verify(of);
  printf("verified\n");
}

// A loop that is not ended ends without the timer.
static void on_unloop(struct ev_loop* of, ev_timer* watcher, int revents) {
  static int calls;
  on_event(of, (ev_watcher*)watcher, revents);
  printf("  depth %u\n", ev_loop_depth(of));
  if (++calls == 3) ev_timer_stop(of, watcher);
  ev_unloop(of, (int)(intptr_t)watcher->data);
}

static void call_unloop(const long* at) {
  open_world(1);
  ev_timer_init(&subject.timer, on_unloop, 0.1005, 0.1005);
  subject.timer.data = (void*)(intptr_t)at[1];
  ev_timer_start(loop, &subject.timer);
  ev_unloop(loop_of(at[2]), (int)at[1]);
  ev_loop(loop, (int)at[0]);
  printf("count %u\n", ev_loop_count(loop) > 0);
  ev_timer_stop(loop, &subject.timer);
  close_world();
}

// ---- the table

// At each of these a loop ends that has one timer.
static const Value kHowValues[] = {{"CANCEL", EVBREAK_CANCEL},
                                   {"ONE", EVBREAK_ONE},
                                   {"ALL", EVBREAK_ALL},
                                   {"3", 3},
                                   {"-1", -1},
                                   {"max", INT_MAX}};
static const Domain kHows = DOMAIN_OF(kHowValues);

static const Value kRunValues[] = {{"NOWAIT", EVRUN_NOWAIT},
                                   {"ONCE", EVRUN_ONCE},
                                   {"3", 3},
                                   {"0", 0},
                                   {"0x100", 0x100},
                                   {"-1", -1}};
static const Domain kRuns = DOMAIN_OF(kRunValues);

static const Value kPlainValues[] = {{"idle", kIdle}, {"prepare", kPrepare}, {"check", kCheck},
                                     {"fork", kFork}, {"cleanup", kCleanup}, {"async", kAsync}};
static const Domain kPlain = DOMAIN_OF(kPlainValues);

// All kinds of watchers.
static const Domain kOnlyKinds = {kKindValues + 1, kKinds - 1};

int main(int argc, char** argv) {
  static const Call calls[] = {
      {"ev_io_start and others", call_start, {&kOnlyKinds, &kStates, &kPlaces}},
      {"ev_io_stop and others", call_stop, {&kOnlyKinds, &kStates, &kPlaces}},
      {"ev_io_init", call_io_init, {&kBooleans, &kEventMasks, &kEventMasks}},
      {"ev_timer_init", call_timer_init, {&kBooleans, &kModestTimes, &kModestTimes}},
      {"ev_periodic_init", call_periodic_init, {&kBooleans, &kModestTimes, &kModestTimes}},
      {"ev_signal_init", call_signal_init, {&kBooleans, &kSignals}},
      {"ev_child_init", call_child_init, {&kBooleans, &kNumbers, &kNumbers}},
      {"ev_stat_init", call_stat_init, {&kBooleans, &kPathDomain, &kModestTimes}},
      {"ev_embed_init", call_embed_init, {&kBooleans, &kBooleans}},
      {"ev_idle_init and others", call_plain_init, {&kPlain, &kBooleans, &kEventMasks}},
      {"ev_init", call_init, {&kOnlyKinds, &kStates, &kPriorities}},
      {"ev_supported_backends and others", call_backends, {NULL}},
      {"ev_default_fork", call_default, {&kLoops, &kWatchers, &kBooleans}},
      {"ev_loop_count", call_counts, {&kLoops, &kSmall}},
      {"ev_unloop", call_unloop, {&kRuns, &kHows, &kLoops}},
  };
  return run_calls(argc, argv, calls, sizeof calls / sizeof *calls);
}
