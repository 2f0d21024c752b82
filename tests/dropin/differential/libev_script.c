// Random scripts over watchers of every kind, on a virtual clock (virtual_time.h). They print every
// call, every callback with its revents and the state after every turn, in order.
// differential: --seeds 1:4000 --chunk 500
//
// There are three kinds of scripts. In the first no turn blocks. In the second turns block, but the
// backend is poll or select, or no watcher has a descriptor: on an epoll set the original makes an
// extra turn when an event is ready that was wanted until the turn before. In the third that may
// happen, and watchers that count turns are left out.
//
// Scripts do only what ev(3) allows: no priority is changed while a watcher is active or pending,
// no loop is run from a prepare or check callback, ev_unref() is called no more often than there
// are active watchers.

#include "libev_pool.h"

enum { kCallbacksMax = 250, kDepthMax = 3 };

static const double kStartOfTime = 2100000000.;

// Less than a minute in total, since a loop may wake up now and then to read the wall clock.
static const double kGuardSeconds = 0.3 + 510e-6;

static ev_timer guard;  // Ends a run that may block.
static bool is_guarded;

typedef enum Style { kStepping, kBlocking, kUncounted } Style;
static Style style;
static bool has_io;
static bool has_loop_fork;
static int callbacks;         // In this script.
static int callbacks_in_run;  // Since the outermost ev_run() began.
static int run_budget;
static int extra_references;
static int once_count;
static int pending_skips;
static bool is_suspendable;
static bool is_over;
static bool has_signalfd;
static bool had_default_loop;

static void act(int most, bool in_hook);

// Not ev_pending_count(): the original's includes internal events, and cleared ones.
static int pending_slots(void) {
  int count = 0;
  for (const Slot* slot = slots; slot < slots + kSlots; slot++) {
    count += is_pending(slot);
  }
  return count;
}

static bool is_timer_pending(void) {
  for (const Slot* slot = slots; slot < slots + kSlots; slot++) {
    if ((slot->kind == kTimer || slot->kind == kPeriodic) && is_pending(slot)) {
      return true;
    }
  }
  return false;
}

// --- Callbacks. ---

static void print_event(const char* what, int number, int revents) {
  printf("%s %d revents %x depth %u now %d\n", what, number, (unsigned)revents, ev_depth(loop),
         milliseconds_of(ev_now(loop) - kStartOfTime));
}

static void count_callback(void) {
  callbacks++;
  callbacks_in_run++;
  virtual_advance(kTick);
  if (callbacks >= kCallbacksMax || callbacks_in_run >= run_budget) {
    printf("enough\n");
    ev_break(loop, EVBREAK_ALL);
  }
}

static void drain(int fd) {
  char bytes[256];
  while (read(fd, bytes, sizeof bytes) > 0) {
  }
}

static void on_event(struct ev_loop* of, ev_watcher* watcher, int revents) {
  Slot* const slot = watcher->data;
  const bool in_hook = slot->kind == kPrepare || slot->kind == kCheck;
  if (of != loop) {
    printf("another loop\n");
  }
  printf("%s ", kind_names[slot->kind]);
  print_event("callback", number_of(slot), revents);
  printf("  active %d pending %d of %d\n", is_active(slot), is_pending(slot), pending_slots());
  count_callback();
  if (slot->kind == kIo && random_chance(50)) {
    drain(slot->watcher->io.fd);
  }
  if (callbacks < kCallbacksMax && !is_over) {
    act(2, in_hook);
  }
}

static void on_guard(struct ev_loop* of, ev_timer* watcher, int revents) {
  (void)of;
  (void)watcher;
  ev_ref(loop);  // It stopped by itself while it was unreferenced.
  print_event("guard", 0, revents);
  ev_break(loop, EVBREAK_ALL);
}

static void on_once(int revents, void* argument) {
  print_event("once", (int)(intptr_t)argument, revents);
  count_callback();
}

// Replaces ev_invoke_pending(), and sometimes leaves events pending. ev(3) says that it is called
// when events are pending; the original also calls it when none is.
static void on_pending(struct ev_loop* of) {
  if (pending_slots() == 0) {
    ev_invoke_pending(of);
    return;
  }
  printf("invoke pending %d\n", pending_slots());
  // The original blocks even though events are pending, which cannot be intended. It also loses an
  // event fed to a timer if the timer is due before that event was invoked.
  if (!may_block && random_chance(30) && pending_skips < 5 && !is_timer_pending()) {
    pending_skips++;
    return;
  }
  pending_skips = 0;
  ev_invoke_pending(of);
}

// --- The actions of a script. Each prints itself. ---

static Kind any_kind(void) {
  for (;;) {
    const Kind kind = (Kind)random_below(kKinds);
    const bool counts = kind == kPrepare || kind == kCheck || kind == kIdle;
    // After ev_loop_fork() the original has internal events in the queue, which delay idle
    // watchers.
    if ((kind != kIo || has_io) && !(counts && style == kUncounted) &&
        !(kind == kIdle && has_loop_fork)) {
      return kind;
    }
  }
}

static Slot* any_slot(void) { return &slots[random_below(kSlots)]; }

static void do_start(Slot* slot, bool in_hook) {
  (void)in_hook;
  printf("  start %d %s\n", number_of(slot), kind_names[slot->kind]);
  start(slot);
}

static void do_stop(Slot* slot, bool in_hook) {
  (void)in_hook;
  printf("  stop %d %s\n", number_of(slot), kind_names[slot->kind]);
  stop(slot);
  if (slot->kind == kTimer) {
    printf("  at %d\n", milliseconds_of(slot->watcher->timer.at));
  }
}

static void do_set(Slot* slot, bool in_hook) {
  (void)in_hook;
  if (!is_active(slot)) {
    set(slot);
  }
}

static void do_restart(Slot* slot, bool in_hook) {
  (void)in_hook;
  printf("  restart %d %s\n", number_of(slot), kind_names[slot->kind]);
  stop(slot);
  if (slot->kind == kIo && random_chance(50)) {
    const int events = 1 + random_below(3);
    printf("  modify to %d\n", events);
    ev_io_modify(&slot->watcher->io, events);
  } else if (random_chance(50)) {
    set(slot);
  }
  start(slot);
}

static void do_free(Slot* slot, bool in_hook) {
  (void)in_hook;
  printf("  free %d\n", number_of(slot));
  stop(slot);
  retire(slot);
  create(slot, any_kind());
}

static void do_feed(Slot* slot, bool in_hook) {
  (void)in_hook;
  // Only start() clamps a priority.
  if (ev_priority(slot->watcher) < EV_MINPRI || ev_priority(slot->watcher) > EV_MAXPRI) {
    return;
  }
  const int revents = random_chance(70) ? EV_CUSTOM : 1 << random_below(3);
  printf("  feed %d %x\n", number_of(slot), (unsigned)revents);
  ev_feed_event(loop, slot->watcher, revents);
}

static void do_invoke(Slot* slot, bool in_hook) {
  (void)in_hook;
  printf("  invoke %d\n", number_of(slot));
  ev_invoke(loop, slot->watcher, EV_CUSTOM);
}

static void do_clear(Slot* slot, bool in_hook) {
  (void)in_hook;
  const int revents = ev_clear_pending(loop, slot->watcher);
  printf("  clear %d: %x\n", number_of(slot), (unsigned)revents);
}

static void do_again(Slot* slot, bool in_hook) {
  (void)in_hook;
  if (slot->kind == kTimer) {
    if (random_chance(30)) {
      slot->watcher->timer.repeat = random_chance(30) ? 0. : 6000.00025 + random_below(9) * 1e-6;
    }
    printf("  timer again %d\n", number_of(slot));
    ev_timer_again(loop, &slot->watcher->timer);
  } else if (slot->kind == kPeriodic) {
    printf("  periodic again %d\n", number_of(slot));
    ev_periodic_again(loop, &slot->watcher->periodic);
  }
}

static void do_write(Slot* slot, bool in_hook) {
  (void)slot;
  (void)in_hook;
  const int fd = pair_fds[random_below(pairs_used)][1];
  printf("  write %d\n", fd);
  if (send(fd, "x", 1, MSG_NOSIGNAL) != 1) {
    printf("  could not\n");
  }
}

// Fills, drains or shuts down a socket, which changes the events of its peer's watcher.
static void do_socket(Slot* slot, bool in_hook) {
  (void)slot;
  (void)in_hook;
  const int* const fds = pair_fds[random_below(pairs_used)];
  switch (random_below(5)) {
    case 0: {
      char bytes[4096] = {0};
      printf("  fill %d\n", fds[0]);
      while (send(fds[0], bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
      }
      break;
    }
    case 1:
      printf("  empty %d\n", fds[1]);
      drain(fds[1]);
      break;
    case 2:
      if (random_chance(30)) {
        printf("  shut %d\n", fds[1]);
        shutdown(fds[1], SHUT_WR);
      }
      break;
    default:
      printf("  drain %d\n", fds[0]);
      drain(fds[0]);
  }
}

static void do_feed_fd(Slot* slot, bool in_hook) {
  (void)slot;
  (void)in_hook;
  const int fd = pair_fds[random_below(pairs_used)][0];
  const int revents = 1 + random_below(3);
  printf("  feed fd %d %x\n", fd, (unsigned)revents);
  ev_feed_fd_event(loop, fd, revents);
}

static void do_signal(Slot* slot, bool in_hook) {
  (void)slot;
  (void)in_hook;
  const int which = random_below(2);
  switch (random_below(3)) {
    case 0:
      // A signalfd is read with the other descriptors, so signals are noticed at another time.
      if (!has_signalfd) {
        printf("  raise %d\n", which);
        raise(signal_numbers[which]);
      }
      break;
    case 1:
      // With a signalfd, the original has no pipe for the signal, and aborts.
      if (!has_signalfd) {
        printf("  feed signal %d\n", which);
        ev_feed_signal(signal_numbers[which]);
      }
      break;
    default:
      printf("  feed signal event %d\n", which);
      ev_feed_signal_event(loop, signal_numbers[which]);
  }
}

static void do_async(Slot* slot, bool in_hook) {
  (void)in_hook;
  if (slot->kind == kAsync && is_active(slot)) {
    ev_async_send(loop, &slot->watcher->async);
    printf("  send %d: %d\n", number_of(slot), (int)ev_async_pending(&slot->watcher->async));
  }
}

static void do_once(Slot* slot, bool in_hook) {
  (void)slot;
  (void)in_hook;
  const int fd = has_io && random_chance(60) ? pair_fds[random_below(pairs_used)][0] : -1;
  const int events = fd < 0 ? 0 : 1 + random_below(3);
  const int milliseconds = random_chance(60) ? random_below(20) : -1;
  once_count++;
  printf("  once %d fd %d events %d after %d\n", once_count, fd, events, milliseconds);
  ev_once(loop, fd, events, milliseconds < 0 ? -1. : unique_delay(milliseconds), on_once,
          (void*)(intptr_t)once_count);
}

static void do_time(Slot* slot, bool in_hook) {
  (void)slot;
  (void)in_hook;
  const int milliseconds = random_below(20);
  switch (random_below(4)) {
    case 0:
      printf("  now update\n");
      ev_now_update(loop);
      break;
    case 1:
      if (is_suspendable) {
        printf("  suspend %d\n", milliseconds);
        ev_suspend(loop);
        virtual_advance((int64_t)milliseconds * kMillisecond);
        ev_resume(loop);
      }
      break;
    default:
      printf("  advance %d\n", milliseconds);
      virtual_advance((int64_t)milliseconds * kMillisecond);
  }
}

static void do_reference(Slot* slot, bool in_hook) {
  (void)in_hook;
  const bool may_stop_itself = slot->kind == kTimer || slot->kind == kPeriodic;
  const bool has_reference = slot->kind != kCleanup && !may_stop_itself;
  if (is_active(slot) && has_reference && !slot->is_unreferenced && random_chance(60)) {
    printf("  unref %d\n", number_of(slot));
    ev_unref(loop);
    slot->is_unreferenced = true;
  } else if (extra_references > 0) {
    printf("  unref\n");
    ev_unref(loop);
    extra_references--;
  } else if (random_chance(30)) {
    printf("  ref\n");
    ev_ref(loop);
    extra_references++;
  }
}

static void do_break(Slot* slot, bool in_hook) {
  (void)slot;
  (void)in_hook;
  static const int ways[] = {EVBREAK_ONE, EVBREAK_ALL, EVBREAK_CANCEL};
  const bool is_guard_spent = is_guarded && !ev_is_active(&guard);
  const int way = ways[random_below(is_guard_spent ? 2 : 3)];
  printf("  break %d\n", way);
  ev_break(loop, way);
}

static void do_nested(Slot* slot, bool in_hook) {
  (void)slot;
  if (in_hook || ev_depth(loop) == 0 || ev_depth(loop) >= kDepthMax) {
    return;
  }
  if (is_guarded && !ev_is_active(&guard)) {
    return;  // A new run would forget the guard's break.
  }
  const int flags =
      is_guarded && style == kBlocking && random_chance(30) ? EVRUN_ONCE : EVRUN_NOWAIT;
  printf("  nested run %d\n", flags);
  const int result = ev_run(loop, flags);
  printf("  nested run ended %d\n", result);
}

static void do_loop(Slot* slot, bool in_hook) {
  (void)slot;
  switch (random_below(4)) {
    case 0:
      if (!in_hook && has_loop_fork) {
        printf("  loop fork\n");
        ev_loop_fork(loop);
      }
      break;
    case 1:
      printf("  invoke pending of %d\n", pending_slots());
      ev_invoke_pending(loop);
      break;
    case 2:
      ev_verify(loop);
      break;
    default: {
      const bool is_own = random_chance(50);
      printf("  pending callback %d\n", is_own);
      ev_set_invoke_pending_cb(loop, is_own ? on_pending : ev_invoke_pending);
    }
  }
}

typedef struct Action {
  int weight;
  void (*run)(Slot* slot, bool in_hook);
} Action;

static const Action actions[] = {
    {22, do_start}, {10, do_stop},     {5, do_set},    {6, do_restart}, {4, do_free},
    {6, do_feed},   {2, do_invoke},    {4, do_clear},  {5, do_again},   {12, do_write},
    {6, do_socket}, {3, do_feed_fd},   {8, do_signal}, {8, do_async},   {3, do_once},
    {8, do_time},   {4, do_reference}, {3, do_break},  {4, do_nested},  {3, do_loop},
};

static void act_once(bool in_hook) { RANDOM_ROW(actions)->run(any_slot(), in_hook); }

static void act(int most, bool in_hook) {
  for (int count = random_below(most + 1); count > 0; count--) {
    act_once(in_hook);
  }
}

// --- A script. ---

static void print_state(void) {
  printf("iteration %u depth %u pending %d:", style == kUncounted ? 0 : ev_iteration(loop),
         ev_depth(loop), pending_slots());
  for (Slot* slot = slots; slot < slots + kSlots; slot++) {
    if (is_active(slot) || is_pending(slot)) {
      printf(" %d%s%s", number_of(slot), is_active(slot) ? "a" : "", is_pending(slot) ? "p" : "");
      printf("%+d", ev_priority(slot->watcher));
    }
    if (slot->kind == kTimer) {
      printf("(%d)", milliseconds_of(ev_timer_remaining(loop, &slot->watcher->timer)));
    } else if (slot->kind == kPeriodic && is_active(slot)) {
      printf("(%d)", milliseconds_of(ev_periodic_at(&slot->watcher->periodic) - ev_now(loop)));
    }
  }
  printf("\n");
}

static void run_turn(void) {
  static const int flags[] = {EVRUN_NOWAIT, EVRUN_NOWAIT, EVRUN_ONCE, 0};
  const int how = style == kBlocking ? flags[random_below(4)] : may_block ? 0 : EVRUN_NOWAIT;
  is_guarded = how != EVRUN_NOWAIT;
  printf("run %d\n", how);
  virtual_advance(kTick);
  callbacks_in_run = 0;
  run_budget = 15;
  if (is_guarded) {
    // Counted from the same time in both: the cached time of the loop may be older.
    ev_now_update(loop);
    ev_timer_set(&guard, kGuardSeconds, 0.);
    ev_timer_start(loop, &guard);
    ev_unref(loop);
  }
  const int result = ev_run(loop, how);
  printf("run ended %d\n", result);
  if (ev_is_active(&guard)) {
    ev_ref(loop);
    ev_timer_stop(loop, &guard);
  }
  print_state();
}

static void on_periodic(struct ev_loop* of, ev_periodic* watcher, int revents) {
  (void)of;
  (void)watcher;
  (void)revents;
}

// At the first periodic, the original creates a timerfd and reads the clock.
static void prepare_periodics(struct ev_loop* of) {
  ev_periodic watcher;
  ev_periodic_init(&watcher, on_periodic, 4e9, 0., NULL);
  ev_periodic_start(of, &watcher);
  ev_periodic_stop(of, &watcher);
}

static struct ev_loop* new_loop(void) {
  static const unsigned backends[] = {0, 0, EVBACKEND_EPOLL, EVBACKEND_POLL, EVBACKEND_SELECT};
  static const unsigned extras[] = {0,
                                    0,
                                    EVFLAG_FORKCHECK,
                                    EVFLAG_NOINOTIFY,
                                    EVFLAG_SIGNALFD,
                                    EVFLAG_NOSIGMASK,
                                    EVFLAG_NOTIMERFD};
  const unsigned backend = backends[random_below(5)];
  may_block = random_chance(50);
  has_io = random_chance(80);
  has_loop_fork = random_chance(30);
  // After a fork, the original creates its timerfd again, and then reads the clock in mid-turn.
  const unsigned extra = has_loop_fork ? EVFLAG_NOTIMERFD : extras[random_below(7)];
  const unsigned flags = EVFLAG_NOENV | backend | extra;
  const bool is_counted = !has_io || backend == EVBACKEND_POLL || backend == EVBACKEND_SELECT;
  // The order of descriptors that are ready at once depends on the backend. On an epoll set
  // virtual_time.h makes it the same; the original's select reports the last first.
  const bool has_own_order = backend == EVBACKEND_SELECT || backend == EVBACKEND_POLL;
  pairs_used = has_own_order ? 1 : kPairs;
  style = !may_block ? kStepping : is_counted ? kBlocking : kUncounted;
  has_signalfd = (flags & EVFLAG_SIGNALFD) != 0;
  printf("flags %x\n", flags);
  // Once per process: when the original creates its default loop again, it still has the references
  // and counts of the destroyed one, and with some flags its file descriptors.
  if (!had_default_loop && random_chance(30)) {
    had_default_loop = true;
    return ev_default_loop(flags);
  }
  return ev_loop_new(flags);
}

static void finish(void) {
  for (Slot* slot = slots; slot < slots + kSlots; slot++) {
    // A signal's handler outlives the loop; other watchers may stay active.
    if (slot->kind == kSignal || random_chance(50)) {
      stop(slot);
    }
  }
  printf("destroy\n");
  is_over = true;
  ev_loop_destroy(loop);
  for (Slot* slot = slots; slot < slots + kSlots; slot++) {
    retire(slot);
  }
  check_retired();
  close_pairs();
}

static void run_script(void) {
  virtual_now = kMonotonicStart;
  is_over = false;
  callbacks = 0;
  extra_references = 0;
  once_count = 0;
  pending_skips = 0;
  unique_count = 0;
  loop = new_loop();
  prepare_periodics(loop);
  is_suspendable = random_chance(50);
  open_pairs();
  ev_init(&guard, on_guard);
  for (int i = 0; i < kSlots; i++) {
    create(&slots[i], any_kind());
  }
  for (int turns = 1 + random_below(10); turns > 0 && callbacks < kCallbacksMax; turns--) {
    run_budget = kCallbacksMax;
    act(8, false);
    run_turn();
  }
  finish();
}

// A script also finds the library's state after an earlier one: signals, the default loop's place.
static void run_scripts(void) {
  for (int left = 1 + random_below(8); left > 0; left--) {
    run_script();
  }
}

int main(int argc, char** argv) { return run_seeds(argc, argv, run_scripts); }
