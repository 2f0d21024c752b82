#pragma once

// Shared by the random scripts over bufferevents: slots, each of which has one bufferevent after
// another, and the calls that are the same for all kinds. A line names the slot and its life, and
// is indented by the depth of calls.

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_struct.h>
#include <event2/event.h>

#include "harness.h"
#include "virtual_steps.h"

enum { kSlots = 5, kFuel = 40 };

typedef enum Kind { kNone, kSocket, kPair, kFilter, kPairFilter } Kind;

typedef struct Slot {
  Kind kind;
  int life;
  struct bufferevent* bev;
  struct bufferevent* below;  // The bufferevent under a filter.
  int fd;
  int peer;        // Read and written by the script, or -1.
  int has_failed;  // Its end was reported; later callbacks are not compared.
} Slot;

typedef struct Op {
  int weight;
  void (*run)(void);
} Op;

static struct event_base* base;
static Slot slots[kSlots];
static int depth;
static int fuel;  // How many calls callbacks may still make.

// Defined by each script.
static void random_op(void);
static void show_state(const Slot* slot);
static void free_slot(Slot* slot);
static void on_read(struct bufferevent* bev, void* slot);
static void on_write(struct bufferevent* bev, void* slot);
static void on_event(struct bufferevent* bev, short what, void* slot);

static int number_of(const Slot* slot) { return (int)(slot - slots); }

static void say(const char* what, const Slot* slot) {
  printf("%*s%s %d.%d", depth * 2, "", what, number_of(slot), slot->life);
}

static void result(long value) { printf(" -> %ld\n", value); }

static Slot* any_live(void) {
  Slot* slot = &slots[random_below(kSlots)];
  return slot->kind == kNone || slot->has_failed ? NULL : slot;
}

// In a callback.
static void act(void) {
  if (depth < 2 && fuel > 0 && random_chance(35)) {
    fuel--;
    depth++;
    random_op();
    depth--;
  }
}

static void set_callbacks(Slot* slot, int which) {
  bufferevent_setcb(slot->bev, which & 1 ? on_read : NULL, which & 2 ? on_write : NULL,
                    which & 4 ? on_event : NULL, slot);
}

static void begin_life(Slot* slot, Kind kind) {
  *slot = (Slot){.kind = kind, .life = slot->life + 1, .fd = -1, .peer = -1};
}

// ---- calls

static short some_what(void) {
  static const short whats[] = {EV_READ, EV_WRITE, EV_READ | EV_WRITE, EV_READ | EV_WRITE};
  return whats[random_below(4)];
}

static void write_plainly(Slot* slot, const char* bytes, size_t size) {
  const int value = bufferevent_write(slot->bev, bytes, size);
  say("written", slot);
  result(value);
}

static void enable(Slot* slot, int on, short what) {
  say(on ? "enable" : "disable", slot);
  printf(" %#x\n", what);
  const int value = on ? bufferevent_enable(slot->bev, what) : bufferevent_disable(slot->bev, what);
  say("done", slot);
  result(value);
}

static void set_watermark(Slot* slot, short what, size_t low, size_t high) {
  say("watermark", slot);
  printf(" %#x %zu %zu\n", what, low, high);
  bufferevent_setwatermark(slot->bev, what, low, high);
}

static void change_callbacks(Slot* slot, int which) {
  say("setcb", slot);
  printf(" %d\n", which);
  set_callbacks(slot, which);
}

static void trigger(Slot* slot, short what, int options) {
  say("trigger", slot);
  printf(" %#x %#x\n", what, options);
  bufferevent_trigger(slot->bev, what, options);
}

static void op_flush(void) {
  Slot* slot = any_live();
  if (!slot) return;
  const short what = some_what();
  const int mode = random_below(3);
  say("flush", slot);
  printf(" %#x %d\n", what, mode);
  const int value = bufferevent_flush(slot->bev, what, (enum bufferevent_flush_mode)mode);
  say("flushed", slot);
  result(value);
}

// ---- one script

static void on_stuck(void) { event_base_loopbreak(base); }

static void on_log(int severity, const char* text) {
  (void)text;
  printf("  log of severity %d\n", severity);
}

static void open_script(char* bytes, int size) {
  event_set_log_callback(on_log);
  use_steps(on_stuck);
  base = event_base_new();
  for (int i = 0; i < size; i++) bytes[i] = (char)random_below(256);
}

static void run_steps(int steps) {
  for (int step = 0; step < steps; step++) {
    fuel = kFuel;
    random_op();
    for (int i = 0; i < kSlots; i++) show_state(&slots[i]);
  }
  for (int i = 0; i < kSlots; i++) {
    if (slots[i].kind != kNone) free_slot(&slots[i]);
  }
  event_base_loop(base, EVLOOP_NONBLOCK);
}
