// The functions of bufferevents on OpenSSL with every argument that a program might pass: see
// arguments.h. A peer that the program moves by hand follows each call.
// differential: --undefined
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/bufferevent_struct.h>
#include <event2/event.h>

#include "arguments.h"
#include "openssl_ends.h"

static struct event_base* base;
static SSL_CTX* context;
static SSL* hand;
static struct bufferevent* subject;
static int ends[2];
static int callbacks;

static void show(const char* what, long value) { printf("%s: %ld\n", what, value); }

// ---- domains

typedef enum Kind { kNoBufferevent, kPlain, kNew, kShaken, kFilter, kClosed } Kind;
static const Value kKindValues[] = {
    {"NULL", kNoBufferevent}, {"without TLS", kPlain}, {"new", kNew},
    {"connected", kShaken},   {"filter", kFilter},     {"ended", kClosed}};
static const Domain kKinds = DOMAIN_OF(kKindValues);

// docs/drop-in.md has the differences in others.
static const Value kAfterwardsValues[] = {
    {"NULL", kNoBufferevent}, {"without TLS", kPlain}, {"connected", kShaken}, {"ended", kClosed}};
static const Domain kAfterwards = DOMAIN_OF(kAfterwardsValues);

static const Value kSslValues[] = {{"NULL", 0}, {"new", 1}, {"with a descriptor", 2}};
static const Domain kSsls = DOMAIN_OF(kSslValues);

static const Value kStateValues[] = {{"open", BUFFEREVENT_SSL_OPEN},
                                     {"connecting", BUFFEREVENT_SSL_CONNECTING},
                                     {"accepting", BUFFEREVENT_SSL_ACCEPTING},
                                     {"3", 3},
                                     {"-1", -1}};
static const Domain kStates = DOMAIN_OF(kStateValues);

// Without the difference that docs/drop-in.md names: BEV_OPT_UNLOCK_CALLBACKS alone.
static const Value kOptionValues[] = {
    {"0", 0},
    {"CLOSE", BEV_OPT_CLOSE_ON_FREE},
    {"THREADSAFE", BEV_OPT_THREADSAFE},
    {"DEFER|UNLOCK", BEV_OPT_DEFER_CALLBACKS | BEV_OPT_UNLOCK_CALLBACKS},
    {"0x1000", 0x1000},
};
static const Domain kOptions = DOMAIN_OF(kOptionValues);

// Without a closed one: docs/drop-in.md.
static const Value kFdValues[] = {{"open", 0}, {"another", 1}, {"-1", -1}, {"min", INT_MIN}};
static const Domain kFds = DOMAIN_OF(kFdValues);

// ---- the world

static void count_callback(void) {
  if (++callbacks == 20) event_base_loopbreak(base);
}

static void on_read(struct bufferevent* bev, void* arg) {
  (void)arg;
  printf("  read %d: %zu\n", bev == subject, evbuffer_get_length(bev->input));
  count_callback();
}

static void on_write(struct bufferevent* bev, void* arg) {
  (void)arg;
  printf("  write %d: %zu\n", bev == subject, evbuffer_get_length(bev->output));
  count_callback();
}

// Only the first error is printed: a bufferevent that has failed is not used again.
static void on_happening(struct bufferevent* bev, short what, void* arg) {
  static int failed;
  (void)arg;
  if (failed) return;
  failed = what & BEV_EVENT_ERROR;
  const int is_one = (what & BEV_EVENT_READING) == 0 || (what & BEV_EVENT_WRITING) == 0;
  printf("  event %d: %#x, %s\n", bev == subject, (unsigned)what,
         is_one ? reason_of(bufferevent_get_openssl_error(bev)) : "several reasons");
  count_callback();
}

// Log messages differ between the libraries.
static void on_log(int severity, const char* text) {
  (void)text;
  printf("  log of severity %d\n", severity);
}

static void open_base(void) {
  event_set_log_callback(on_log);
  signal(SIGPIPE, SIG_IGN);
  base = event_base_new();
  open_ends(ends);
}

static void turns(int count) {
  callbacks = 0;
  for (int i = 0; i < count; i++) event_base_loop(base, EVLOOP_NONBLOCK);
}

static void watch(struct bufferevent* bev) {
  subject = bev;
  if (subject != NULL) bufferevent_setcb(subject, on_read, on_write, on_happening, NULL);
}

static void shake(void) {
  hand = hand_end(context, ends[1], kConnects);
  for (int i = 0; i < 4; i++) {
    SSL_do_handshake(hand);
    turns(2);
  }
  ERR_clear_error();
}

static struct bufferevent* make_bufferevent(long kind) {
  if (kind == kNoBufferevent) return NULL;
  if (kind == kPlain) return bufferevent_socket_new(base, ends[0], 0);
  if (kind == kFilter) {
    return bufferevent_openssl_filter_new(base, bufferevent_socket_new(base, ends[0], 0),
                                          SSL_new(context), BUFFEREVENT_SSL_ACCEPTING,
                                          BEV_OPT_CLOSE_ON_FREE);
  }
  return bufferevent_openssl_socket_new(base, ends[0], SSL_new(context), BUFFEREVENT_SSL_ACCEPTING,
                                        BEV_OPT_CLOSE_ON_FREE);
}

static void open_kind(long kind) {
  open_base();
  watch(make_bufferevent(kind));
  if (kind < kShaken) return;
  shake();
  if (kind != kClosed) return;
  bufferevent_enable(subject, EV_READ);
  SSL_shutdown(hand);
  turns(3);
}

// Shows whether it still works.
static void close_world(void) {
  char bytes[32];
  if (subject != NULL) {
    show("enable", bufferevent_enable(subject, EV_READ | EV_WRITE));
    show("write", bufferevent_write(subject, "ping", 4));
  }
  if (hand == NULL) shake();
  turns(3);
  const int got = SSL_read(hand, bytes, sizeof bytes);
  show("arrived", got > 0 ? got : -1);
  const int sent = SSL_write(hand, "pong", 4);
  show("sent", sent > 0 ? sent : -1);
  turns(3);
  if (subject != NULL) bufferevent_free(subject);
  turns(1);
}

static void on_free(void* parent, void* data, CRYPTO_EX_DATA* all, int index, long l, void* p) {
  (void)parent, (void)all, (void)index, (void)l, (void)p;
  if (data != NULL) printf("SSL freed\n");
}

static SSL* ssl_of(long value) {
  if (value == 0) return NULL;
  SSL* ssl = SSL_new(context);
  SSL_set_ex_data(ssl, SSL_get_ex_new_index(0, NULL, NULL, NULL, on_free), &subject);
  if (value == 2) SSL_set_fd(ssl, ends[0]);
  return ssl;
}

// ---- making

static void call_socket_new(const long* at) {
  open_base();
  const int fd = at[1] < 0 ? (int)at[1] : ends[at[1]];
  watch(bufferevent_openssl_socket_new(at[0] ? base : NULL, fd, ssl_of(at[2]),
                                       (enum bufferevent_ssl_state)at[3], (int)at[4]));
  show("made", subject != NULL);
  if (subject == NULL || !at[0]) return;
  show("open", bufferevent_getfd(subject) == ends[0]);
  show("enabled", bufferevent_get_enabled(subject));
  close_world();
}

static void call_filter_new(const long* at) {
  open_base();
  watch(bufferevent_openssl_filter_new(
      at[0] ? base : NULL, at[1] ? bufferevent_socket_new(base, ends[0], 0) : NULL, ssl_of(at[2]),
      (enum bufferevent_ssl_state)at[3], (int)at[4]));
  show("made", subject != NULL);
  if (subject == NULL || !at[0]) return;
  show("underlying", bufferevent_get_underlying(subject) != NULL);
  show("enabled", bufferevent_get_enabled(subject));
  close_world();
}

// ---- looking in, and settings

static void call_get(const long* at) {
  open_kind(at[0]);
  show("SSL", bufferevent_openssl_get_ssl(subject) != NULL);
  show("error", bufferevent_get_openssl_error(subject) != 0);
  close_world();
}

static void call_get_dirty(const long* at) {
  open_kind(at[0]);
  show("dirty", bufferevent_openssl_get_allow_dirty_shutdown(subject));
  close_world();
}

static void call_set_dirty(const long* at) {
  open_kind(at[0]);
  bufferevent_openssl_set_allow_dirty_shutdown(subject, (int)at[1]);
  show("dirty", bufferevent_openssl_get_allow_dirty_shutdown(subject));
  if (at[2]) {  // The end of the descriptor, without a close_notify.
    bufferevent_enable(subject, EV_READ);
    shutdown(ends[1], SHUT_WR);
    turns(3);
  }
  close_world();
}

static void call_error(const long* at) {
  open_kind(at[0]);
  if (at[1]) {
    bufferevent_enable(subject, EV_READ);
    if (write(ends[1], "no record of TLS at all", 23) != 23) show("written", 0);
    turns(3);
  }
  for (int i = 0; i < 2; i++) {
    printf("%s\n", reason_of(bufferevent_get_openssl_error(subject)));
  }
  close_world();
}

static void call_renegotiate(const long* at) {
  open_kind(at[0]);
  show("result", bufferevent_ssl_renegotiate(subject));
  close_world();
}

// ---- the table

static const Domain kMissing = {kBooleanValues, 1};
static const Domain kGiven = {kBooleanValues + 1, 1};
static const Domain kNoOptions = {kOptionValues, 1};

int main(int argc, char** argv) {
  static const Call kCalls[] = {
      {"bufferevent_openssl_socket_new",
       call_socket_new,
       {&kGiven, &kFds, &kSsls, &kStates, &kOptions}},
      {"bufferevent_openssl_socket_new, no base",
       call_socket_new,
       {&kMissing, &kFds, &kSsls, &kStates, &kNoOptions}},
      {"bufferevent_openssl_filter_new",
       call_filter_new,
       {&kGiven, &kBooleans, &kSsls, &kStates, &kOptions}},
      {"bufferevent_openssl_filter_new, no base",
       call_filter_new,
       {&kMissing, &kBooleans, &kSsls, &kStates, &kNoOptions}},
      {"bufferevent_openssl_get_ssl", call_get, {&kKinds}},
      {"bufferevent_openssl_get_allow_dirty_shutdown", call_get_dirty, {&kKinds}},
      {"bufferevent_openssl_set_allow_dirty_shutdown",
       call_set_dirty,
       {&kKinds, &kNumbers, &kBooleans}},
      {"bufferevent_get_openssl_error", call_error, {&kKinds, &kBooleans}},
      {"bufferevent_ssl_renegotiate", call_renegotiate, {&kAfterwards}},
  };
  context = make_context(TLS1_3_VERSION, 0);  // Once for all blocks, as it takes long.
  return run_calls(argc, argv, kCalls, sizeof kCalls / sizeof *kCalls);
}
