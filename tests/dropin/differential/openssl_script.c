// Random scripts over bufferevents on OpenSSL, of sockets and as filters, in TLS 1.2 and 1.3: every
// seed is a script, which prints each call with its result, each callback with the contents of the
// buffers, and the state of all, on a clock that only the script moves (virtual_steps.h). The other
// end is another such bufferevent, or is moved by hand: it may send close_notify, vanish, or send
// garbage.
//
// The layout of an evbuffer decides the sizes of records, so sizes on the wire are not printed, nor
// how much is read at once.
//
// differential: --seeds 1:300,234019,1217027
// differential settings: debug,locks,precise,poll,select
#include <event2/bufferevent_ssl.h>

#include "bufferevent_slots.h"
#include "openssl_ends.h"

enum { kBytes = 40000, kTurns = 30, kUnreadMost = 60000 };

// Further state of a slot.
typedef struct Extra {
  int role;
  SSL* hand;  // On the peer.
  int has_renegotiated;
  size_t taken;  // Bytes of the input that were removed.
  unsigned sum;
  int unread;  // Bytes written that the peer may not have read.
} Extra;

static Extra extras[kSlots];
static SSL_CTX* contexts[2][2];  // By TLS 1.2 or 1.3, and by verification.
static char bytes[kBytes];
static int version;

static Extra* extra_of(const Slot* slot) { return &extras[number_of(slot)]; }

// Only of enabled events: the original forgets to delete those that only the handshake needed.
static void show_pending(struct bufferevent* bev) {
  if (bev->enabled & EV_READ)
    printf(", reading %#x", event_pending(&bev->ev_read, EV_READ | EV_TIMEOUT, NULL));
  if (bev->enabled & EV_WRITE)
    printf(", writing %#x", event_pending(&bev->ev_write, EV_WRITE | EV_TIMEOUT, NULL));
}

static int is_open(const Slot* slot) {
  const SSL* ssl = bufferevent_openssl_get_ssl(slot->bev);
  return SSL_is_init_finished(ssl) && SSL_get_shutdown(ssl) == 0;
}

static void add_up(Extra* extra, const unsigned char* at, size_t size) {
  for (size_t i = 0; i < size; i++) extra->sum = extra->sum * 31 + at[i];
  extra->taken += size;
}

// The number of parts decides how much a low watermark leaves in the input, so the input counts as
// taken.
static void show_received(const Slot* slot) {
  Extra all = *extra_of(slot);
  struct evbuffer* input = slot->bev->input;
  add_up(&all, evbuffer_pullup(input, -1), evbuffer_get_length(input));
  printf("%zu in, sum %u", all.taken, all.sum);
}

static void show_state(const Slot* slot) {
  if (slot->kind == kNone || slot->has_failed) return;
  struct bufferevent* bev = slot->bev;
  const SSL* ssl = bufferevent_openssl_get_ssl(bev);
  say("state", slot);
  printf(": ");
  show_received(slot);
  printf(", enabled %#x, %zu out, shut %#x, ready %d", bev->enabled,
         evbuffer_get_length(bev->output), SSL_get_shutdown(ssl), SSL_is_init_finished(ssl));
  if (is_open(slot) && !extra_of(slot)->has_renegotiated) show_pending(bev);
  if (slot->below) printf("; below %#x", slot->below->enabled);
  printf("\n");
}

// ---- callbacks

// How many bytes a callback gets is not compared, so this only reads all of them.
static void on_read(struct bufferevent* bev, void* arg) {
  const size_t size = evbuffer_get_length(bev->input);
  add_up(extra_of(arg), evbuffer_pullup(bev->input, -1), size);
  evbuffer_drain(bev->input, size);
}

static void on_write(struct bufferevent* bev, void* arg) {
  Slot* slot = arg;
  if (slot->has_failed) return;
  say("  on_write", slot);
  printf(": %zu out\n", evbuffer_get_length(bev->output));
  act();
}

static void on_event(struct bufferevent* bev, short what, void* arg) {
  Slot* slot = arg;
  if (slot->has_failed) return;
  slot->has_failed = (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0;
  // The original may report more than one end at once.
  if (what & BEV_EVENT_ERROR) what = BEV_EVENT_ERROR;
  say("  on_event", slot);
  unsigned long error = bufferevent_get_openssl_error(bev);
  while (error != 0 && ERR_reason_error_string(error) == NULL) {
    error = bufferevent_get_openssl_error(bev);
  }
  printf(" %#x: enabled %#x", what, bufferevent_get_enabled(bev));
  // An end below a handshake has no error: the original then shows that of another connection.
  if (!slot->below || SSL_is_init_finished(bufferevent_openssl_get_ssl(bev))) {
    printf(", error: %s", reason_of(error));
  }
  printf("\n");
  act();
}

// ---- making and freeing

static int some_options(void) {
  return (random_chance(40) ? BEV_OPT_DEFER_CALLBACKS : 0) | BEV_OPT_CLOSE_ON_FREE;
}

static SSL* make_ssl(void) { return SSL_new(contexts[version][random_chance(15)]); }

static enum bufferevent_ssl_state state_of(int role) {
  return role == kServes ? BUFFEREVENT_SSL_ACCEPTING : BUFFEREVENT_SSL_CONNECTING;
}

static void begin(Slot* slot, Kind kind, int role, int options) {
  begin_life(slot, kind);
  *extra_of(slot) = (Extra){.role = role};
  say("make", slot);
  printf(" kind %d, role %d, options %#x, TLS 1.%d\n", kind, role, options, version + 2);
}

static void be_filter(Slot* slot, struct bufferevent* below, int options) {
  slot->below = below;
  slot->bev = bufferevent_openssl_filter_new(base, below, make_ssl(),
                                             state_of(extra_of(slot)->role), options);
  set_callbacks(slot, 7);
  if (extra_of(slot)->role == kConnects) bufferevent_write(slot->bev, bytes, 1);
  bufferevent_enable(slot->bev, EV_READ | EV_WRITE);
}

static void make_on_fd(Slot* slot, int fd, int role) {
  const int options = some_options();
  if (random_chance(60)) {
    begin(slot, kSocket, role, options);
    slot->bev = bufferevent_openssl_socket_new(base, fd, make_ssl(), state_of(extra_of(slot)->role),
                                               options);
    set_callbacks(slot, 7);
  } else {
    begin(slot, kFilter, role, options);
    const int below = random_chance(30) ? BEV_OPT_DEFER_CALLBACKS : 0;
    be_filter(slot, bufferevent_socket_new(base, fd, below | BEV_OPT_CLOSE_ON_FREE), options);
  }
  slot->fd = fd;
}

static void make_with_hand(Slot* slot) {
  int ends[2];
  open_ends(ends);
  const int role = random_below(2);
  make_on_fd(slot, ends[0], role);
  slot->peer = ends[1];
  extra_of(slot)->hand = hand_end(contexts[version][0], ends[1], !role);
}

static void make_two(Slot* one, Slot* other) {
  int ends[2];
  open_ends(ends);
  make_on_fd(one, ends[0], kServes);
  make_on_fd(other, ends[1], kConnects);
}

static void make_pair(Slot* one, Slot* other) {
  struct bufferevent* ends[2];
  bufferevent_pair_new(base, BEV_OPT_CLOSE_ON_FREE, ends);
  const int options = some_options();
  begin(one, kPairFilter, kServes, options);
  be_filter(one, ends[0], options);
  begin(other, kPairFilter, kConnects, options);
  be_filter(other, ends[1], options);
}

static void op_make(void) {
  Slot* slot = &slots[random_below(kSlots - 1)];
  if (slot->kind != kNone) return;
  if (slot[1].kind != kNone || random_chance(50)) {
    make_with_hand(slot);
  } else if (random_chance(60)) {
    make_two(slot, slot + 1);
  } else {
    make_pair(slot, slot + 1);
  }
}

static void end_hand(Slot* slot) {
  if (slot->peer < 0) return;
  close(slot->peer);
  SSL_free(extra_of(slot)->hand);
  slot->peer = -1;
  extra_of(slot)->hand = NULL;
}

static void free_slot(Slot* slot) {
  say("free", slot);
  printf("\n");
  end_hand(slot);
  slot->kind = kNone;
  bufferevent_free(slot->bev);
  slot->bev = NULL;
}

static void op_free(void) {
  Slot* slot = &slots[random_below(kSlots)];
  if (slot->below && depth > 0) return;  // The original loses bytes that it wrote below.
  if (slot->kind != kNone && (slot->has_failed || random_chance(20))) free_slot(slot);
}

// ---- data

static int some_size(void) { return random_below(random_chance(80) ? 200 : kBytes / 2); }

static void op_write(void) {
  Slot* slot = any_live();
  if (!slot) return;
  const size_t size = (size_t)some_size();
  extra_of(slot)->unread += (int)size;
  if (extra_of(slot)->unread > kUnreadMost) return;
  say("write", slot);
  printf(" %zu\n", size);
  write_plainly(slot, bytes, size);
}

static void op_read(void) {
  Slot* slot = any_live();
  if (!slot || depth > 0) return;
  static unsigned char taken[kBytes];
  add_up(extra_of(slot), taken, bufferevent_read(slot->bev, taken, (size_t)some_size()));
}

static void end_peer(Slot* slot) {
  say("hand closes", slot);
  printf("\n");
  end_hand(slot);
}

// How much the underlying one has read decides whether the end of the handshake or this is reported
// first.
static int is_certain(const Slot* slot) { return !slot->below || is_open(slot); }

static void shut_peer_down(Slot* slot) {
  if (!is_certain(slot)) return;
  say("hand sends close_notify", slot);
  show_step(extra_of(slot)->hand, SSL_shutdown(extra_of(slot)->hand));
}

static void send_garbage(Slot* slot) {
  if (!is_certain(slot)) return;
  say("hand sends garbage", slot);
  result((long)send(slot->peer, bytes, (size_t)random_below(100), MSG_NOSIGNAL));
}

static void read_at_peer(Slot* slot) {
  extra_of(slot)->unread = (int)evbuffer_get_length(slot->bev->output);
  say("hand reads", slot);
  hand_reads(extra_of(slot)->hand);
}

static void op_hand(void) {
  Slot* slot = any_live();
  if (!slot || !extra_of(slot)->hand || depth > 0) return;
  SSL* const hand = extra_of(slot)->hand;
  const int size = 1 + some_size();
  ERR_clear_error();
  const int act = random_below(24);
  if (act == 0) {
    end_peer(slot);
  } else if (act == 1) {
    say("hand half-closes", slot);
    result(shutdown(slot->peer, SHUT_WR));
  } else if (act <= 3) {
    shut_peer_down(slot);
  } else if (act == 4) {
    send_garbage(slot);
  } else if (act <= 10) {
    say("hand shakes", slot);
    show_step(hand, SSL_do_handshake(hand));
  } else if (act <= 14) {
    read_at_peer(slot);
  } else {
    say("hand writes", slot);
    printf(" %d", size);
    show_step(hand, SSL_write(hand, bytes, size));
  }
}

// ---- settings

static void op_enable(void) {
  Slot* slot = any_live();
  if (!slot) return;
  if (slot->below && !is_open(slot)) return;
  // During a handshake the original then spins, so that the next descriptor is never served.
  if (!is_open(slot) && getenv("DIFFERENTIAL_ONE_READY")) return;
  // The original may still watch for what the handshake read: it then writes before it reads.
  if (is_open(slot) && evbuffer_get_length(slot->bev->output) > 0 &&
      !(slot->bev->enabled & EV_READ)) {
    return;
  }
  const int on = !is_open(slot) || random_chance(70);
  const short what = !on && slot->below ? EV_READ : some_what();
  enable(slot, on, what);
}

static void op_watermark(void) {
  Slot* slot = any_live();
  if (!slot) return;
  if (slot->below && !is_open(slot)) return;  // The handshake may continue at once, or in its turn.
  const short what = some_what();
  const size_t low = random_chance(60) ? 0 : (size_t)random_below(100);
  const size_t high = what == EV_WRITE && random_chance(50) ? low + (size_t)random_below(300) : 0;
  set_watermark(slot, what, low, high);
}

static void op_timeouts(void) {
  static const int primes[kSlots] = {101, 107, 113, 131, 137};
  Slot* slot = any_live();
  if (!slot || !is_open(slot) || !(slot->bev->enabled & EV_READ)) return;
  const struct timeval time = {0, (1 + random_below(3)) * kStep + primes[number_of(slot)]};
  const int is_set = random_below(2);
  say("timeout", slot);
  printf(" %d %ld", is_set, (long)time.tv_usec);
  result(bufferevent_set_timeouts(slot->bev, is_set ? &time : NULL, NULL));
}

static void op_callbacks(void) {
  Slot* slot = any_live();
  if (!slot) return;
  change_callbacks(slot, 4 | random_below(4));  // An end must be noticed.
}

static void op_trigger(void) {
  Slot* slot = any_live();
  if (!slot) return;
  const short what = some_what();
  trigger(slot, what, random_chance(60) ? BEV_TRIG_DEFER_CALLBACKS : 0);
}

static void op_dirty(void) {
  Slot* slot = any_live();
  if (!slot) return;
  say("dirty", slot);
  bufferevent_openssl_set_allow_dirty_shutdown(slot->bev, random_below(2) * 5);
  result(bufferevent_openssl_get_allow_dirty_shutdown(slot->bev));
}

static void op_goodbye(void) {
  Slot* slot = any_live();
  if (!slot || !is_open(slot)) return;
  say("goodbye", slot);
  ERR_clear_error();
  show_step(bufferevent_openssl_get_ssl(slot->bev),
            SSL_shutdown(bufferevent_openssl_get_ssl(slot->bev)));
  slot->has_failed = 1;  // Later writes fail, each with another error.
}

static void op_renegotiate(void) {
  Slot* slot = any_live();
  if (!slot || slot->kind != kSocket || !is_open(slot)) return;
  say("renegotiate", slot);
  printf("\n");
  extra_of(slot)->has_renegotiated = 1;
  const int value = bufferevent_ssl_renegotiate(slot->bev);
  say("renegotiated", slot);
  result(value);
}

static void op_loop(void) {
  if (depth > 0) return;
  printf("loop\n");
  fuel = kFuel;
  for (int i = 0; i < kTurns; i++) event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

// Runs after everything else that is ready: a timeout and an end in one turn may be reported
// together or separately.
static void op_advance(void) {
  if (depth > 0) return;
  op_loop();
  advance_steps(1 + random_below(3));
  op_loop();
}

static const Op ops[] = {
    {7, op_make},      {5, op_free},        {12, op_write},    {6, op_read},
    {24, op_hand},     {9, op_enable},      {5, op_watermark}, {3, op_timeouts},
    {3, op_callbacks}, {3, op_trigger},     {3, op_flush},     {2, op_dirty},
    {1, op_goodbye},   {1, op_renegotiate}, {30, op_loop},     {4, op_advance},
};

static void random_op(void) { RANDOM_ROW(ops)->run(); }

static void run_script(void) {
  version = random_below(2);
  open_script(bytes, kBytes);
  run_steps(60 + random_below(120));
  event_base_free(base);
}

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  for (int verifies = 0; verifies < 2; verifies++) {
    contexts[0][verifies] = make_context(TLS1_2_VERSION, verifies);
    contexts[1][verifies] = make_context(TLS1_3_VERSION, verifies);
  }
  return run_seeds(argc, argv, run_script);
}
