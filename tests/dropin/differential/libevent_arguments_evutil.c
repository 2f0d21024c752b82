// The functions that need no event, of evutil, threads, memory and the log, with every argument
// that a program might pass: see arguments.h. libevent_evutil.c has random arguments.
// differential: --undefined
#include <event2/util.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <sys/un.h>
#include <time.h>

#include "libevent_arguments.h"

static void print_bytes(const void* bytes, size_t size) {
  for (size_t i = 0; i < size; i++) printf("%02x", ((const unsigned char*)bytes)[i]);
  printf("\n");
}

// Texts: an argument is an index; 0 means a null pointer.
#define ZEROS_8 "00000000"
#define ZEROS_120                                                                                 \
  ZEROS_8 ZEROS_8 ZEROS_8 ZEROS_8 ZEROS_8 ZEROS_8 ZEROS_8 ZEROS_8 ZEROS_8 ZEROS_8 ZEROS_8 ZEROS_8 \
      ZEROS_8 ZEROS_8 ZEROS_8

static const char* const kTexts[] = {NULL,
                                     "",
                                     "127.0.0.1",
                                     "::1",
                                     "[::1]:80",
                                     "1.2.3.4:",
                                     "1.2.3.4:0",
                                     "-1",
                                     "99999999999999999999",
                                     "%",
                                     "::1%lo",
                                     "[",
                                     "[]:1",
                                     ":",
                                     "0x1f",
                                     "\xff\xfe",
                                     "ABC",
                                     "abc",
                                     ZEROS_120 "1.2.3.4:80",
                                     ZEROS_120 "01.2.3.4:80",
                                     "[::ffff:" ZEROS_120 "1.2.3.4]:80",
                                     "1.2.3.4:65535",
                                     "1.2.3.4:65536"};
static const Value kTextValues[] = {
    {"NULL", 0},
    {"\"\"", 1},
    {"127.0.0.1", 2},
    {"::1", 3},
    {"[::1]:80", 4},
    {"1.2.3.4:", 5},
    {"1.2.3.4:0", 6},
    {"-1", 7},
    {"10^20-1", 8},
    {"percent", 9},
    {"::1 of lo", 10},
    {"[", 11},
    {"[]:1", 12},
    {"colon", 13},
    {"0x1f", 14},
    {"beyond ASCII", 15},
    {"ABC", 16},
    {"abc", 17},
    {"127 and a port", 18},
    {"128 and a port", 19},
    {"much in brackets", 20},
    {"port 65535", 21},
    {"port 65536", 22},
};
static const Domain kTextDomain = DOMAIN_OF(kTextValues);

static const Value kFamilyValues[] = {
    {"UNSPEC", AF_UNSPEC}, {"UNIX", AF_UNIX}, {"INET", AF_INET}, {"INET6", AF_INET6}, {"-1", -1},
    {"9999", 9999},        {"min", INT_MIN},
};
static const Domain kFamilies = DOMAIN_OF(kFamilyValues);

static const Value kRoomValues[] = {{"0", 0},   {"1", 1},         {"2", 2},   {"8", 8},
                                    {"15", 15}, {"16", 16},       {"28", 28}, {"46", 46},
                                    {"64", 64}, {"max", INT_MAX}, {"-1", -1}};
static const Domain kRooms = DOMAIN_OF(kRoomValues);

static const Value kSocketValues[] = {
    {"-1", -1},  {"min", INT_MIN}, {"max", INT_MAX}, {"closed", kFarFd}, {"pipe", 1},
    {"unix", 2}, {"tcp", 3},       {"udp", 4},       {"tcp6", 5},        {"file", 6},
};
static const Domain kSockets = DOMAIN_OF(kSocketValues);

static int socket_of(long value) {
  int fds[2];
  switch (value) {
    case 1:
      return pipe(fds) == 0 ? fds[0] : -1;
    case 2:
      return socket(AF_UNIX, SOCK_STREAM, 0);
    case 3:
      return socket(AF_INET, SOCK_STREAM, 0);
    case 4:
      return socket(AF_INET, SOCK_DGRAM, 0);
    case 5:
      return socket(AF_INET6, SOCK_STREAM, 0);
    case 6:
      return open("/dev/null", O_RDWR);
    default:
      return (int)value;
  }
}

static void begin(void) {
  event_set_log_callback(on_world_log);
  errno = 0;
}

// ---- sockets

static void call_socket(const long* at) {
  static int (*const functions[])(evutil_socket_t) = {
      evutil_make_socket_nonblocking,
      evutil_make_socket_closeonexec,
      evutil_make_listen_socket_reuseable,
      evutil_make_listen_socket_reuseable_port,
      evutil_make_listen_socket_ipv6only,
      evutil_make_tcp_listen_socket_deferred,
      evutil_closesocket,
  };
  const int fd = socket_of(at[1]);
  begin();
  print_result(functions[at[0]](fd));
  show_hex("flags", fcntl(fd, F_GETFL) & O_NONBLOCK);
  show("descriptor's", fcntl(fd, F_GETFD));
}

static void call_socketpair(const long* at) {
  int fds[2] = {-7, -7};
  begin();
  print_result(evutil_socketpair((int)at[0], (int)at[1], (int)at[2], at[3] ? fds : NULL));
  show("made", fds[0] >= 0 && fds[1] >= 0);
  show_hex("flags", fcntl(fds[0], F_GETFL) & O_NONBLOCK);
}

// ---- addresses

static void call_inet_ntop(const long* at) {
  static const unsigned char bytes[16] = {0xfe, 0x80, [15] = 1};
  char text[64];
  memset(text, '#', sizeof text);
  begin();
  const char* written =
      evutil_inet_ntop((int)at[0], at[1] ? bytes : NULL, at[2] ? text : NULL, (size_t)(int)at[3]);
  show("written", written != NULL);
  if (written && at[2]) show_text("text", text);
}

static void call_inet_pton(const long* at) {
  unsigned char bytes[16];
  memset(bytes, 0xcc, sizeof bytes);
  begin();
  show("result", evutil_inet_pton((int)at[0], kTexts[at[1]], at[2] ? bytes : NULL));
  print_bytes(bytes, sizeof bytes);
}

static void call_inet_pton_scope(const long* at) {
  unsigned char bytes[16];
  unsigned index = 7;
  memset(bytes, 0xcc, sizeof bytes);
  begin();
  show("result", evutil_inet_pton_scope((int)at[0], kTexts[at[1]], at[2] & 1 ? bytes : NULL,
                                        at[2] & 2 ? &index : NULL));
  print_bytes(bytes, sizeof bytes);
  show("index", index);
}

static void call_parse_sockaddr_port(const long* at) {
  struct sockaddr_storage address;
  int size = (int)at[2];
  memset(&address, 0xcc, sizeof address);
  begin();
  show("result",
       evutil_parse_sockaddr_port(kTexts[at[0]], at[1] & 1 ? (struct sockaddr*)&address : NULL,
                                  at[1] & 2 ? &size : NULL));
  show("size", size);
  print_bytes(&address, sizeof(struct sockaddr_in6));
}

static void call_sockaddr_cmp(const long* at) {
  struct sockaddr_storage addresses[2];
  memset(addresses, 0, sizeof addresses);
  addresses[0].ss_family = (sa_family_t)at[0];
  addresses[1].ss_family = (sa_family_t)at[1];
  begin();
  const int order =
      evutil_sockaddr_cmp((struct sockaddr*)&addresses[0],
                          at[2] == -1 ? NULL : (struct sockaddr*)&addresses[1], (int)at[2]);
  show("order", (order > 0) - (order < 0));
}

// ---- names

static void call_getaddrinfo(const long* at) {
  struct evutil_addrinfo hints = {.ai_flags = EVUTIL_AI_NUMERICHOST, .ai_family = (int)at[2]};
  struct evutil_addrinfo* found = NULL;
  begin();
  show("result", evutil_getaddrinfo(kTexts[at[0]], kTexts[at[1]], &hints, &found));
  show("found", found != NULL);
}

static void call_getaddrinfo_hints(const long* at) {
  struct evutil_addrinfo hints = {.ai_flags = (int)at[0] | EVUTIL_AI_NUMERICHOST,
                                  .ai_socktype = (int)at[1],
                                  .ai_protocol = (int)at[2]};
  struct evutil_addrinfo* found = NULL;
  begin();
  show("result", evutil_getaddrinfo("127.0.0.1", "80", &hints, at[3] ? &found : NULL));
  for (; found; found = found->ai_next) {
    printf("%#x %d %d %d\n", (unsigned)found->ai_flags, found->ai_family, found->ai_socktype,
           found->ai_protocol);
  }
}

static void call_gai_strerror(const long* at) {
  begin();
  show_text("text", evutil_gai_strerror((int)at[0]));
}

// ---- strings and numbers

static void call_strtoll(const long* at) {
  char* end = NULL;
  begin();
  show("number", evutil_strtoll(kTexts[at[0]], at[1] ? &end : NULL, (int)at[2]));
  show("errno", errno);
  if (end) show("read", end - kTexts[at[0]]);
}

static void call_strcasecmp(const long* at) {
  begin();
  show("order", evutil_ascii_strcasecmp(kTexts[at[0]], kTexts[at[1]]));
}

static void call_strncasecmp(const long* at) {
  begin();
  show("order", evutil_ascii_strncasecmp(kTexts[at[0]], kTexts[at[1]], (size_t)(int)at[2]));
}

static void call_snprintf(const long* at) {
  char text[64];
  memset(text, '#', sizeof text);
  begin();
  const char* format = at[2] ? "some %s" : "%.0s";
  show("length", evutil_snprintf(at[0] ? text : NULL, (size_t)(int)at[1], format, "words"));
  printf("%.12s\n", text);
}

static int format_by_list(char* text, size_t size, const char* format, ...) {
  va_list words;
  va_start(words, format);
  const int length = evutil_vsnprintf(text, size, format, words);
  va_end(words);
  return length;
}

static void call_vsnprintf(const long* at) {
  char text[64];
  memset(text, '#', sizeof text);
  begin();
  show("length",
       format_by_list(at[0] ? text : NULL, (size_t)(int)at[1], at[2] ? "%d words" : NULL, 12));
  printf("%.12s\n", text);
}

static void call_date(const long* at) {
  const struct tm time = {.tm_year = (int)at[2], .tm_mday = (int)at[3]};
  char text[64];
  memset(text, '#', sizeof text);
  begin();
  show("length", evutil_date_rfc1123(at[0] ? text : NULL, (size_t)(int)at[1], &time));
  printf("%.12s\n", text);
}

static void call_date_now(const long* at) {
  char text[64] = "";
  begin();
  show("length", evutil_date_rfc1123(text, (size_t)at[0], NULL));
  show("written", (long)strlen(text));
}

// ---- clocks

static void call_monotonic(const long* at) {
  struct timeval now = {-7, -7};
  use_steps(nothing_to_wait_for);
  begin();
  struct evutil_monotonic_timer* timer = at[0] ? evutil_monotonic_timer_new() : NULL;
  print_result(evutil_configure_monotonic_time(timer, (int)at[1]));
  print_result(evutil_gettime_monotonic(timer, at[2] ? &now : NULL));
  show("told", now.tv_sec != -7);
  evutil_monotonic_timer_free(timer);
}

static void call_monotonic_unconfigured(const long* at) {
  struct timeval now = {-7, -7};
  use_steps(nothing_to_wait_for);
  begin();
  struct evutil_monotonic_timer* timer = at[0] ? evutil_monotonic_timer_new() : NULL;
  print_result(evutil_gettime_monotonic(timer, at[1] ? &now : NULL));
  show("told", now.tv_sec != -7);
}

static void call_monotonic_free(const long* at) {
  (void)at;
  evutil_monotonic_timer_free(NULL);
  printf("freed nothing\n");
}

// ---- random bytes

static void call_random(const long* at) {
  unsigned char bytes[300] = {0};
  begin();
  show("init", evutil_secure_rng_init());
  evutil_secure_rng_get_bytes(at[0] ? bytes : NULL, (size_t)at[1]);
  int zeros = 0;
  for (size_t i = 0; i < sizeof bytes; i++) zeros += bytes[i] == 0;
  show("few zeros", zeros <= (int)sizeof bytes - at[1] + 20);
  evutil_secure_rng_add_bytes(at[0] ? (char*)bytes : NULL, (size_t)at[1]);
  show("device", evutil_secure_rng_set_urandom_device_file(at[0] ? "/dev/urandom" : NULL));
}

// ---- threads

static void* make_no_lock(unsigned type) { return (void)type, malloc(1); }
static void free_no_lock(void* lock, unsigned type) { (void)type, free(lock); }
static int lock_nothing(unsigned mode, void* lock) { return (void)mode, (void)lock, 0; }
static void* make_no_condition(unsigned type) { return (void)type, malloc(1); }
static void free_no_condition(void* condition) { free(condition); }
static int signal_nothing(void* condition, int all) { return (void)condition, (void)all, 0; }
static int wait_for_nothing(void* condition, void* lock, const struct timeval* timeout) {
  return (void)condition, (void)lock, (void)timeout, 0;
}

static const Value kMissingValues[] = {{"nothing missing", 0}, {"first", 1},  {"second", 2},
                                       {"third", 4},           {"fourth", 8}, {"all", 15}};
static const Domain kMissing = DOMAIN_OF(kMissingValues);

static struct evthread_lock_callbacks locks_without(long version, long missing) {
  return (struct evthread_lock_callbacks){(int)version,
                                          EVTHREAD_LOCKTYPE_RECURSIVE,
                                          missing & 1 ? NULL : make_no_lock,
                                          missing & 2 ? NULL : free_no_lock,
                                          missing & 4 ? NULL : lock_nothing,
                                          missing & 8 ? NULL : lock_nothing};
}

static void call_lock_callbacks(const long* at) {
  begin();
  const struct evthread_lock_callbacks locks = locks_without(at[1], at[2]);
  for (int i = 0; i < 2; i++) {
    print_result(evthread_set_lock_callbacks(at[0] ? &locks : NULL));
  }
  struct event_base* made = event_base_new();
  show("base", made != NULL);
  show("loop", event_base_loop(made, EVLOOP_NONBLOCK));
  print_result(evthread_set_lock_callbacks(NULL));
}

static void call_condition_callbacks(const long* at) {
  begin();
  const struct evthread_condition_callbacks conditions = {
      (int)at[1], at[2] & 1 ? NULL : make_no_condition, at[2] & 2 ? NULL : free_no_condition,
      at[2] & 4 ? NULL : signal_nothing, at[2] & 8 ? NULL : wait_for_nothing};
  for (int i = 0; i < 2; i++) {
    print_result(evthread_set_condition_callbacks(at[0] ? &conditions : NULL));
  }
  struct event_base* made = event_base_new();
  show("loop", event_base_loop(made, EVLOOP_NONBLOCK));
}

static void call_id_callback(const long* at) {
  begin();
  evthread_set_id_callback(NULL);
  if (at[0]) print_result(evthread_use_pthreads());
  if (at[0] == 2) print_result(evthread_use_pthreads());
  evthread_set_id_callback(NULL);
  struct event_base* made = event_base_new();
  show("once", event_base_once(made, -1, EV_TIMEOUT, on_event, NULL, NULL));
  show("loop", event_base_loop(made, EVLOOP_NONBLOCK));
  event_base_free(made);
}

static int look_inside(const struct event_base* of, const struct event* ev, void* argument) {
  (void)argument;
  show("pending", event_pending(ev, EV_TIMEOUT, NULL));
  return event_base_get_num_events((struct event_base*)of, EVENT_BASE_COUNT_ACTIVE);
}

static void call_lock_debugging(const long* at) {
  begin();
  if (at[0] & 1) evthread_enable_lock_debugging();
  if (at[0] & 2) evthread_enable_lock_debuging();
  print_result(evthread_use_pthreads());
  struct event_base* made = event_base_new();
  event_base_once(made, -1, EV_TIMEOUT, on_event, NULL, &kTimes[3]);
  show("each", event_base_foreach_event(made, look_inside, NULL));
  show("loop", event_base_loop(made, EVLOOP_NONBLOCK));
  event_base_free(made);
}

// ---- memory and the log

static int nulls;  // How many null pointers the program's free() got.

static void free_and_count(void* memory) {
  nulls += memory == NULL;
  free(memory);
}

static void call_mem_functions(const long* at) {
  event_set_mem_functions(at[0] & 1 ? NULL : malloc, at[0] & 2 ? NULL : realloc,
                          at[0] & 4 ? NULL : free_and_count);
  open_world(0);
  event_base_foreach_event(base, NULL, NULL);
  event_base_dump_events(base, stderr);
  subject = make_event(kArmedPersistent);
  event_base_free(event_base_new_with_config(NULL));
  event_config_free(event_config_new());
  close_world();
  libevent_global_shutdown();
  show("null pointers", nulls);
}

static void call_debug_logging(const long* at) {
  event_set_log_callback(NULL);
  event_set_fatal_callback(NULL);
  event_enable_debug_logging((ev_uint32_t)at[0]);
  event_enable_debug_logging(EVENT_DBG_NONE);
  libevent_global_shutdown();
  libevent_global_shutdown();
  open_world(0);
  close_world();
}

// ---- the table

static const Value kFunctionValues[] = {
    {"nonblocking", 0}, {"closeonexec", 1}, {"reuseable", 2},   {"reuseable_port", 3},
    {"ipv6only", 4},    {"deferred", 5},    {"closesocket", 6},
};
static const Domain kFunctions = DOMAIN_OF(kFunctionValues);

static const Value kPartValues[] = {{"none", 0}, {"first", 1}, {"second", 2}, {"both", 3}};
static const Domain kParts = DOMAIN_OF(kPartValues);

static const Value kSizeValues[] = {{"0", 0}, {"1", 1}, {"300", 300}};
static const Domain kSizes = DOMAIN_OF(kSizeValues);

static const Value kFreedValues[] = {{"all given", 0}, {"no malloc", 1}, {"no realloc", 2},
                                     {"no free", 4},   {"only free", 3}, {"none", 7}};
static const Domain kGiven = DOMAIN_OF(kFreedValues);

int main(int argc, char** argv) {
  static const Call calls[] = {
      {"evutil_make_socket", call_socket, {&kFunctions, &kSockets}},
      {"evutil_socketpair", call_socketpair, {&kFamilies, &kNumbers, &kNumbers, &kBooleans}},
      {"evutil_inet_ntop", call_inet_ntop, {&kFamilies, &kBooleans, &kBooleans, &kRooms}},
      {"evutil_inet_pton", call_inet_pton, {&kFamilies, &kTextDomain, &kBooleans}},
      {"evutil_inet_pton_scope", call_inet_pton_scope, {&kFamilies, &kTextDomain, &kParts}},
      {"evutil_parse_sockaddr_port", call_parse_sockaddr_port, {&kTextDomain, &kParts, &kRooms}},
      {"evutil_sockaddr_cmp", call_sockaddr_cmp, {&kFamilies, &kFamilies, &kNumbers}},
      {"evutil_getaddrinfo", call_getaddrinfo, {&kTextDomain, &kTextDomain, &kFamilies}},
      {"evutil_getaddrinfo hints",
       call_getaddrinfo_hints,
       {&kNumbers, &kNumbers, &kNumbers, &kBooleans}},
      {"evutil_gai_strerror", call_gai_strerror, {&kNumbers}},
      {"evutil_strtoll", call_strtoll, {&kTextDomain, &kBooleans, &kNumbers}},
      {"evutil_ascii_strcasecmp", call_strcasecmp, {&kTextDomain, &kTextDomain}},
      {"evutil_ascii_strncasecmp", call_strncasecmp, {&kTextDomain, &kTextDomain, &kNumbers}},
      {"evutil_snprintf", call_snprintf, {&kBooleans, &kRooms, &kBooleans}},
      {"evutil_vsnprintf", call_vsnprintf, {&kBooleans, &kRooms, &kBooleans}},
      {"evutil_date_rfc1123", call_date, {&kBooleans, &kRooms, &kNumbers, &kNumbers}},
      {"evutil_date_rfc1123 now", call_date_now, {&kRooms}},
      {"evutil_configure_monotonic_time", call_monotonic, {&kBooleans, &kNumbers, &kBooleans}},
      {"evutil_gettime_monotonic", call_monotonic_unconfigured, {&kBooleans, &kBooleans}},
      {"evutil_monotonic_timer_free", call_monotonic_free, {NULL}},
      {"evutil_secure_rng", call_random, {&kBooleans, &kSizes}},
      {"evthread_set_lock_callbacks", call_lock_callbacks, {&kBooleans, &kNumbers, &kMissing}},
      {"evthread_set_condition_callbacks",
       call_condition_callbacks,
       {&kBooleans, &kNumbers, &kMissing}},
      {"evthread_set_id_callback", call_id_callback, {&kNumbers}},
      {"evthread_enable_lock_debugging", call_lock_debugging, {&kParts}},
      {"event_set_mem_functions", call_mem_functions, {&kGiven}},
      {"event_enable_debug_logging", call_debug_logging, {&kNumbers}},
  };
  return run_calls(argc, argv, calls, sizeof calls / sizeof *calls);
}
