// The functions of bufferevents with any arguments that a program may pass: see arguments.h.
// differential: --undefined
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_compat.h>
#include <event2/bufferevent_struct.h>
#include <sys/socket.h>

#include "arguments.h"
#include "libevent_cases.h"

static char room[256] = "text that is there\r\n";
static struct event_base* base;
static struct bufferevent* subject;
static struct bufferevent* partner;
static int pair[2];
static int callbacks;

// ---- the world

enum { kNoBufferevent, kSocket, kNoFd, kDeferred, kFilter, kPairEnd };

static const Value kKindValues[] = {
    {"NULL", kNoBufferevent}, {"socket", kSocket}, {"socket -1", kNoFd},
    {"deferred", kDeferred},  {"filter", kFilter}, {"pair", kPairEnd},
};
static const Domain kKinds = DOMAIN_OF(kKindValues);

// No filter: docs/drop-in.md lists that difference.
static const Value kNoFilterValues[] = {
    {"NULL", kNoBufferevent}, {"socket", kSocket}, {"socket -1", kNoFd}, {"pair", kPairEnd}};
static const Domain kNoFilters = DOMAIN_OF(kNoFilterValues);

static void count_callback(void) {
  if (++callbacks == 20) event_base_loopbreak(base);
}

static void on_read(struct bufferevent* bev, void* arg) {
  (void)arg;
  printf("  on_read %d: %zu\n", bev == subject, evbuffer_get_length(bufferevent_get_input(bev)));
  count_callback();
}

static void on_write(struct bufferevent* bev, void* arg) {
  (void)arg;
  printf("  on_write %d: %zu\n", bev == subject, evbuffer_get_length(bufferevent_get_output(bev)));
  count_callback();
}

static void on_bufferevent(struct bufferevent* bev, short what, void* arg) {
  (void)arg;
  printf("  on_event %d: %#x\n", bev == subject, (unsigned)what);
  count_callback();
}

static struct bufferevent* make_bufferevent(long kind) {
  struct bufferevent* ends[2];
  switch (kind) {
    case kNoBufferevent:
      return NULL;
    case kNoFd:
      return bufferevent_socket_new(base, -1, 0);
    case kDeferred:
      return bufferevent_socket_new(base, pair[0], BEV_OPT_DEFER_CALLBACKS);
    case kFilter:
      return bufferevent_filter_new(bufferevent_socket_new(base, pair[0], 0), NULL, NULL,
                                    BEV_OPT_CLOSE_ON_FREE, NULL, NULL);
    case kPairEnd:
      bufferevent_pair_new(base, 0, ends);
      partner = ends[1];
      return ends[0];
    default:
      return bufferevent_socket_new(base, pair[0], 0);
  }
}

static void open_base(void) {
  event_set_log_callback(on_log);
  signal(SIGPIPE, SIG_IGN);
  base = event_base_new();
  open_pair(pair);
}

static void open_bufferevent(long kind) {
  open_base();
  subject = make_bufferevent(kind);
  if (subject != NULL) bufferevent_setcb(subject, on_read, on_write, on_bufferevent, NULL);
  if (partner != NULL) bufferevent_enable(partner, EV_READ | EV_WRITE);
  errno = 0;
}

static void look(const char* when) {
  if (subject == NULL) return;
  callbacks = 0;
  printf("%s: enabled %#x, pending %d %d, %zu in, %zu out\n", when,
         (unsigned)bufferevent_get_enabled(subject),
         event_pending(&subject->ev_read, EV_READ | EV_TIMEOUT, NULL),
         event_pending(&subject->ev_write, EV_WRITE | EV_TIMEOUT, NULL),
         evbuffer_get_length(bufferevent_get_input(subject)),
         evbuffer_get_length(bufferevent_get_output(subject)));
  event_base_loop(base, EVLOOP_NONBLOCK);
}

// Checks that it still works, and frees it.
static void close_bufferevent(void) {
  char bytes[64];
  look("at once");
  if (subject != NULL) {
    show("write", bufferevent_write(subject, "ping", 4));
    show("enable", bufferevent_enable(subject, EV_READ | EV_WRITE));
  }
  put(pair[1], "pong");
  look("enabled");
  look("later");
  show("arrived", (long)read(pair[1], bytes, sizeof bytes));
  if (partner != NULL) bufferevent_free(partner);
  if (subject != NULL) bufferevent_free(subject);
  event_base_loop(base, EVLOOP_NONBLOCK);
  event_base_free(base);
}

static void* bytes_or_null(long is_there) { return is_there ? room : NULL; }

static struct evbuffer* buffer_of(long kind) {
  if (kind == 0) return NULL;
  struct evbuffer* buffer = evbuffer_new();
  if (kind == 2) evbuffer_add(buffer, room, 18);
  return buffer;
}

// ---- data

static void call_write(const long* at) {
  open_bufferevent(at[0]);
  show("result", bufferevent_write(subject, bytes_or_null(at[1]), (size_t)at[2]));
  close_bufferevent();
}

static void call_read(const long* at) {
  open_bufferevent(at[0]);
  show("result", (long)bufferevent_read(subject, bytes_or_null(at[1]), (size_t)at[2]));
  close_bufferevent();
}

static void call_write_buffer(const long* at) {
  open_bufferevent(at[0]);
  show("result", bufferevent_write_buffer(subject, buffer_of(at[1])));
  close_bufferevent();
}

static void call_read_buffer(const long* at) {
  open_bufferevent(at[0]);
  show("result", bufferevent_read_buffer(subject, buffer_of(at[1])));
  close_bufferevent();
}

// ---- its events

static void call_enable(const long* at) {
  open_bufferevent(at[0]);
  show("enable", bufferevent_enable(subject, (short)at[1]));
  look("now");
  show("disable", bufferevent_disable(subject, (short)at[1]));
  close_bufferevent();
}

static void call_watermark(const long* at) {
  size_t low = 77;
  size_t high = 77;
  open_bufferevent(at[0]);
  bufferevent_setwatermark(subject, (short)at[1], (size_t)at[2], (size_t)at[3]);
  show("get", bufferevent_getwatermark(subject, (short)at[1], &low, &high));
  printf("%zu %zu\n", low, high);
  close_bufferevent();
}

static void call_getwatermark(const long* at) {
  size_t mark = 77;
  open_bufferevent(at[0]);
  show("get", bufferevent_getwatermark(subject, (short)at[1], at[2] ? &mark : NULL, NULL));
  show("get", bufferevent_getwatermark(subject, (short)at[1], NULL, at[2] ? &mark : NULL));
  show("mark", (long)mark);
  close_bufferevent();
}

static void call_timeouts(const long* at) {
  const struct timeval zero = {0, 0};
  const struct timeval far = {5000, 0};
  const struct timeval* times[] = {NULL, &zero, &far};
  open_bufferevent(at[0]);
  show("result", bufferevent_set_timeouts(subject, times[at[1]], times[at[2]]));
  close_bufferevent();
}

static void call_settimeout(const long* at) {
  open_bufferevent(at[0]);
  bufferevent_settimeout(subject, at[1] ? 5000 : 0, at[2] ? 5000 : 0);
  close_bufferevent();
}

// ---- callbacks

static void call_setcb(const long* at) {
  open_bufferevent(at[0]);
  bufferevent_setcb(subject, at[1] & 1 ? on_read : NULL, at[1] & 2 ? on_write : NULL,
                    at[1] & 4 ? on_bufferevent : NULL, NULL);
  close_bufferevent();
}

static void call_getcb(const long* at) {
  bufferevent_data_cb reading = NULL;
  bufferevent_data_cb writing = NULL;
  bufferevent_event_cb event = NULL;
  void* argument = room;
  open_bufferevent(at[0]);
  bufferevent_getcb(subject, at[1] & 1 ? &reading : NULL, at[1] & 2 ? &writing : NULL,
                    at[1] & 4 ? &event : NULL, at[1] & 8 ? &argument : NULL);
  printf("%d %d %d %d\n", reading == on_read, writing == on_write, event == on_bufferevent,
         argument == NULL);
  close_bufferevent();
}

static void call_trigger(const long* at) {
  open_bufferevent(at[0]);
  bufferevent_trigger(subject, (short)at[1], (int)at[2]);
  close_bufferevent();
}

static void call_trigger_event(const long* at) {
  open_bufferevent(at[0]);
  bufferevent_trigger_event(subject, (short)at[1], (int)at[2]);
  close_bufferevent();
}

static void call_flush(const long* at) {
  open_bufferevent(at[0]);
  show("result", bufferevent_flush(subject, (short)at[1], (enum bufferevent_flush_mode)at[2]));
  close_bufferevent();
}

// ---- its descriptor

static void call_setfd(const long* at) {
  open_bufferevent(at[0]);
  show("result", bufferevent_setfd(subject, at[1] == 0 ? pair[0] : (int)at[1]));
  show("fd", bufferevent_getfd(subject) == pair[0] ? 1000 : bufferevent_getfd(subject));
  close_bufferevent();
}

static void call_base_set(const long* at) {
  open_bufferevent(at[0]);
  struct event_base* next = at[1] ? event_base_new() : base;
  show("result", bufferevent_base_set(next, subject));
  show("base", bufferevent_get_base(subject) == next);
  if (!at[1]) close_bufferevent();
}

static void call_priority(const long* at) {
  open_base();
  event_base_priority_init(base, 3);
  subject = make_bufferevent(at[0]);
  show("set", bufferevent_priority_set(subject, (int)at[1]));
  show("get", bufferevent_get_priority(subject));
  if (subject != NULL) bufferevent_setcb(subject, on_read, on_write, on_bufferevent, NULL);
  close_bufferevent();
}

static void call_get(const long* at) {
  open_bufferevent(at[0]);
  show("base", bufferevent_get_base(subject) == base);
  show("underlying", bufferevent_get_underlying(subject) != NULL);
  show("input", bufferevent_get_input(subject) != NULL);
  show("output", bufferevent_get_output(subject) != NULL);
  show("enabled", bufferevent_get_enabled(subject));
  show("error", bufferevent_socket_get_dns_error(subject));
  close_bufferevent();
}

static void call_partner(const long* at) {
  open_bufferevent(at[0]);
  show("partner", bufferevent_pair_get_partner(subject) == partner);
  close_bufferevent();
}

static void call_references(const long* at) {
  open_bufferevent(at[0]);
  bufferevent_incref(subject);
  show("decref", bufferevent_decref(subject));
  bufferevent_lock(subject);
  bufferevent_unlock(subject);
  close_bufferevent();
}

static void call_connect(const long* at) {
  struct sockaddr_storage address = {.ss_family = (sa_family_t)at[2]};
  open_bufferevent(at[0]);
  show("result", bufferevent_socket_connect(subject, at[1] ? (struct sockaddr*)&address : NULL,
                                            (int)sizeof address));
  look("now");
}

// ---- making and freeing

static void call_socket_new(const long* at) {
  open_base();
  subject =
      bufferevent_socket_new(at[0] ? base : NULL, at[1] == 0 ? pair[0] : (int)at[1], (int)at[2]);
  show("made", subject != NULL);
  if (subject != NULL && at[0]) close_bufferevent();
}

static void call_pair_new(const long* at) {
  struct bufferevent* ends[2] = {NULL, NULL};
  open_base();
  show("result", bufferevent_pair_new(at[0] ? base : NULL, (int)at[1], ends));
  show("made", ends[0] != NULL && ends[1] != NULL);
  subject = ends[0];
  partner = ends[1];
  if (at[0]) close_bufferevent();
}

static void call_filter_new(const long* at) {
  open_base();
  struct bufferevent* below = make_bufferevent(at[0]);
  subject = bufferevent_filter_new(below, NULL, NULL, (int)at[1], NULL, NULL);
  show("made", subject != NULL);
  if (subject != NULL) close_bufferevent();
}

static void call_free(const long* at) {
  open_bufferevent(at[0]);
  bufferevent_free(subject);
  event_base_loop(base, EVLOOP_NONBLOCK);
}

// ---- rates

static void call_config(const long* at) {
  const struct timeval none = {0, 0};
  struct ev_token_bucket_cfg* rates =
      ev_token_bucket_cfg_new((size_t)at[0], (size_t)at[1], (size_t)at[2], 5, at[3] ? &none : NULL);
  show("made", rates != NULL);
  if (rates != NULL) ev_token_bucket_cfg_free(rates);
}

static void call_rates(const long* at) {
  open_bufferevent(at[0]);
  struct ev_token_bucket_cfg* rates = at[1] ? ev_token_bucket_cfg_new(50, 60, 50, 60, NULL) : NULL;
  show("set", bufferevent_set_rate_limit(subject, rates));
  show("again", bufferevent_set_rate_limit(subject, rates));
  show("rates", bufferevent_get_token_bucket_cfg(subject) == rates);
  if (at[1]) {
    show("decrement", bufferevent_decrement_read_limit(subject, (ev_ssize_t)at[2]));
    show("decrement", bufferevent_decrement_write_limit(subject, (ev_ssize_t)at[2]));
  }
  show("level", (long)bufferevent_get_read_limit(subject));
  show("level", (long)bufferevent_get_write_limit(subject));
  close_bufferevent();
}

static void call_group(const long* at) {
  open_bufferevent(at[0]);
  struct ev_token_bucket_cfg* rates = ev_token_bucket_cfg_new(50, 60, 50, 60, NULL);
  struct bufferevent_rate_limit_group* group = bufferevent_rate_limit_group_new(base, rates);
  show("configure", bufferevent_rate_limit_group_set_cfg(group, at[1] ? rates : NULL));
  show("share", bufferevent_rate_limit_group_set_min_share(group, (size_t)at[2]));
  show("join", bufferevent_add_to_rate_limit_group(subject, group));
  show("most", (long)bufferevent_get_max_to_read(subject));
  show("leave", bufferevent_remove_from_rate_limit_group(subject));
  show("again", bufferevent_remove_from_rate_limit_group(subject));
  bufferevent_rate_limit_group_get_totals(group, NULL, NULL);
  bufferevent_rate_limit_group_free(group);
  close_bufferevent();
}

static void call_single(const long* at) {
  open_bufferevent(at[0]);
  show("read", bufferevent_set_max_single_read(subject, (size_t)at[1]));
  show("write", bufferevent_set_max_single_write(subject, (size_t)at[1]));
  printf("%ld %ld, %ld %ld\n", (long)bufferevent_get_max_single_read(subject),
         (long)bufferevent_get_max_single_write(subject),
         (long)bufferevent_get_max_to_read(subject), (long)bufferevent_get_max_to_write(subject));
  close_bufferevent();
}

// ---- the table

static const Value kSizeValues[] = {
    {"0", 0}, {"1", 1}, {"100", 100}, {"SSIZE_MAX", EV_SSIZE_MAX}, {"-1", -1},
};
static const Domain kSizes = DOMAIN_OF(kSizeValues);

// Less than the values that docs/drop-in.md names as different.
static const Value kMarkValues[] = {{"0", 0}, {"1", 1}, {"100", 100}, {"SSIZE_MAX", EV_SSIZE_MAX}};
static const Domain kMarks = DOMAIN_OF(kMarkValues);

static const Value kWhatValues[] = {
    {"0", 0},
    {"READ", EV_READ},
    {"WRITE", EV_WRITE},
    {"both", EV_READ | EV_WRITE},
    {"SIGNAL", EV_SIGNAL},
    {"-1", -1},
};
static const Domain kWhats = DOMAIN_OF(kWhatValues);

static const Value kFdValues[] = {{"-1", -1}, {"open", 0}, {"9999", 9999}};
static const Domain kFds = DOMAIN_OF(kFdValues);

static const Value kThreeValues[] = {{"0", 0}, {"1", 1}, {"2", 2}};
static const Domain kThree = DOMAIN_OF(kThreeValues);

static const Value kMaskValues[] = {{"0", 0}, {"1", 1}, {"2", 2}, {"4", 4}, {"8", 8}, {"15", 15}};
static const Domain kMasks = DOMAIN_OF(kMaskValues);

static const Value kOptionValues[] = {
    {"0", 0},
    {"CLOSE", BEV_OPT_CLOSE_ON_FREE},
    {"THREADSAFE", BEV_OPT_THREADSAFE},
    {"DEFER", BEV_OPT_DEFER_CALLBACKS},
    {"UNLOCK", BEV_OPT_UNLOCK_CALLBACKS},
    {"DEFER|UNLOCK", BEV_OPT_DEFER_CALLBACKS | BEV_OPT_UNLOCK_CALLBACKS},
    {"0x1000", 0x1000},
};
static const Domain kOptions = DOMAIN_OF(kOptionValues);

static const Value kTriggerValues[] = {
    {"0", 0},
    {"IGNORE", BEV_TRIG_IGNORE_WATERMARKS},
    {"DEFER", BEV_TRIG_DEFER_CALLBACKS},
    {"0x100", 0x100},
};
static const Domain kTriggers = DOMAIN_OF(kTriggerValues);

static const Value kFamilyValues[] = {{"0", 0}, {"UNIX", AF_UNIX}, {"999", 999}};
static const Domain kFamilies = DOMAIN_OF(kFamilyValues);

int main(int argc, char** argv) {
  static const Call calls[] = {
      {"bufferevent_write", call_write, {&kKinds, &kBooleans, &kSizes}},
      {"bufferevent_read", call_read, {&kKinds, &kBooleans, &kSizes}},
      {"bufferevent_write_buffer", call_write_buffer, {&kKinds, &kThree}},
      {"bufferevent_read_buffer", call_read_buffer, {&kKinds, &kThree}},
      {"bufferevent_enable", call_enable, {&kKinds, &kWhats}},
      {"bufferevent_setwatermark", call_watermark, {&kKinds, &kWhats, &kSizes, &kMarks}},
      {"bufferevent_getwatermark", call_getwatermark, {&kKinds, &kWhats, &kBooleans}},
      {"bufferevent_set_timeouts", call_timeouts, {&kKinds, &kThree, &kThree}},
      {"bufferevent_settimeout", call_settimeout, {&kKinds, &kBooleans, &kBooleans}},
      {"bufferevent_setcb", call_setcb, {&kKinds, &kMasks}},
      {"bufferevent_getcb", call_getcb, {&kKinds, &kMasks}},
      {"bufferevent_trigger", call_trigger, {&kKinds, &kWhats, &kTriggers}},
      {"bufferevent_trigger_event", call_trigger_event, {&kKinds, &kWhats, &kTriggers}},
      {"bufferevent_flush", call_flush, {&kKinds, &kWhats, &kThree}},
      {"bufferevent_setfd", call_setfd, {&kKinds, &kFds}},
      {"bufferevent_base_set", call_base_set, {&kKinds, &kBooleans}},
      {"bufferevent_priority_set", call_priority, {&kKinds, &kNumbers}},
      {"bufferevent_get", call_get, {&kKinds}},
      {"bufferevent_pair_get_partner", call_partner, {&kKinds}},
      {"bufferevent_incref", call_references, {&kKinds}},
      {"bufferevent_socket_connect", call_connect, {&kNoFilters, &kBooleans, &kFamilies}},
      {"bufferevent_socket_new", call_socket_new, {&kBooleans, &kFds, &kOptions}},
      {"bufferevent_pair_new", call_pair_new, {&kBooleans, &kOptions}},
      {"bufferevent_filter_new", call_filter_new, {&kKinds, &kOptions}},
      {"bufferevent_free", call_free, {&kKinds}},
      {"ev_token_bucket_cfg_new", call_config, {&kSizes, &kSizes, &kSizes, &kBooleans}},
      {"bufferevent_set_rate_limit", call_rates, {&kKinds, &kBooleans, &kSizes}},
      {"groups", call_group, {&kKinds, &kBooleans, &kSizes}},
      {"bufferevent_set_max_single", call_single, {&kKinds, &kSizes}},
  };
  return run_calls(argc, argv, calls, sizeof calls / sizeof *calls);
}
