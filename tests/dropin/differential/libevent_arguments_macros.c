// The macros of events and of evutil, and functions about the library itself, with every argument
// that a program might pass: see arguments.h.
// differential: --undefined
#include <event2/util.h>
#include <stddef.h>

#include "libevent_arguments.h"

// ---- the world

static void begin(void) {
  event_set_log_callback(on_world_log);
  errno = 0;
}

static const Value kWhichValues[] = {{"timer", 0}, {"signal", 1}, {"user", 2}};
static const Domain kWhich = DOMAIN_OF(kWhichValues);

// ---- events

static void call_new(const long* at) {
  open_world(0);
  struct event_base* of = at[0] ? base : NULL;
  event_callback_fn callback = at[3] ? on_event : NULL;
  subject = at[2] == 0   ? evtimer_new(of, callback, event_self_cbarg())
            : at[2] == 1 ? evsignal_new(of, (int)at[1], callback, event_self_cbarg())
                         : evuser_new(of, callback, event_self_cbarg());
  show("made", subject != NULL);
  if (subject == NULL) return;
  const struct timeval timeout = micros(250000);
  print_result(at[2] == 0   ? evtimer_add(subject, &timeout)
               : at[2] == 1 ? evsignal_add(subject, &timeout)
                            : 0);
  if (at[2] == 2) evuser_trigger(subject);
  close_world();
}

static void call_assign(const long* at) {
  open_world(0);
  subject = at[0] ? calloc(1, sizeof *subject) : NULL;
  struct event_base* of = at[1] ? base : NULL;
  const int result = at[3] == 0   ? evtimer_assign(subject, of, on_event, event_self_cbarg())
                     : at[3] == 1 ? evsignal_assign(subject, of, (int)at[2], on_event, subject)
                                  : event_assign(subject, of, -1, 0, on_event, subject);
  print_result(result);
  if (result != 0) return;
  print_result(event_add(subject, NULL));
  close_world();
}

static void call_set(const long* at) {
  open_world(0);
  base = event_init();
  event_base_priority_init(base, kWorldPriorities);
  subject = at[0] ? calloc(1, sizeof *subject) : NULL;
  if (at[2] == 0) evtimer_set(subject, on_event, event_self_cbarg());
  if (at[2] == 1) evsignal_set(subject, (int)at[1], on_event, event_self_cbarg());
  if (at[2] == 2) timeout_set(subject, on_event, event_self_cbarg());
  if (at[2] == 3) signal_set(subject, (int)at[1], on_event, event_self_cbarg());
  show("base", event_get_base(subject) == base);
  const struct timeval timeout = micros(250000);
  print_result(at[2] == 2 ? timeout_add(subject, &timeout) : signal_add(subject, &timeout));
  close_world();
}

static void call_add(const long* at) {
  open_world_with(at[0]);
  tells_no_time = is_odd_time(at[1]);
  const struct timeval* timeout = time_of(at[1]);
  print_result(at[2] == 0   ? evtimer_add(subject, timeout)
               : at[2] == 1 ? evsignal_add(subject, timeout)
               : at[2] == 2 ? timeout_add(subject, timeout)
                            : signal_add(subject, timeout));
  close_world();
}

static void call_del(const long* at) {
  open_world_with(at[0]);
  print_result(at[1] == 0   ? evtimer_del(subject)
               : at[1] == 1 ? evsignal_del(subject)
               : at[1] == 2 ? timeout_del(subject)
               : at[1] == 3 ? signal_del(subject)
                            : evuser_del(subject));
  close_world();
}

static void call_pending(const long* at) {
  struct timeval until = {-7, -7};
  open_world_with(at[0]);
  struct timeval* told = at[2] ? &until : NULL;
  show_hex("pending", at[1] == 0   ? evtimer_pending(subject, told)
                      : at[1] == 1 ? evsignal_pending(subject, told)
                      : at[1] == 2 ? timeout_pending(subject, told)
                      : at[1] == 3 ? signal_pending(subject, told)
                                   : evuser_pending(subject, told));
  show("told", until.tv_sec != -7);
}

static void call_initialized(const long* at) {
  open_world_with(at[0]);
  printf("%d %d %d %d %d\n", evtimer_initialized(subject), evsignal_initialized(subject),
         timeout_initialized(subject), signal_initialized(subject), evuser_initialized(subject));
}

static void call_trigger(const long* at) {
  open_world_with(at[0]);
  evuser_trigger(subject);
  close_world();
}

static void call_get(const long* at) {
  open_world_with(at[0]);
  const int fd = at[1] == 0   ? (int)EVENT_FD(subject)
                 : at[1] == 1 ? EVENT_SIGNAL(subject)
                              : (int)event_get_signal(subject);
  show("number", fd == pair[0] ? 1000 : fd);
}

// ---- the library

static void call_versions(const long* at) {
  begin();
  (void)at;
  show_text("version", event_get_version());
  show_hex("number", event_get_version_number());
  const char** methods = event_get_supported_methods();
  for (int i = 0; methods[i] != NULL; i++) show_text("method", methods[i]);
}

static void call_debug_mode(const long* at) {
  begin();
  if (at[0]) base = event_base_new();
  event_enable_debug_mode();
  if (at[1]) event_enable_debug_mode();
  if (!at[0]) base = event_base_new();
  struct event* ev = event_new(base, -1, 0, on_event, NULL);
  print_result(event_add(ev, NULL));
  if (at[2]) event_debug_unassign(ev);
  print_result(event_del(ev));
}

// ---- evutil

static const struct timeval kPair[] = {{0, 0},
                                       {0, 1},
                                       {1, 0},
                                       {1, 999999},
                                       {-1, -1},
                                       {2, -5},
                                       {0, 1000000},
                                       {INT_MAX, 999999},
                                       {1L << 40, 500000}};
static const Value kPairValues[] = {{"0", 0},           {"1us", 1},    {"1s", 2},
                                    {"1s+999999us", 3}, {"-1 -1", 4},  {"2s-5us", 5},
                                    {"1000000us", 6},   {"intmax", 7}, {"2^40 s", 8}};
static const Domain kPairs = DOMAIN_OF(kPairValues);

static void print_time(const char* what, const struct timeval* time) {
  printf("%s: %lld %lld\n", what, (long long)time->tv_sec, (long long)time->tv_usec);
}

static void call_timers(const long* at) {
  struct timeval one = kPair[at[0]];
  struct timeval other = kPair[at[1]];
  struct timeval result;
  evutil_timeradd(&one, &other, &result);
  print_time("sum", &result);
  evutil_timersub(&one, &other, &result);
  print_time("difference", &result);
  printf("%d %d %d %d %d %d\n", evutil_timercmp(&one, &other, <), evutil_timercmp(&one, &other, <=),
         evutil_timercmp(&one, &other, >), evutil_timercmp(&one, &other, >=),
         evutil_timercmp(&one, &other, ==), evutil_timercmp(&one, &other, !=));
  printf("%d", evutil_timerisset(&one) != 0);
  evutil_timerclear(&one);
  printf(" %d\n", evutil_timerisset(&one) != 0);
}

static void call_gettimeofday(const long* at) {
  struct timeval now = {-7, -7};
  struct timezone zone;
  begin();
  use_steps(nothing_to_wait_for);
  print_result(evutil_gettimeofday(at[0] ? &now : NULL, at[1] ? &zone : NULL));
  show("told", now.tv_sec != -7);
}

static void call_errors(const long* at) {
  begin();
  EVUTIL_SET_SOCKET_ERROR((int)at[0]);
  show("error", EVUTIL_SOCKET_ERROR());
  show("of the socket", evutil_socket_geterror((int)at[1]));
  show_text("text", evutil_socket_error_to_string((int)at[0]));
}

static void call_close(const long* at) {
  begin();
  open_pair(pair);
  print_result(EVUTIL_CLOSESOCKET(fd_of(at[0])));
  show("offset", (long)evutil_offsetof(struct timeval, tv_usec));
}

static void call_freeaddrinfo(const long* at) {
  struct evutil_addrinfo* found = NULL;
  begin();
  const struct evutil_addrinfo hints = {.ai_flags = EVUTIL_AI_NUMERICHOST,
                                        .ai_family = at[0] ? AF_INET : AF_INET6,
                                        .ai_socktype = at[1] ? SOCK_STREAM : 0};
  print_result(evutil_getaddrinfo(at[0] ? "127.0.0.1" : "::1", "80", &hints, &found));
  evutil_freeaddrinfo(found);
}

// ---- the table

static const Value kSmallValues[] = {{"0", 0}, {"1", 1}, {"2", 2}, {"3", 3}};
static const Domain kSmall = DOMAIN_OF(kSmallValues);

static const Value kFiveValues[] = {{"0", 0}, {"1", 1}, {"2", 2}, {"3", 3}, {"4", 4}};
static const Domain kFive = DOMAIN_OF(kFiveValues);

static const Value kSignalValues[] = {{"-1", -1}, {"0", 0},   {"USR1", SIGUSR1}, {"KILL", SIGKILL},
                                      {"64", 64}, {"65", 65}, {"max", INT_MAX},  {"min", INT_MIN}};
static const Domain kSignals = DOMAIN_OF(kSignalValues);

int main(int argc, char** argv) {
  static const Call calls[] = {
      {"evtimer_new and others", call_new, {&kBooleans, &kSignals, &kWhich, &kBooleans}},
      {"evtimer_assign and others", call_assign, {&kBooleans, &kBooleans, &kSignals, &kWhich}},
      {"evtimer_set and others", call_set, {&kBooleans, &kSignals, &kSmall}},
      {"evtimer_add and others", call_add, {&kEvents, &kTimeouts, &kSmall}},
      {"evtimer_del and others", call_del, {&kEvents, &kFive}},
      {"evtimer_pending and others", call_pending, {&kEvents, &kFive, &kBooleans}},
      {"evtimer_initialized and others", call_initialized, {&kEvents}},
      {"evuser_trigger", call_trigger, {&kEvents}},
      {"event_get_signal and others", call_get, {&kEvents, &kSmall}},
      {"event_get_version and others", call_versions, {NULL}},
      {"event_enable_debug_mode", call_debug_mode, {&kBooleans, &kBooleans, &kBooleans}},
      {"evutil_timeradd and others", call_timers, {&kPairs, &kPairs}},
      {"evutil_gettimeofday", call_gettimeofday, {&kBooleans, &kBooleans}},
      {"EVUTIL_SOCKET_ERROR", call_errors, {&kNumbers, &kNumbers}},
      {"EVUTIL_CLOSESOCKET", call_close, {&kFds}},
      {"evutil_freeaddrinfo", call_freeaddrinfo, {&kBooleans, &kBooleans}},
  };
  return run_calls(argc, argv, calls, sizeof calls / sizeof *calls);
}
