#pragma once

// The world of one script of libevent_script.c: bases, a pool of events, descriptors, signals;
// their creation and destruction, and the output about them.

#include <errno.h>
#include <event2/event.h>
#include <event2/event_compat.h>
#include <event2/event_struct.h>
#include <event2/thread.h>
#include <stdarg.h>
#include <sys/socket.h>

#include "harness.h"
#include "virtual_steps.h"

typedef enum Kind { kDescriptors, kSignals, kCommonTimeout } Kind;

enum {
  kSlots = 14,
  kOddSlot = 1,
  kEndsMax = 3,
  kSignalNumbers = 3,
  kCallsMax = 30,
  kFuel = 120,
  kScriptSeconds = 20
};

typedef struct Slot {
  struct event* ev;  // NULL: no event is assigned.
  struct event memory;
  int number;
  int life;  // How often the slot was used.
  int base;
  int end;  // The watched descriptor; -1: none.
  int is_heap;
  int is_finalizing;
} Slot;

static Kind kind;
static struct event_base* bases[2];
static int base_count;
static int base_is_running[2];
static int depth;
static int priorities;
static Slot slots[kSlots];
static Slot* current;
static int ends;
static int ends_are_edge[kEndsMax];
static int end_fds[kEndsMax];
static int peer_fds[kEndsMax];
static int has_closed;  // The method supports EV_CLOSED.
static const struct timeval* common_timeout;
static int once_count;
static int once_micros;
static int calls_left;
static int fuel;  // When it is used up, callbacks make no more calls, so every script ends.
static const int signal_numbers[kSignalNumbers] = {SIGUSR1, SIGUSR2, SIGHUP};
static int stray_signals;
static long blocks_taken;

void random_op(void);

// ---- words

static inline void say(const char* format, ...) {
  va_list words;
  va_start(words, format);
  printf("%*s", depth * 2, "");
  vprintf(format, words);
  va_end(words);
}

static inline void result(int value) { printf(" -> %d\n", value); }

static inline const char* name_of(const Slot* slot) {
  static char text[32];
  snprintf(text, sizeof text, "e%d.%d", slot->number, slot->life);
  return text;
}

static inline const char* timeval_text(const struct timeval* value) {
  static char text[64];
  if (value == NULL) return "NULL";
  if (value == common_timeout) return "common";
  snprintf(text, sizeof text, "%lld", (long long)value->tv_sec * 1000000 + value->tv_usec);
  return text;
}

static inline const char* signal_text(int number) {
  return number == SIGUSR1 ? "USR1" : number == SIGUSR2 ? "USR2" : "HUP";
}

static inline int64_t behind_wall_clock(const struct timeval* value) {
  return wall_micros_now() - (value->tv_sec * 1000000LL + value->tv_usec);
}

static inline void on_log(int severity, const char* text) {
  (void)text;
  say("log of severity %d\n", severity);
}

// ---- choices

static inline Slot* any_slot(void) { return &slots[random_below(kSlots)]; }

static inline Slot* live_slot(void) {
  Slot* slot = random_chance(25) && current ? current : any_slot();
  return slot->ev ? slot : NULL;
}

static inline struct event_base* any_base(void) { return bases[random_below(base_count)]; }

// Returns a unique timeout for once events, which no slot can have.
static inline int unique_micros(void) { return 1 + once_micros++ % 100; }

// Returns a time before now, or one with microseconds out of range. All are unique: the prime
// belongs to one event.
static inline struct timeval odd_timeout(int number, int prime) {
  switch (random_below(3)) {
    case 0:
      return (struct timeval){-1 - random_below(3), prime};
    case 1:
      return (struct timeval){random_below(2), 1000000 - kStep + prime};
    default:
      return (struct timeval){1, number == kOddSlot ? -prime : 1000000 + prime};
  }
}

static inline const struct timeval* choose_timeout(const Slot* slot, struct timeval* timeout) {
  // Multiples of different primes below kStep differ, however often a persistent event was added.
  static const int primes[kSlots] = {101, 103, 107, 109, 113, 127, 131,
                                     137, 139, 149, 151, 157, 163, 167};
  if (random_chance(slot->end >= 0 || kind == kSignals ? 50 : 20)) return NULL;
  if (common_timeout) return common_timeout;
  if (random_chance(6) && !(event_get_events(slot->ev) & EV_PERSIST)) {
    *timeout = odd_timeout(slot->number, primes[slot->number]);
    return timeout;
  }
  *timeout = (struct timeval){0, random_below(8) * kStep + primes[slot->number]};
  if (slot->number == 0 && random_chance(30)) timeout->tv_usec = 0;
  return timeout;
}

static inline int is_signal(const Slot* slot) {
  return slot && slot->ev && event_get_events(slot->ev) & EV_SIGNAL;
}

static inline int choose_priority(const Slot* slot) {
  if (kind == kSignals) return is_signal(slot) ? priorities - 1 : random_below(priorities - 1);
  return slot->end >= 0 && ends > 1 ? 2 * slot->end + random_below(2) : random_below(priorities);
}

// ---- printing

static inline void print_pending(const Slot* slot) {
  struct timeval until = {0, 0};
  const int mask = event_pending(slot->ev, 0xff, &until);
  say("pending %s %#x flags=%#x", name_of(slot), mask, slot->ev->ev_evcallback.evcb_flags);
  // For a deadline with negative microseconds the original returns a wrong time.
  if (slot->number != kOddSlot && slot->ev->ev_evcallback.evcb_flags & EVLIST_TIMEOUT)
    printf(" in %lld", -(long long)behind_wall_clock(&until));
  printf("\n");
}

static inline void print_counts(struct event_base* base) {
  // The libraries have different internal events for signals, common timeouts and wake-ups.
  if (kind != kDescriptors) return;
  say("counts: %d active, %d virtual, %d added, all %d\n",
      event_base_get_num_events(base, EVENT_BASE_COUNT_ACTIVE),
      event_base_get_num_events(base, EVENT_BASE_COUNT_VIRTUAL),
      event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED), event_base_get_num_events(base, 7));
  const int clear = random_chance(30);
  say("maxima: %d active, %d added\n",
      event_base_get_max_events(base, EVENT_BASE_COUNT_ACTIVE, clear),
      event_base_get_max_events(base, EVENT_BASE_COUNT_ADDED, clear));
}

static inline int note_each(const struct event_base* base, const struct event* ev, void* found) {
  (void)base;
  for (int i = 0; i < kSlots; i++) {
    if (slots[i].ev == ev) ((char*)found)[i]++;
  }
  return 0;
}

// The order of the events is undefined.
static inline void print_each(struct event_base* base) {
  char found[kSlots] = {0};
  say("foreach");
  const int value = event_base_foreach_event(base, note_each, found);
  for (int i = 0; i < kSlots; i++) {
    if (found[i]) printf(" e%d*%d", i, found[i]);
  }
  result(value);
}

// ---- callbacks

static inline void drop_event(Slot* slot) {
  if (slot->is_heap) {
    say("free %s\n", name_of(slot));
    event_free(slot->ev);
  } else {
    say("drop %s", name_of(slot));
    result(event_del(slot->ev));
  }
  slot->ev = NULL;
}

// A signal's event that was deleted while calls are left is not used again: the original then
// writes to a stale pointer into its stack.
static inline void leave_self(Slot* slot) {
  if (is_signal(slot)) {
    drop_event(slot);
    return;
  }
  say("del self");
  result(event_del(slot->ev));
}

static inline void act_in_callback(struct event_base* base) {
  if (--calls_left < 0) {
    say("enough\n");
    event_base_loopbreak(base);
    return;
  }
  const int count = random_below(3);
  for (int i = 0; i < count && fuel > 0; i++, fuel--) random_op();
}

static inline void on_event(evutil_socket_t fd, short what, void* arg) {
  Slot* slot = arg;
  Slot* outer = current;
  struct event_base* base = bases[slot->base];
  say("callback %s what=%#x res=%#x running=%d fd=%s\n", name_of(slot), what, slot->ev->ev_res,
      event_base_get_running_event(base) == slot->ev,
      fd == event_get_fd(slot->ev) ? "its" : "other");
  current = slot;
  depth++;
  char bytes[2];
  if (what & EV_READ && slot->end >= 0 && random_chance(60)) {
    say("read -> %ld\n", (long)read(fd, bytes, sizeof bytes));
  }
  if (event_get_events(slot->ev) & EV_PERSIST && random_chance(25)) leave_self(slot);
  act_in_callback(base);
  depth--;
  current = outer;
}

static inline void on_once(evutil_socket_t fd, short what, void* arg) {
  say("callback once %d what=%#x fd=%s\n", (int)(intptr_t)arg, what, fd < 0 ? "none" : "some");
  depth++;
  act_in_callback(bases[0]);
  depth--;
}

static inline void on_finalized(struct event* ev, void* arg) {
  Slot* slot = arg;
  say("finalized %s, %s\n", name_of(slot), ev == slot->ev ? "its own" : "another");
  slot->ev = NULL;
  slot->is_finalizing = 0;
}

static inline void on_stray_signal(int number) {
  (void)number;
  stray_signals++;
}

static inline const char* handler_text(int number) {
  struct sigaction action;
  sigaction(number, NULL, &action);
  return action.sa_handler == on_stray_signal ? "the program" : "the library";
}

// ---- events

static inline short choose_events(const Slot* slot) {
  static const short of_descriptors[] = {
      EV_READ, EV_READ, EV_WRITE, EV_READ | EV_WRITE, EV_CLOSED, EV_READ | EV_CLOSED};
  short events = 0;
  if (slot->end >= 0) events = of_descriptors[random_below(has_closed ? 6 : 4)];
  if (slot->end >= 0 && ends_are_edge[slot->end]) events |= EV_ET;
  if (random_chance(50) && kind != kCommonTimeout) events |= EV_PERSIST;
  if (random_chance(10)) events |= EV_FINALIZE;
  if (random_chance(10)) events |= EV_TIMEOUT;
  return events;
}

static inline int assign_event(Slot* slot, int fd, short events) {
  slot->is_heap = random_chance(40);
  if (slot->is_heap) {
    slot->ev = event_new(bases[slot->base], fd, events, on_event, slot);
    return slot->ev ? 0 : -1;
  }
  slot->ev = &slot->memory;
  memset(slot->ev, 0xa5, sizeof *slot->ev);
  if (random_chance(70))
    return event_assign(slot->ev, bases[slot->base], fd, events, on_event, slot);
  event_set(slot->ev, fd, events, on_event, slot);
  return event_base_set(bases[slot->base], slot->ev);
}

static inline void make_event(Slot* slot) {
  slot->life++;
  slot->base = random_below(base_count);
  slot->end = slot->base == 0 && ends > 0 && random_chance(60) ? random_below(ends) : -1;
  short events = choose_events(slot);
  int fd = slot->end >= 0 ? end_fds[slot->end] : -1;
  if (kind == kSignals && random_chance(60)) {
    fd = signal_numbers[random_below(kSignalNumbers)];
    events |= EV_SIGNAL;
  }
  say("make %s of base %d: %s %d events=%#x", name_of(slot), slot->base,
      events & EV_SIGNAL ? "signal" : "end", events & EV_SIGNAL ? fd : slot->end, events);
  result(assign_event(slot, fd, events));
  if (slot->ev && (slot->end >= 0 || kind == kSignals || random_chance(50))) {
    const int priority = choose_priority(slot);
    say("priority_set %s %d", name_of(slot), priority);
    result(event_priority_set(slot->ev, priority));
  }
}

// ---- bases

static inline struct event_config* choose_config(int method) {
  struct event_config* config = event_config_new();
  const char* names[] = {"epoll", "poll"};
  const char* variables[] = {"EVENT_NOEPOLL", "EVENT_NOPOLL"};
  for (int i = 0; i < method; i++) {
    if (random_chance(50)) {
      event_config_avoid_method(config, names[i]);
    } else {
      setenv(variables[i], "1", 1);
    }
  }
  if (random_chance(20)) event_config_set_flag(config, EVENT_BASE_FLAG_NO_CACHE_TIME);
  if (random_chance(20)) event_config_set_flag(config, EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
  if (random_chance(20)) event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
  if (kind != kCommonTimeout && random_chance(25)) {
    const struct timeval interval = {0, random_below(3) * kStep};
    // Not 0 calls: the original would then run events of lower priority first.
    const int calls = random_chance(40) ? -1 : 1 + random_below(3);
    event_config_set_max_dispatch_interval(config, random_chance(50) ? &interval : NULL, calls,
                                           random_below(3));
  }
  return config;
}

static inline void open_base(int index, int method) {
  if (method == 0 && random_chance(15)) {
    bases[index] = event_init();
  } else {
    struct event_config* config = choose_config(method);
    bases[index] = event_base_new_with_config(config);
    event_config_free(config);
  }
  say("base %d: %s, features %#x, priorities %d", index, event_base_get_method(bases[index]),
      event_base_get_features(bases[index]), priorities);
  result(event_base_priority_init(bases[index], priorities));
}

static inline void break_running(void) {
  for (int i = 0; i < base_count; i++) {
    if (!base_is_running[i]) continue;
    say("nothing left to wait for\n");
    event_base_loopbreak(bases[i]);
  }
}

// After a slow callback the original sleeps too long unless its cached time is updated.
static inline void tell_time(void) {
  for (int i = 0; i < base_count; i++) event_base_update_cache_time(bases[i]);
}

static inline void run_loop(int index, int flags) {
  struct event_base* base = bases[index];
  const int64_t begin = micros_now();
  const int was_running = base_is_running[index];
  say("loop of base %d, flags %d\n", index, flags);
  if (depth == 0) calls_left = kCallsMax;
  depth++;
  base_is_running[index] = 1;
  const int value = event_base_loop(base, flags);
  base_is_running[index] = was_running;
  depth--;
  tell_time();
  say("loop -> %d exit=%d break=%d", value, event_base_got_exit(base), event_base_got_break(base));
  // A common timeout may wake a loop although its events are gone.
  if (kind != kCommonTimeout) printf(", %lld later", (long long)(micros_now() - begin));
  printf("\n");
}

// ---- one script, from its first line to its last

static inline void* counting_malloc(size_t size) {
  blocks_taken++;
  return malloc(size);
}

static inline void* counting_realloc(void* block, size_t size) {
  if (block == NULL) blocks_taken++;
  if (block != NULL && size == 0) blocks_taken--;
  return realloc(block, size);
}

static inline void counting_free(void* block) {
  if (block != NULL) blocks_taken--;
  free(block);
}

static inline void open_descriptors(int method) {
  ends = kind != kDescriptors ? 0 : random_chance(50) ? 1 : kEndsMax;
  for (int i = 0; i < ends; i++) {
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
    end_fds[i] = pair[0];
    peer_fds[i] = pair[1];
    ends_are_edge[i] = method == 0 && random_chance(20);
  }
  has_closed = method < 2;
}

static inline void open_pool(void) {
  const int method = random_below(3);
  use_steps(break_running);
  event_set_mem_functions(counting_malloc, counting_realloc, counting_free);
  event_set_log_callback(on_log);
  if (random_chance(25)) evthread_use_pthreads();
  const int choice = random_below(10);
  kind = choice < 6 ? kDescriptors : choice < 9 ? kSignals : kCommonTimeout;
  for (int i = 0; i < kSignalNumbers; i++) signal(signal_numbers[i], on_stray_signal);
  signal(SIGPIPE, SIG_IGN);
  fuel = kFuel;
  open_descriptors(method);
  priorities = ends > 1                 ? 2 * kEndsMax
               : kind == kCommonTimeout ? 1
               : kind == kSignals       ? 2 + random_below(3)
                                        : 1 + random_below(3);
  base_count = kind == kDescriptors && random_chance(20) ? 2 : 1;
  for (int i = 0; i < base_count; i++) open_base(i, method);
  // Whether an event that is deleted and added again sees its edge again is undefined then.
  if (strstr(event_base_get_method(bases[0]), "changelist")) {
    memset(ends_are_edge, 0, sizeof ends_are_edge);
  }
  if (kind == kCommonTimeout) {
    const struct timeval duration = {0, 2 * kStep + 50};
    common_timeout = event_base_init_common_timeout(bases[0], &duration);
  }
  for (int i = 0; i < kSlots; i++) slots[i].number = i;
}

static inline void close_pool(void) {
  const int in_order = random_chance(70);
  for (int i = 0; i < kSlots; i++) {
    Slot* slot = &slots[i];
    if (slot->ev && !slot->is_finalizing && (slot->is_heap || in_order)) drop_event(slot);
  }
  for (int i = 0; i < base_count; i++) {
    say("base_free %d\n", i);
    event_base_free(bases[i]);
  }
  for (int i = 0; i < kSlots; i++) {
    if (!slots[i].is_heap && slots[i].ev) {
      say("left: %s flags=%#x\n", name_of(&slots[i]), slots[i].ev->ev_evcallback.evcb_flags);
    }
  }
  libevent_global_shutdown();
  say("strays %d, blocks %ld\n", stray_signals, blocks_taken);
}
