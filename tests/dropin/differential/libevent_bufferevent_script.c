// Random scripts over bufferevents of sockets, pairs and filters: every seed is a script, which
// prints each call with its result, each callback with the contents of the buffers, and the state
// of all, on a clock that only the script moves (virtual_steps.h).
//
// Less than 4,096 bytes wait in a socket at a time: the original reads no more at once. A callback
// drains a full input, since it would be called again for ever; and a filter has no limit, as the
// original then forgets unfiltered bytes. Nor is a rate limit's level raised: it leaves the maximum
// behind. No two timeouts are equal. There are few callbacks in a turn, as the original looks for
// events after so many that are put off.
//
// differential: --seeds 1:1000
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "bufferevent_slots.h"

enum { kBytes = 2000, kWaitingMost = 4000, kReadsMost = 12 };

// Further state of a slot.
typedef struct Extra {
  int references;
  int has_rates;
} Extra;

static Extra extras[kSlots];
static struct ev_token_bucket_cfg* rates;
static struct bufferevent_rate_limit_group* group;
static char bytes[kBytes];
static int reads_in_loop;
static int uses_rates;

static Extra* extra_of(const Slot* slot) { return &extras[number_of(slot)]; }

static void show_state(const Slot* slot) {
  if (slot->kind == kNone) return;
  struct bufferevent* bev = slot->bev;
  struct event* reading = slot->kind == kFilter ? &slot->below->ev_read : &bev->ev_read;
  struct event* writing = slot->kind == kFilter ? &slot->below->ev_write : &bev->ev_write;
  say("state", slot);
  printf(": enabled %#x, pending %#x %#x and %#x %#x, %zu in, %zu out\n", bev->enabled,
         event_pending(reading, EV_READ | EV_TIMEOUT, NULL),
         event_pending(writing, EV_WRITE | EV_TIMEOUT, NULL),
         event_pending(&bev->ev_read, EV_TIMEOUT, NULL),
         event_pending(&bev->ev_write, EV_TIMEOUT, NULL), evbuffer_get_length(bev->input),
         evbuffer_get_length(bev->output));
}

// ---- callbacks

static void on_read(struct bufferevent* bev, void* arg) {
  Slot* slot = arg;
  say("  on_read", slot);
  printf(": %zu in, %zu out\n", evbuffer_get_length(bev->input), evbuffer_get_length(bev->output));
  const size_t high = bev->wm_read.high;
  if (++reads_in_loop > kReadsMost) {
    evbuffer_drain(bev->input, evbuffer_get_length(bev->input));
    return;
  }
  if (high != 0 && evbuffer_get_length(bev->input) >= high) {
    evbuffer_drain(bev->input, evbuffer_get_length(bev->input));
  } else if (random_chance(40)) {
    evbuffer_drain(bev->input, (size_t)random_below(kBytes));
  }
  if (random_chance(30)) {
    const size_t size = (size_t)random_below(200);
    bufferevent_write(bev, bytes, size);
    printf("    answered %zu\n", size);
  }
  act();
}

static void on_write(struct bufferevent* bev, void* arg) {
  say("  on_write", arg);
  printf(": %zu in, %zu out\n", evbuffer_get_length(bev->input), evbuffer_get_length(bev->output));
  act();
}

static void on_event(struct bufferevent* bev, short what, void* arg) {
  say("  on_event", arg);
  printf(" %#x: enabled %#x\n", what, bufferevent_get_enabled(bev));
  act();
}

// Doubles every other byte, and leaves the rest until there is more.
static enum bufferevent_filter_result twist(struct evbuffer* source, struct evbuffer* target,
                                            ev_ssize_t limit, enum bufferevent_flush_mode mode,
                                            void* context) {
  Slot* slot = context;
  say("  filter", slot);
  printf(": %zu, limit %ld, mode %d\n", evbuffer_get_length(source), (long)limit, mode);
  char taken[64];
  size_t size = sizeof taken;
  if (limit >= 0 && (size_t)limit < size) size = (size_t)limit;
  const int got = evbuffer_remove(source, taken, size);
  if (got <= 0) return BEV_NEED_MORE;
  evbuffer_add(target, taken, (size_t)got);
  return BEV_OK;
}

static void on_context_free(void* context) {
  (void)context;
  printf("  a filter's context is freed\n");
}

// ---- making and freeing

static int some_options(void) { return random_chance(40) ? BEV_OPT_DEFER_CALLBACKS : 0; }

static void begin(Slot* slot, Kind kind, struct bufferevent* bev, int options) {
  begin_life(slot, kind);
  slot->bev = bev;
  *extra_of(slot) = (Extra){0};
  set_callbacks(slot, random_chance(50) ? 5 : 7);
  say("make", slot);
  printf(" kind %d, options %#x\n", kind, options);
}

static struct bufferevent* make_socket(int options, int ends[2]) {
  socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends);
  return bufferevent_socket_new(base, ends[0], options | BEV_OPT_CLOSE_ON_FREE);
}

static void make_any(Slot* slot) {
  int ends[2];
  const int options = some_options();
  if (random_chance(60)) {
    struct bufferevent* bev = make_socket(options, ends);
    begin(slot, kSocket, bev, options);
  } else {
    const int below_options = some_options();
    struct bufferevent* below = make_socket(below_options, ends);
    begin(slot, kFilter,
          bufferevent_filter_new(below, random_chance(70) ? twist : NULL,
                                 random_chance(70) ? twist : NULL, options | BEV_OPT_CLOSE_ON_FREE,
                                 on_context_free, slot),
          options);
    slot->below = below;
  }
  slot->fd = ends[0];
  slot->peer = ends[1];
}

static void make_pair(Slot* one, Slot* other) {
  struct bufferevent* ends[2];
  bufferevent_pair_new(base, 0, ends);
  begin(one, kPair, ends[0], BEV_OPT_DEFER_CALLBACKS);
  begin(other, kPair, ends[1], BEV_OPT_DEFER_CALLBACKS);
}

static void op_make(void) {
  const int number = random_below(kSlots - 1);
  Slot* slot = &slots[number];
  if (slot->kind != kNone) return;
  if (slot[1].kind == kNone && random_chance(40)) {
    make_pair(slot, slot + 1);
  } else {
    make_any(slot);
  }
}

static void free_slot(Slot* slot) {
  say("free", slot);
  printf("\n");
  struct bufferevent* bev = slot->bev;
  for (; extra_of(slot)->references > 0; extra_of(slot)->references--) bufferevent_decref(bev);
  if (slot->peer >= 0) close(slot->peer);
  if (extra_of(slot)->has_rates) bufferevent_remove_from_rate_limit_group(bev);
  slot->kind = kNone;
  slot->bev = NULL;
  bufferevent_free(bev);
}

static void op_free(void) {
  Slot* slot = any_live();
  if (slot && random_chance(50)) free_slot(slot);
}

static void op_reference(void) {
  Slot* slot = any_live();
  if (!slot) return;
  if (extra_of(slot)->references > 0) {
    extra_of(slot)->references--;
    say("decref", slot);
    result(bufferevent_decref(slot->bev));
  } else {
    extra_of(slot)->references++;
    bufferevent_incref(slot->bev);
  }
}

// ---- data

static void op_write(void) {
  Slot* slot = any_live();
  if (!slot) return;
  const size_t size = (size_t)random_below(random_chance(80) ? 200 : kBytes);
  say("write", slot);
  printf(" %zu\n", size);
  if (random_chance(70)) {
    write_plainly(slot, bytes, size);
  } else {
    struct evbuffer* buffer = evbuffer_new();
    evbuffer_add(buffer, bytes, size);
    const int value = bufferevent_write_buffer(slot->bev, buffer);
    say("written", slot);
    printf(" %zu left", evbuffer_get_length(buffer));
    result(value);
    evbuffer_free(buffer);
  }
}

static void op_read(void) {
  Slot* slot = any_live();
  if (!slot) return;
  static char taken[kBytes];
  const size_t size = (size_t)random_below(random_chance(70) ? 200 : kBytes);
  say("read", slot);
  printf(" %zu\n", size);
  const size_t got = bufferevent_read(slot->bev, taken, size);
  say("got", slot);
  result((long)got);
}

static void op_peer(void) {
  Slot* slot = any_live();
  if (!slot || slot->peer < 0) return;
  static char taken[kBytes * 4];
  int waiting = 0;
  const int size = random_below(random_chance(80) ? 100 : kBytes);
  switch (random_below(12)) {
    case 0:
      say("peer closes", slot);
      printf("\n");
      close(slot->peer);
      slot->peer = -1;
      return;
    case 1:
      say("peer shuts down", slot);
      result(shutdown(slot->peer, SHUT_WR));
      return;
    case 2:
    case 3:
    case 4:
      say("peer reads", slot);
      result((long)read(slot->peer, taken, (size_t)size * 4));
      return;
    default:
      ioctl(slot->fd, FIONREAD, &waiting);
      if (waiting + size > kWaitingMost) return;
      say("peer writes", slot);
      result((long)send(slot->peer, bytes, (size_t)size, MSG_NOSIGNAL));
  }
}

// ---- settings

static void op_enable(void) {
  Slot* slot = any_live();
  if (!slot) return;
  const short what = some_what();
  const int on = random_chance(70);
  enable(slot, on, what);
}

static void op_watermark(void) {
  Slot* slot = any_live();
  if (!slot) return;
  const short what = some_what();
  const size_t low = random_chance(60) ? 0 : (size_t)random_below(100);
  const int has_high = slot->kind != kFilter && random_chance(50);
  const size_t high = has_high ? low + (size_t)random_below(200) : 0;
  set_watermark(slot, what, low, high);
  size_t shown_low = 1;
  size_t shown_high = 1;
  say("is", slot);
  result(bufferevent_getwatermark(slot->bev, what, &shown_low, &shown_high));
}

static void op_timeouts(void) {
  static const int primes[kSlots * 2] = {101, 103, 107, 109, 113, 127, 131, 137, 139, 149};
  Slot* slot = any_live();
  if (!slot) return;
  const int at = number_of(slot) * 2;
  const struct timeval read_time = {0, random_below(4) * kStep + primes[at]};
  const struct timeval write_time = {0, random_below(4) * kStep + primes[at + 1]};
  const int which = random_below(4);
  say("timeouts", slot);
  printf(" %d %ld %ld", which, (long)read_time.tv_usec, (long)write_time.tv_usec);
  result(bufferevent_set_timeouts(slot->bev, which & 1 ? &read_time : NULL,
                                  which & 2 ? &write_time : NULL));
}

static void op_callbacks(void) {
  Slot* slot = any_live();
  if (!slot) return;
  change_callbacks(slot, random_chance(50) ? 7 : random_below(8));
}

static void op_trigger(void) {
  Slot* slot = any_live();
  if (!slot) return;
  const short what = some_what();
  const int options = (random_chance(30) ? BEV_TRIG_IGNORE_WATERMARKS : 0) |
                      (random_chance(60) ? BEV_TRIG_DEFER_CALLBACKS : 0);
  if (random_chance(30)) {
    const short event = (short)(random_below(16) * 16 + random_below(3));
    say("trigger_event", slot);
    printf(" %#x %#x\n", event, options);
    bufferevent_trigger_event(slot->bev, event, options);
  } else {
    trigger(slot, what, options);
  }
}

static void op_fd(void) {
  Slot* slot = any_live();
  if (!slot) return;
  const int fd = slot->kind == kSocket && random_chance(30) ? -1 : slot->fd;
  if (slot->kind != kSocket && random_chance(80)) return;
  say("setfd", slot);
  printf(" %d", fd >= 0);
  result(bufferevent_setfd(slot->bev, fd));
  say("is", slot);
  result(bufferevent_getfd(slot->bev) >= 0);
}

static void op_limits(void) {
  Slot* slot = any_live();
  if (!slot || slot->kind != kSocket) return;
  const size_t size = random_chance(30) ? 0 : 1 + (size_t)random_below(300);
  if (random_chance(50)) {
    bufferevent_set_max_single_read(slot->bev, size);
  } else {
    bufferevent_set_max_single_write(slot->bev, size);
  }
  say("max_single", slot);
  printf(" %zu: %ld %ld\n", size, (long)bufferevent_get_max_single_read(slot->bev),
         (long)bufferevent_get_max_single_write(slot->bev));
}

static void show_rates(Slot* slot) {
  say("limits", slot);
  printf(" %ld %ld, at once %ld %ld, of the group %ld %ld\n",
         (long)bufferevent_get_read_limit(slot->bev), (long)bufferevent_get_write_limit(slot->bev),
         (long)bufferevent_get_max_to_read(slot->bev),
         (long)bufferevent_get_max_to_write(slot->bev),
         (long)bufferevent_rate_limit_group_get_read_limit(group),
         (long)bufferevent_rate_limit_group_get_write_limit(group));
}

static void op_rates(void) {
  Slot* slot = any_live();
  if (!uses_rates || !slot || slot->kind != kSocket) return;
  extra_of(slot)->has_rates = 1;
  switch (random_below(5)) {
    case 0:
      say("rates", slot);
      result(bufferevent_set_rate_limit(slot->bev, rates));
      break;
    case 1:
      say("no rates", slot);
      result(bufferevent_set_rate_limit(slot->bev, NULL));
      break;
    case 2:
      say("join", slot);
      result(bufferevent_add_to_rate_limit_group(slot->bev, group));
      break;
    case 3:
      say("leave", slot);
      result(bufferevent_remove_from_rate_limit_group(slot->bev));
      break;
    default:
      if (bufferevent_get_token_bucket_cfg(slot->bev) == NULL) return;
      say("decrement", slot);
      result(bufferevent_decrement_read_limit(slot->bev, random_below(200)) +
             bufferevent_decrement_write_limit(slot->bev, random_below(200)));
  }
  show_rates(slot);
}

static void op_loop(void) {
  if (depth > 0) return;
  printf("loop\n");
  fuel = kFuel;
  reads_in_loop = 0;
  event_base_loop(base, EVLOOP_NONBLOCK);
}

static void op_advance(void) {
  if (depth > 0) return;
  advance_steps(1 + random_below(3));
  op_loop();
}

static const Op ops[] = {
    {7, op_make},    {2, op_free},    {1, op_reference}, {12, op_write},   {6, op_read},
    {14, op_peer},   {9, op_enable},  {5, op_watermark}, {4, op_timeouts}, {3, op_callbacks},
    {4, op_trigger}, {4, op_flush},   {1, op_fd},        {2, op_limits},   {6, op_rates},
    {14, op_loop},   {5, op_advance},
};

static void random_op(void) { RANDOM_ROW(ops)->run(); }

// ---- one script

static void run_script(void) {
  signal(SIGPIPE, SIG_IGN);
  open_script(bytes, kBytes);
  uses_rates = random_chance(40);
  const struct timeval tick = {0, kStep};
  rates = ev_token_bucket_cfg_new(100, 250, 70, 200, &tick);
  if (uses_rates) group = bufferevent_rate_limit_group_new(base, rates);
  run_steps(30 + random_below(80));
  if (group) bufferevent_rate_limit_group_free(group);
  event_base_free(base);
}

int main(int argc, char** argv) { return run_seeds(argc, argv, run_script); }
