// Random scripts over a pool of events: every seed is a script, which prints each call with its
// result and each callback with its arguments. The clock moves only with the script
// (virtual_steps.h), so that no wait blocks and the order is reproducible.
//
// The order is undefined among several descriptors that are ready in one turn, between a signal and
// other events in it, and of equal deadlines. So descriptors and signals have unique priorities,
// and no two deadlines are equal.
//
// differential: --seeds 1:6000
// differential settings: debug,changelist,precise,poll,select
#include "libevent_pool.h"

// ---- operations of scripts and callbacks

static void op_make(void) {
  Slot* slot = any_slot();
  if (!slot->ev) make_event(slot);
}

static void add_event(Slot* slot) {
  struct timeval timeout;
  const struct timeval* given = choose_timeout(slot, &timeout);
  say("add %s %s", name_of(slot), timeval_text(given));
  result(event_add(slot->ev, given));
  if (given && given == common_timeout) {
    advance_steps(1);
    tell_time();
  }
}

static void op_add(void) {
  Slot* slot = live_slot();
  if (slot) add_event(slot);
}

static void op_del(void) {
  Slot* slot = live_slot();
  if (!slot || (slot == current && is_signal(slot))) return;
  const int how = random_below(4);
  say("%s %s", how == 0 ? "del_noblock" : how == 1 ? "del_block" : "del", name_of(slot));
  result(how == 0   ? event_del_noblock(slot->ev)
         : how == 1 ? event_del_block(slot->ev)
                    : event_del(slot->ev));
}

// Not of a signal: the original loses its pending calls.
static void op_remove_timer(void) {
  Slot* slot = live_slot();
  if (!slot || is_signal(slot)) return;
  say("remove_timer %s", name_of(slot));
  result(event_remove_timer(slot->ev));
}

// While the callback of a signal's event runs, more calls may be left. If the event is activated
// again or finalized meanwhile, the original makes them even after it was freed, so scripts do
// neither.
static void op_active(void) {
  static const short results[] = {EV_READ, EV_WRITE,  EV_TIMEOUT, EV_READ | EV_WRITE,
                                  0,       EV_SIGNAL, 0x4000,     -1};
  Slot* slot = live_slot();
  if (!slot || (slot == current && is_signal(slot))) return;
  const short what = results[random_below(random_chance(90) ? 6 : 8)];
  const short calls = (short)(random_chance(3) ? -1 : random_below(4));
  say("active %s what=%#x calls=%d\n", name_of(slot), what, calls);
  event_active(slot->ev, what, calls);
}

static void op_free(void) {
  Slot* slot = live_slot();
  if (slot && !slot->is_finalizing) drop_event(slot);
}

static void op_pending(void) {
  Slot* slot = live_slot();
  if (slot) print_pending(slot);
}

static void op_priority(void) {
  Slot* slot = live_slot();
  if (!slot) return;
  const int wanted = random_chance(10)  ? priorities + random_below(3)
                     : random_chance(5) ? -1
                                        : choose_priority(slot);
  say("priority_set %s %d", name_of(slot), wanted);
  result(event_priority_set(slot->ev, wanted));
  say("priority %d\n", event_get_priority(slot->ev));
}

static void op_traffic(void) {
  if (ends == 0) return;
  const int end = random_below(ends);
  char bytes[8] = "traffic";
  switch (random_below(8)) {
    case 0:
      say("drain %d -> %ld\n", end, (long)read(end_fds[end], bytes, sizeof bytes));
      return;
    case 1:
      say("shutdown %d\n", end);
      shutdown(peer_fds[end], SHUT_WR);
      return;
    default:
      say("write %d -> %ld\n", end, (long)write(peer_fds[end], bytes, 2));
  }
}

static void op_exit(void) {
  struct event_base* base = any_base();
  struct timeval timeout = {0, random_below(3) * kStep + unique_micros()};
  switch (random_below(5)) {
    case 0:
      say("loopexit now");
      result(event_base_loopexit(base, NULL));
      return;
    case 1:
      say("loopexit %s", timeval_text(&timeout));
      result(event_base_loopexit(base, &timeout));
      return;
    case 2:
      say("loopbreak");
      result(event_base_loopbreak(base));
      return;
    default:
      say("loopcontinue");
      result(event_base_loopcontinue(base));
  }
}

static void refused_once(void) {
  static const short whats[] = {0, EV_SIGNAL, EV_READ | EV_PERSIST, EV_PERSIST | EV_TIMEOUT, -1};
  const short what = whats[random_below(5)];
  struct event_base* base = random_chance(80) ? any_base() : NULL;
  say("refused once what=%#x", (unsigned)what);
  result(event_base_once(base, -1, what, on_once, NULL, NULL));
}

static void op_once(void) {
  if (random_chance(10)) {
    refused_once();
    return;
  }
  struct event_base* base = any_base();
  const int number = ++once_count;
  struct timeval timeout = {0, random_below(3) * kStep + unique_micros()};
  const struct timeval* given = random_chance(30) ? NULL : &timeout;
  // With a descriptor only if there is just one: a once event cannot have a priority.
  const int with_fd = ends == 1 && !ends_are_edge[0] && random_chance(30);
  const short what = (short)(!with_fd            ? EV_TIMEOUT
                             : random_chance(50) ? EV_READ
                                                 : EV_WRITE | EV_TIMEOUT);
  say("once %d what=%#x %s", number, what, timeval_text(given));
  result(event_base_once(base, with_fd ? end_fds[0] : -1, what, on_once, (void*)(intptr_t)number,
                         given));
}

static void op_by_number(void) {
  if (kind == kSignals && !is_signal(current)) {
    const int number = signal_numbers[random_below(kSignalNumbers)];
    say("active_by_signal %s\n", signal_text(number));
    event_base_active_by_signal(any_base(), random_chance(90) ? number : -1);
  } else if (ends > 0) {
    static const short whats[] = {EV_READ, EV_WRITE, EV_READ | EV_WRITE, 0, EV_PERSIST, EV_ET};
    const int end = random_below(ends);
    const short what = whats[random_below(random_chance(80) ? 3 : 6)];
    say("active_by_fd %d what=%#x\n", end, what);
    event_base_active_by_fd(bases[0], random_chance(95) ? end_fds[end] : -1, what);
  }
}

static void op_advance(void) {
  const int ticks = 1 + random_below(3);
  say("advance %d\n", ticks);
  advance_steps(ticks);
  tell_time();
}

static void op_finalize(void) {
  Slot* slot = live_slot();
  if (!slot || slot->is_finalizing) return;
  if (slot == current && is_signal(slot)) return;
  slot->is_finalizing = 1;
  say("%s %s", slot->is_heap ? "free_finalize" : "finalize", name_of(slot));
  result(slot->is_heap ? event_free_finalize(0, slot->ev, on_finalized)
                       : event_finalize(0, slot->ev, on_finalized));
}

static void op_raise(void) {
  if (kind != kSignals) return;
  const int number = signal_numbers[random_below(kSignalNumbers)];
  const int times = 1 + random_below(3);
  say("raise %s %d times, handled by %s\n", signal_text(number), times, handler_text(number));
  for (int i = 0; i < times; i++) raise(number);
}

static void op_counts(void) { print_counts(any_base()); }

static void op_foreach(void) { print_each(any_base()); }

static void op_time(void) {
  struct event_base* base = any_base();
  struct timeval now;
  if (random_chance(30)) {
    say("update_cache_time");
    result(event_base_update_cache_time(base));
  }
  event_base_gettimeofday_cached(base, &now);
  say("gettimeofday_cached is %lld behind\n", (long long)behind_wall_clock(&now));
}

// In a callback: an error on its own base, a nested loop on the other one.
static void op_nested(void) {
  if (depth == 0) return;
  const int index = random_below(base_count);
  run_loop(index, index == 0 || random_chance(50) ? EVLOOP_NONBLOCK | EVLOOP_ONCE : EVLOOP_ONCE);
}

typedef struct Op {
  int weight;
  void (*run)(void);
  int is_activation;  // Not in scripts with a common timeout: see below.
} Op;

// The order of events with a common timeout among others that are due in the same turn is
// undefined, so scripts with one activate no other events, and add no event in a callback.
static const Op ops[] = {
    {8, op_make, 0},    {20, op_add, 0},     {8, op_del, 0},     {3, op_remove_timer, 0},
    {9, op_active, 1},  {3, op_free, 0},     {6, op_pending, 0}, {3, op_priority, 0},
    {8, op_traffic, 0}, {4, op_exit, 1},     {3, op_once, 1},    {2, op_by_number, 1},
    {3, op_advance, 0}, {2, op_finalize, 1}, {9, op_raise, 0},   {2, op_counts, 0},
    {1, op_foreach, 0}, {2, op_time, 0},     {2, op_nested, 0},
};

void random_op(void) {
  const Op* op = RANDOM_ROW(ops);
  if (kind == kCommonTimeout && (op->is_activation || (op->run == op_add && depth > 0))) return;
  op->run();
}

// ---- one script

static void run_script(void) {
  static const int flags[] = {0,
                              EVLOOP_ONCE,
                              EVLOOP_NONBLOCK,
                              EVLOOP_ONCE | EVLOOP_NONBLOCK,
                              EVLOOP_NO_EXIT_ON_EMPTY,
                              EVLOOP_NO_EXIT_ON_EMPTY | EVLOOP_ONCE};
  open_pool();
  for (int i = 0; i < kSlots - 3; i++) {
    make_event(&slots[i]);
    if (random_chance(60)) add_event(&slots[i]);
  }
  const int rounds = 2 + random_below(6);
  for (int round = 0; round < rounds; round++) {
    const int steps = 2 + random_below(12);
    for (int step = 0; step < steps; step++) random_op();
    run_loop(random_below(base_count), flags[random_below(6)]);
  }
  close_pool();
}

int main(int argc, char** argv) { return run_seeds(argc, argv, run_script); }
