// event_set_mem_functions: the library allocates and frees everything with the program's functions,
// and passes no other memory to them. The functions mark their blocks, so that a block of libc's is
// detected.
//
// differential settings: debug,changelist,precise,poll,select
#include <errno.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/util.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "harness.h"

enum { kHeader = 16, kEvents = 200 };

static const uint64_t kMark = 0x5eed5eed5eed5eedULL;

static int blocks;   // Taken and not given back.
static int foreign;  // Given back, and not ours.
static int nulls;    // Null pointers passed to free.
static int taken;
static int fail_after = -1;  // The blocks until memory runs out; -1: never.

static void* take(size_t size) {
  if (fail_after == 0) {
    errno = ENOMEM;
    return NULL;
  }
  fail_after -= fail_after > 0;
  char* block = malloc(size + kHeader);
  memcpy(block, &kMark, sizeof kMark);
  memset(block + kHeader, 0xa5, size);
  blocks++;
  taken++;
  return block + kHeader;
}

static char* block_of(void* memory) {
  char* block = (char*)memory - kHeader;
  if (memcmp(block, &kMark, sizeof kMark) != 0) {
    foreign++;
    return NULL;
  }
  return block;
}

static void give_back(void* memory) {
  nulls += memory == NULL;
  char* block = memory == NULL ? NULL : block_of(memory);
  if (block != NULL) {
    memset(block, 0, kHeader);
    blocks--;
    free(block);
  }
}

static void* take_more(void* memory, size_t size) {
  if (memory == NULL) {
    return take(size);
  }
  char* block = block_of(memory);
  return block == NULL ? NULL : (char*)realloc(block, size + kHeader) + kHeader;
}

static void use_ours(void) { event_set_mem_functions(take, take_more, give_back); }

static void report(void) { printf("left %d, foreign %d, null %d\n", blocks, foreign, nulls); }

static void count(evutil_socket_t fd, short what, void* arg) {
  (void)fd;
  (void)what;
  ++*(int*)arg;
}

static void end_loop(evutil_socket_t fd, short what, void* arg) {
  (void)fd;
  (void)what;
  event_base_loopexit(arg, NULL);
}

static void timers(struct event_base* base, int* calls) {
  struct event* events[kEvents];
  for (int i = 0; i < kEvents; i++) {
    const struct timeval soon = {0, i * 10};
    events[i] = event_new(base, -1, EV_PERSIST, count, calls);
    event_add(events[i], &soon);
  }
  const struct timeval later = {0, 20000};
  event_base_once(base, -1, EV_TIMEOUT, end_loop, base, &later);
  event_base_dispatch(base);
  for (int i = 0; i < kEvents; i++) {
    event_free(events[i]);
  }
}

static void descriptors_and_signals(struct event_base* base, int* calls) {
  int pair[2];
  evutil_socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  struct event* reader = event_new(base, pair[0], EV_READ | EV_PERSIST, count, calls);
  struct event* on_signal = event_new(base, SIGUSR1, EV_SIGNAL | EV_PERSIST, count, calls);
  event_add(reader, NULL);
  event_add(on_signal, NULL);
  printf("%d\n", (int)write(pair[1], "x", 1));
  kill(getpid(), SIGUSR1);
  const struct timeval later = {0, 20000};
  event_base_once(base, -1, EV_TIMEOUT, end_loop, base, &later);
  event_base_dispatch(base);
  event_free(reader);
  event_free(on_signal);
  evutil_closesocket(pair[0]);
  evutil_closesocket(pair[1]);
}

static void a_base_and_its_events(void) {
  use_ours();
  int calls = 0;
  struct event_config* config = event_config_new();
  event_config_avoid_method(config, "select");
  struct event_base* base = event_base_new_with_config(config);
  event_config_free(config);
  event_base_priority_init(base, 3);
  timers(base, &calls);
  descriptors_and_signals(base, &calls);
  event_base_free(base);
  libevent_global_shutdown();
  printf("called %d, used %d\n", calls > kEvents, taken > kEvents);
  report();
}

static void two_bases(void) {
  use_ours();
  struct event_base* one = event_base_new();
  struct event_base* other = event_base_new();
  const struct timeval never = {1000, 0};
  event_base_once(one, -1, EV_TIMEOUT, count, NULL, &never);
  event_base_loop(other, EVLOOP_NONBLOCK);
  event_base_free(other);
  event_base_loop(one, EVLOOP_NONBLOCK);
  event_base_free(one);
  libevent_global_shutdown();
  report();
}

static void names_and_addresses(void) {
  use_ours();
  struct addrinfo* found = NULL;
  struct sockaddr_storage address;
  int size = sizeof address;
  printf("%d\n", evutil_getaddrinfo("127.0.0.1", "80", NULL, &found));
  evutil_freeaddrinfo(found);
  printf("%d\n", evutil_parse_sockaddr_port("[::1]:80", (struct sockaddr*)&address, &size));
  report();
}

static void timer_objects(void) {
  use_ours();
  struct evutil_monotonic_timer* timer = evutil_monotonic_timer_new();
  printf("blocks %d\n", blocks);
  evutil_monotonic_timer_free(timer);
  report();
}

static void back_to_libc(void) {
  use_ours();
  event_set_mem_functions(NULL, NULL, NULL);
  struct event_base* base = event_base_new();
  event_base_free(base);
  printf("taken %d\n", taken);
}

static void no_memory(void) {
  use_ours();
  fail_after = 0;
  printf("timer %d\n", evutil_monotonic_timer_new() == NULL);
  printf("config %d\n", event_config_new() == NULL);
  report();
}

static void on_log(int severity, const char* text) { printf("log %d %s\n", severity, text); }

static void no_log(int severity, const char* text) {
  (void)severity;
  (void)text;
}

static void uris(void) {
  struct evhttp_uri* uri = evhttp_uri_parse("http://u@h:1/p?q#f");
  if (uri != NULL) {
    evhttp_uri_set_host(uri, "another");
    evhttp_uri_set_path(uri, NULL);
    evhttp_uri_free(uri);
  }
}

static void codings(void) {
  give_back(evhttp_encode_uri("a b"));
  give_back(evhttp_decode_uri("a%20b"));
  give_back(evhttp_uridecode("a+b", 1, NULL));
  give_back(evhttp_htmlescape("<>"));
}

static void lists(void) {
  struct evkeyvalq list;
  TAILQ_INIT(&list);
  evhttp_add_header(&list, "a", "b");
  evhttp_add_header(&list, "c", "d");
  evhttp_remove_header(&list, "a");
  evhttp_clear_headers(&list);
  evhttp_parse_query("/?a=b&c=d", &list);
  evhttp_clear_headers(&list);
}

// Runs with memory for 0, 1, 2 ... blocks, up to where there is enough. How many a function needs
// may differ between the libraries, and then so may its messages.
static void texts_of_http(void) {
  use_ours();
  event_set_log_callback(on_log);
  void (*const kinds[])(void) = {uris, codings, lists};
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
    kinds[kind]();
    report();
  }
  event_set_log_callback(no_log);
  for (int at = 0; at < 30; at++) {
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
      fail_after = at;
      kinds[kind]();
    }
  }
  nulls = 0;
  report();
}

static void show_kept(int status, const char* (*get)(const struct evhttp_uri*),
                      struct evhttp_uri* uri) {
  const char* part = get(uri);
  printf("%d %s\n", status, part == NULL ? "none" : part);
}

static void no_memory_for_uris(void) {
  use_ours();
  event_set_log_callback(on_log);
  struct evhttp_uri* uri = evhttp_uri_parse("//kept?kept");
  fail_after = 0;
  printf("%d\n", evhttp_uri_new() == NULL);
  printf("%d\n", evhttp_uri_parse("http://u@h:1/p?q#f") == NULL);
  show_kept(evhttp_uri_set_host(uri, "new"), evhttp_uri_get_host, uri);
  show_kept(evhttp_uri_set_query(uri, "#"), evhttp_uri_get_query, uri);
  show_kept(evhttp_uri_set_query(uri, ""), evhttp_uri_get_query, uri);
  evhttp_uri_free(uri);
  report();
}

static void no_memory_for_codings(void) {
  struct evkeyvalq list;
  use_ours();
  event_set_log_callback(on_log);
  fail_after = 0;
  printf("%d\n", evhttp_encode_uri("a b") == NULL);
  printf("%d\n", evhttp_uriencode("a b", 2, 0) == NULL);
  printf("%d\n", evhttp_decode_uri("a%20b") == NULL);
  printf("%d\n", evhttp_uridecode("a%20b", 1, NULL) == NULL);
  printf("%d\n", evhttp_htmlescape("<") == NULL);
  TAILQ_INIT(&list);
  printf("%d\n", evhttp_add_header(&list, "a", "b"));
  printf("%d\n", evhttp_parse_query("/?a=b", &list));
  report();
}

static const Case kCases[] = {{"a base and its events", a_base_and_its_events},
                              {"two bases", two_bases},
                              {"names and addresses", names_and_addresses},
                              {"timer objects", timer_objects},
                              {"back to libc", back_to_libc},
                              {"no memory", no_memory},
                              {"texts of HTTP", texts_of_http},
                              {"no memory for URIs", no_memory_for_uris},
                              {"no memory for codings", no_memory_for_codings}};

int main(int argc, char** argv) {
  return run_cases(argc, argv, kCases, sizeof kCases / sizeof *kCases);
}
