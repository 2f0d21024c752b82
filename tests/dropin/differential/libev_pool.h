#pragma once

// A pool of watchers of every kind for random scripts. Each slot keeps its watcher in a separate
// block, which is poisoned and kept when the slot gets another, so that a library that still writes
// to a stopped and freed watcher is detected.

#include <ev.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "harness.h"
#include "virtual_time.h"

typedef enum Kind {
  kIo,
  kTimer,
  kPeriodic,
  kSignal,
  kIdle,
  kPrepare,
  kCheck,
  kFork,
  kCleanup,
  kAsync,
  kKinds
} Kind;

static const char* const kind_names[kKinds] = {"io",      "timer", "periodic", "signal",  "idle",
                                               "prepare", "check", "fork",     "cleanup", "async"};

// Both are ignored by default, so a late one does no harm.
static const int signal_numbers[2] = {SIGURG, SIGWINCH};

enum { kSlots = 14, kPairs = 3, kFirstFd = 100, kRetiredMax = 4096, kPoison = 0xdd };

typedef struct Slot {
  Kind kind;
  union ev_any_watcher* watcher;
  bool is_unreferenced;  // ev_unref() was called after its start.
} Slot;

static struct ev_loop* loop;
static Slot slots[kSlots];
static int pair_fds[kPairs][2];
static union ev_any_watcher* retired[kRetiredMax];
static int retired_count;
static int unique_count;
static bool may_block;
static int pairs_used;

static void on_event(struct ev_loop* of, ev_watcher* watcher, int revents);

// --- Times: each is unique, and lies where virtual_time.h needs it. ---

static ev_tstamp unique_delay(int milliseconds) {
  unique_count++;
  return milliseconds * 1e-3 + 500e-6 + (unique_count % 300) * 20e-9;
}

// The wall-clock time in so many milliseconds; a double stores it with a precision of 0.5 us.
static ev_tstamp unique_wall_time(int milliseconds) {
  unique_count++;
  const double now = (double)((virtual_now + kRealAhead) / kMillisecond) * 1e-3;
  return now + milliseconds * 1e-3 + 500e-6 + (unique_count % 300) * 1e-6;
}

// Whole milliseconds, rounded down; a far time is printed as far only. The rounding adds a little,
// because a whole time may lack some ticks.
static int milliseconds_of(ev_tstamp seconds) {
  if (seconds > 1e5 || seconds < -1e5) {
    return seconds > 0 ? 999999 : -999999;
  }
  return (int)floor(seconds * 1e3 + 0.1);
}

// --- Slots. ---

static int number_of(const Slot* slot) { return (int)(slot - slots); }

static bool is_active(const Slot* slot) { return ev_is_active(slot->watcher) != 0; }
static bool is_pending(const Slot* slot) { return ev_is_pending(slot->watcher) != 0; }

static ev_tstamp later(ev_periodic* watcher, ev_tstamp now) {
  (void)watcher;
  return now + 0.01325;  // Unique: wall times end in half a millisecond.
}

static void set_io(Slot* slot) {
  const int events = random_chance(10) ? 0 : 1 + random_below(3);
  const int fd = pair_fds[random_below(pairs_used)][0];
  ev_io_set(&slot->watcher->io, fd, events);
  printf(" fd %d events %d", fd, events);
}

// A repeating timer is due again only after the script: it is a quarter of a millisecond past a
// whole one when it is started again, and three quarters when it was due once. Only the first slot
// has short repeats and exact zeros: two late timers would be due at the very same time, and their
// order is not documented. It has them only in scripts that do not block, since virtual_time.h does
// not support deadlines at such times.
static void set_timer(Slot* slot) {
  ev_tstamp after = unique_delay(random_chance(10) ? 20000000 : random_below(30));
  ev_tstamp repeat = random_chance(50) ? 0. : 5000.00025 + random_below(5);
  if (random_chance(10)) {
    after = -after;
  } else if (slot == slots && random_chance(30)) {
    after = 0.;
  }
  if (slot == slots && !may_block && random_chance(60)) {
    repeat = (1 + random_below(10)) * 1e-3;
  }
  ev_timer_set(&slot->watcher->timer, after, repeat);
  printf(" after %d repeat %d", milliseconds_of(after), milliseconds_of(repeat));
}

static void set_periodic(Slot* slot) {
  ev_periodic* const watcher = &slot->watcher->periodic;
  const int milliseconds = random_below(30) - 5;
  switch (random_below(3)) {
    case 0:
      ev_periodic_set(watcher, unique_wall_time(milliseconds), 0., NULL);
      printf(" at %d", milliseconds);
      return;
    case 1: {
      static const double intervals[] = {0.005, 0.02, 0.1};
      const int which = random_below(3);
      ev_periodic_set(watcher, unique_wall_time(milliseconds), intervals[which], NULL);
      printf(" at %d every %d", milliseconds, milliseconds_of(intervals[which]));
      return;
    }
    default:
      // Two with a callback that expire together would get the same time again.
      ev_periodic_set(watcher, 0., 0., slot == slots ? later : NULL);
      printf(slot == slots ? " by callback" : " in the past");
  }
}

static void set(Slot* slot) {
  printf("  set %d %s", number_of(slot), kind_names[slot->kind]);
  switch (slot->kind) {
    case kIo:
      set_io(slot);
      break;
    case kTimer:
      set_timer(slot);
      break;
    case kPeriodic:
      set_periodic(slot);
      break;
    case kSignal: {
      const int which = random_below(2);
      ev_signal_set(&slot->watcher->signal, signal_numbers[which]);
      printf(" %d", which);
      break;
    }
    default:
      break;
  }
  printf("\n");
}

static void create(Slot* slot, Kind kind) {
  slot->kind = kind;
  slot->is_unreferenced = false;
  slot->watcher = malloc(sizeof *slot->watcher);
  memset(slot->watcher, kPoison, sizeof *slot->watcher);
  ev_watcher* const watcher = (ev_watcher*)slot->watcher;
  ev_init(watcher, on_event);
  watcher->data = slot;
  if (random_chance(40)) {
    // A few lie outside -2 .. 2: start() must clamp them.
    int priority = random_chance(5) ? random_below(20) - 10 : random_below(5) - 2;
    // The library's internal watcher for signals and asyncs has the highest priority, and may be
    // called before or after an io watcher with the same one.
    if (kind == kIo && priority >= EV_MAXPRI) {
      priority = EV_MAXPRI - 1;
    }
    ev_set_priority(watcher, priority);
    printf("  priority %d of %d\n", priority, number_of(slot));
  }
  set(slot);
}

static void start(Slot* slot) {
  union ev_any_watcher* const watcher = slot->watcher;
  switch (slot->kind) {
    case kIo:
      ev_io_start(loop, &watcher->io);
      break;
    case kTimer:
      ev_timer_start(loop, &watcher->timer);
      break;
    case kPeriodic:
      ev_periodic_start(loop, &watcher->periodic);
      break;
    case kSignal:
      ev_signal_start(loop, &watcher->signal);
      break;
    case kIdle:
      ev_idle_start(loop, &watcher->idle);
      break;
    case kPrepare:
      ev_prepare_start(loop, &watcher->prepare);
      break;
    case kCheck:
      ev_check_start(loop, &watcher->check);
      break;
    case kFork:
      ev_fork_start(loop, &watcher->fork);
      break;
    case kCleanup:
      ev_cleanup_start(loop, &watcher->cleanup);
      break;
    default:
      ev_async_start(loop, &watcher->async);
  }
}

static void stop(Slot* slot) {
  union ev_any_watcher* const watcher = slot->watcher;
  if (slot->is_unreferenced) {
    ev_ref(loop);
    slot->is_unreferenced = false;
  }
  switch (slot->kind) {
    case kIo:
      ev_io_stop(loop, &watcher->io);
      break;
    case kTimer:
      ev_timer_stop(loop, &watcher->timer);
      break;
    case kPeriodic:
      ev_periodic_stop(loop, &watcher->periodic);
      break;
    case kSignal:
      ev_signal_stop(loop, &watcher->signal);
      break;
    case kIdle:
      ev_idle_stop(loop, &watcher->idle);
      break;
    case kPrepare:
      ev_prepare_stop(loop, &watcher->prepare);
      break;
    case kCheck:
      ev_check_stop(loop, &watcher->check);
      break;
    case kFork:
      ev_fork_stop(loop, &watcher->fork);
      break;
    case kCleanup:
      ev_cleanup_stop(loop, &watcher->cleanup);
      break;
    default:
      ev_async_stop(loop, &watcher->async);
  }
}

// Poisons the memory of a watcher that the library must no longer use.
static void retire(Slot* slot) {
  memset(slot->watcher, kPoison, sizeof *slot->watcher);
  if (retired_count == kRetiredMax) {
    abort();
  }
  retired[retired_count++] = slot->watcher;
}

static void check_retired(void) {
  for (int i = 0; i < retired_count; i++) {
    const unsigned char* const bytes = (const unsigned char*)retired[i];
    for (size_t at = 0; at < sizeof *retired[i]; at++) {
      if (bytes[at] != kPoison) {
        printf("freed memory was written to: watcher %d, byte %zu\n", i, at);
        break;
      }
    }
    free(retired[i]);
  }
  retired_count = 0;
}

static void open_pairs(void) {
  for (int i = 0; i < kPairs; i++) {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0) {
      abort();
    }
    for (int side = 0; side < 2; side++) {  // Above the library's own descriptors.
      pair_fds[i][side] = fcntl(fds[side], F_DUPFD_CLOEXEC, kFirstFd);
      close(fds[side]);
    }
  }
}

static void close_pairs(void) {
  for (int i = 0; i < kPairs; i++) {
    close(pair_fds[i][0]);
    close(pair_fds[i][1]);
  }
}
