// Bufferevents, case by case: cases that random scripts
// (libevent_bufferevent_script.c) do not reach.
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_compat.h>
#include <event2/bufferevent_struct.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "libevent_cases.h"

static struct event_base* base;

static void on_read(struct bufferevent* bev, void* arg) {
  printf("  %s reads: %zu in, %zu out\n", (const char*)arg, evbuffer_get_length(bev->input),
         evbuffer_get_length(bev->output));
}

static void on_write(struct bufferevent* bev, void* arg) {
  printf("  %s writes: %zu in, %zu out\n", (const char*)arg, evbuffer_get_length(bev->input),
         evbuffer_get_length(bev->output));
}

static void on_event(struct bufferevent* bev, short what, void* arg) {
  const int error = errno;
  printf("  %s event %#x: enabled %#x", (const char*)arg, what, bufferevent_get_enabled(bev));
  printf(" %s\n", what & BEV_EVENT_ERROR ? strerror(error) : "");
}

static struct bufferevent* watched(struct bufferevent* bev, const char* name) {
  bufferevent_setcb(bev, on_read, on_write, on_event, (void*)(uintptr_t)name);
  return bev;
}

static struct bufferevent* on_socket(int fd, int options, const char* name) {
  return watched(bufferevent_socket_new(base, fd, options), name);
}

static void turns(int count) {
  for (int i = 0; i < count; i++)
    show("turn", event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
}

static void show_bev(struct bufferevent* bev) {
  printf("enabled %#x, pending %#x %#x, %zu in, %zu out, open %d\n", bufferevent_get_enabled(bev),
         event_pending(&bev->ev_read, EV_READ | EV_TIMEOUT, NULL),
         event_pending(&bev->ev_write, EV_WRITE | EV_TIMEOUT, NULL),
         evbuffer_get_length(bev->input), evbuffer_get_length(bev->output),
         bufferevent_getfd(bev) >= 0);
}

static void show_open(int fd) { show("open", fcntl(fd, F_GETFD) >= 0); }

static void begin(int ends[2]) {
  signal(SIGPIPE, SIG_IGN);
  event_set_log_callback(on_log);
  base = event_base_new();
  open_pair(ends);
}

// ---- sockets

static void run_fresh(void) {
  int ends[2];
  begin(ends);
  struct bufferevent* bev = on_socket(ends[0], 0, "a");
  show_bev(bev);
  show("read low", (long)bev->wm_read.low);
  show("read high", (long)bev->wm_read.high);
  show("write low", (long)bev->wm_write.low);
  show("max single read", bufferevent_get_max_single_read(bev));
  show("max to write", bufferevent_get_max_to_write(bev));
  show("no limit", bufferevent_get_read_limit(bev) == EV_SSIZE_MAX);
  show("priority", bufferevent_get_priority(bev));
  show("underlying", bufferevent_get_underlying(bev) != NULL);
  show("base", bufferevent_get_base(bev) == base);
  show("dns error", bufferevent_socket_get_dns_error(bev));
  show("flush", bufferevent_flush(bev, EV_READ | EV_WRITE, BEV_FLUSH));
  show_hex("read event", event_get_events(&bev->ev_read));
  show_hex("write event", event_get_events(&bev->ev_write));
  show("its argument", event_get_callback_arg(&bev->ev_read) == bev);
  show("partner", bufferevent_pair_get_partner(bev) != NULL);
  show("add to the input", evbuffer_add(bev->input, "x", 1));
  bufferevent_write(bev, "x", 1);
  show("drain the output", evbuffer_drain(bev->output, 1));
  show("prepend to it", evbuffer_prepend(bev->output, "x", 1));
  show("enable more", bufferevent_enable(bev, EV_CLOSED | 0x100));
  show_bev(bev);
  show("too much at once", bufferevent_set_max_single_read(bev, (size_t)EV_SSIZE_MAX + 1));
  show("is", bufferevent_get_max_single_read(bev));
  show("as much", bufferevent_set_max_single_write(bev, 100000));
  show("is", bufferevent_get_max_to_write(bev));
  show("watermarks of both", bufferevent_getwatermark(bev, EV_READ | EV_WRITE, NULL, NULL));
}

static void run_end(void) {
  int ends[2];
  begin(ends);
  struct bufferevent* bev = on_socket(ends[0], BEV_OPT_CLOSE_ON_FREE, "a");
  bufferevent_enable(bev, EV_READ);
  bufferevent_write(bev, "0123456789", 10);
  put(ends[1], "abc");
  close(ends[1]);
  turns(4);
  show_bev(bev);
  bufferevent_free(bev);
  show_open(ends[0]);
  show("events", event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED));
  turns(1);
  show_open(ends[0]);
}

static void on_read_free(struct bufferevent* bev, void* arg) {
  printf("  %s frees itself\n", (const char*)arg);
  bufferevent_free(bev);
}

static void on_event_free(struct bufferevent* bev, short what, void* arg) {
  printf("  %s frees itself at %#x\n", (const char*)arg, what);
  bufferevent_free(bev);
}

static void run_free_inside(void) {
  int ends[2];
  begin(ends);
  struct bufferevent* bev = bufferevent_socket_new(base, ends[0], BEV_OPT_CLOSE_ON_FREE);
  bufferevent_setcb(bev, on_read_free, on_write, on_event, (void*)"reader");
  bufferevent_enable(bev, EV_READ);
  put(ends[1], "abc");
  turns(3);
  show_open(ends[0]);
  open_pair(ends);
  bev = bufferevent_socket_new(base, ends[0], BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
  bufferevent_setcb(bev, on_read, on_write, on_event_free, (void*)"listener");
  bufferevent_enable(bev, EV_READ);
  put(ends[1], "abc");
  close(ends[1]);
  turns(5);
  show_open(ends[0]);
}

static void run_free_with_base(void) {
  int ends[2];
  begin(ends);
  struct bufferevent* bev = on_socket(ends[0], BEV_OPT_CLOSE_ON_FREE, "a");
  bufferevent_enable(bev, EV_READ);
  bufferevent_write(bev, "x", 1);
  bufferevent_free(bev);
  show_open(ends[0]);
  event_base_free(base);
  show_open(ends[0]);
}

static void run_references(void) {
  int ends[2];
  begin(ends);
  struct bufferevent* bev = on_socket(ends[0], BEV_OPT_CLOSE_ON_FREE, "a");
  bufferevent_incref(bev);
  show("not the last", bufferevent_decref(bev));
  bufferevent_incref(bev);
  bufferevent_free(bev);
  turns(1);
  show_open(ends[0]);
  show("the last", bufferevent_decref(bev));
  turns(1);
  show_open(ends[0]);
}

static void run_old(void) {
  int ends[2];
  begin(ends);
  struct event_base* other = base;
  base = event_init();
  struct bufferevent* bev = bufferevent_new(ends[0], on_read, on_write, on_event, (void*)"old");
  show("no base", bufferevent_get_base(bev) == NULL);
  show_bev(bev);
  show("base_set", bufferevent_base_set(other, bev));
  show("base", bufferevent_get_base(bev) == other);
  base = other;
  show("enable", bufferevent_enable(bev, EV_READ | EV_WRITE));
  turns(2);
  bufferevent_settimeout(bev, 3, 0);
  show("timeout", bev->timeout_read.tv_sec);
  show_bev(bev);
  bufferevent_settimeout(bev, 0, 0);
  show_bev(bev);
  show("priority 0", bufferevent_priority_set(bev, 0));
  show("priority 1", bufferevent_priority_set(bev, 1));
  bufferevent_data_cb reader = NULL;
  void* argument = NULL;
  bufferevent_getcb(bev, &reader, NULL, NULL, &argument);
  show("reader", reader == on_read);
  show_text("argument", argument);
  bufferevent_free(bev);
  turns(1);
  show_open(ends[0]);
}

static void run_options(void) {
  int ends[2];
  begin(ends);
  show("unlock alone", bufferevent_socket_new(base, ends[0], BEV_OPT_UNLOCK_CALLBACKS) != NULL);
  show("without threads", bufferevent_socket_new(base, ends[0], BEV_OPT_THREADSAFE) != NULL);
  struct bufferevent* pair[2];
  show("a pair", bufferevent_pair_new(base, BEV_OPT_THREADSAFE, pair));
  evthread_use_pthreads();
  base = event_base_new();
  const int all = BEV_OPT_THREADSAFE | BEV_OPT_DEFER_CALLBACKS | BEV_OPT_UNLOCK_CALLBACKS;
  struct bufferevent* bev = on_socket(ends[0], all, "a");
  bufferevent_lock(bev);
  bufferevent_enable(bev, EV_READ);
  bufferevent_unlock(bev);
  put(ends[1], "abc");
  turns(2);
  show("a pair", bufferevent_pair_new(base, BEV_OPT_THREADSAFE, pair));
  watched(pair[0], "one");
  watched(pair[1], "other");
  bufferevent_enable(pair[1], EV_READ);
  bufferevent_write(pair[0], "hello", 5);
  turns(1);
  bufferevent_free(pair[0]);
  turns(1);
  show("partner", bufferevent_pair_get_partner(pair[1]) != NULL);
  bufferevent_free(pair[1]);
  turns(1);
}

static void run_high_watermark(void) {
  int ends[2];
  begin(ends);
  struct bufferevent* bev = bufferevent_socket_new(base, ends[0], 0);
  bufferevent_setwatermark(bev, EV_READ, 5, 2);
  watched(bev, "a");
  bufferevent_enable(bev, EV_READ);
  put(ends[1], "abcdef");
  turns(2);
  show_bev(bev);
  evbuffer_drain(bev->input, 1);
  show_bev(bev);
  bufferevent_setwatermark(bev, EV_READ, 0, 0);
  turns(1);
  show_bev(bev);
  bufferevent_setwatermark(bev, EV_READ, 0, 3);
  show_bev(bev);
  bufferevent_disable(bev, EV_READ);
  bufferevent_setwatermark(bev, EV_READ, 0, 0);
  show_bev(bev);
}

// ---- connecting

static int listening_socket(struct sockaddr_in* address, int listens) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  socklen_t size = sizeof *address;
  memset(address, 0, sizeof *address);
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, (struct sockaddr*)address, size) != 0) printf("no port\n");
  if (listens) listen(fd, 5);
  getsockname(fd, (struct sockaddr*)address, &size);
  return fd;
}

static int connect_to(struct bufferevent* bev, const struct sockaddr_in* address) {
  return bufferevent_socket_connect(bev, (const struct sockaddr*)address, sizeof *address);
}

static void run_connect(void) {
  int ends[2];
  begin(ends);
  struct sockaddr_in address;
  const int listener = listening_socket(&address, 1);
  for (int how = 0; how < 4; how++) {
    printf("how %d\n", how);
    struct bufferevent* bev = on_socket(-1, BEV_OPT_CLOSE_ON_FREE, "a");
    if (how == 1) bufferevent_disable(bev, EV_WRITE);
    show("connect", connect_to(bev, &address));
    if (how == 2) bufferevent_write(bev, "hello", 5);
    if (how == 3) bufferevent_disable(bev, EV_WRITE);
    show_bev(bev);
    turns(3);
    show_bev(bev);
    bufferevent_free(bev);
  }
  char bytes[8];
  accept(listener, NULL, NULL);
  accept(listener, NULL, NULL);
  show("got", (long)read(accept(listener, NULL, NULL), bytes, sizeof bytes));
}

static void run_connect_fails(void) {
  int ends[2];
  begin(ends);
  struct sockaddr_in address;
  close(listening_socket(&address, 0));
  struct bufferevent* bev = on_socket(-1, BEV_OPT_CLOSE_ON_FREE, "a");
  bufferevent_write(bev, "x", 1);
  bufferevent_enable(bev, EV_READ);
  show("connect", connect_to(bev, &address));
  turns(3);
  show_bev(bev);
  struct sockaddr_un nobody = {AF_UNIX, "/nobody/is/here"};
  bev = on_socket(-1, 0, "b");
  show("no file", bufferevent_socket_connect(bev, (struct sockaddr*)&nobody, sizeof nobody));
  show_bev(bev);
  nobody.sun_family = 99;
  show("no family", bufferevent_socket_connect(bev, (struct sockaddr*)&nobody, sizeof nobody));
  show("no address", bufferevent_socket_connect(bev, NULL, 0));
  turns(1);
  show_bev(bev);
}

static void run_connect_unix(void) {
  int ends[2];
  begin(ends);
  struct sockaddr_un address = {AF_UNIX, ""};
  snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "spate-bufferevent-%d", getpid());
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0) printf("no address\n");
  struct bufferevent* refused = on_socket(-1, BEV_OPT_CLOSE_ON_FREE, "refused");
  show("refused", bufferevent_socket_connect(refused, (struct sockaddr*)&address, sizeof address));
  show_bev(refused);
  turns(2);
  listen(listener, 5);
  for (int how = 0; how < 4; how++) {
    printf("how %d\n", how);
    struct bufferevent* bev = on_socket(-1, how == 3 ? BEV_OPT_DEFER_CALLBACKS : 0, "a");
    if (how == 1) bufferevent_disable(bev, EV_WRITE);
    if (how >= 2) bufferevent_write(bev, "x", 1);
    show("connect", bufferevent_socket_connect(bev, (struct sockaddr*)&address, sizeof address));
    show_bev(bev);
    turns(2);
    show_bev(bev);
  }
}

static void run_connect_own(void) {
  int ends[2];
  begin(ends);
  struct sockaddr_in address;
  listening_socket(&address, 1);
  struct bufferevent* bev = on_socket(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), 0, "a");
  show("connect", connect_to(bev, &address));
  turns(2);
  show_bev(bev);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  connect(fd, (struct sockaddr*)&address, sizeof address);
  bev = on_socket(fd, 0, "b");
  show("is connecting", bufferevent_socket_connect(bev, NULL, 0));
  turns(2);
  show("once more", connect_to(bev, &address));
  turns(2);
  show_bev(bev);
}

static void run_connect_by_name(void) {
  int ends[2];
  begin(ends);
  struct sockaddr_in address;
  listening_socket(&address, 1);
  const int port = ntohs(address.sin_port);
  struct bufferevent* bev = on_socket(-1, BEV_OPT_CLOSE_ON_FREE, "a");
  show("by number", bufferevent_socket_connect_hostname(bev, NULL, AF_INET, "127.0.0.1", port));
  show_bev(bev);
  turns(2);
  show_bev(bev);
  bev = on_socket(-1, 0, "b");
  show("port 0", bufferevent_socket_connect_hostname(bev, NULL, AF_INET, "127.0.0.1", 0));
  show("port 65536", bufferevent_socket_connect_hostname(bev, NULL, AF_INET, "127.0.0.1", 65536));
  show("no family", bufferevent_socket_connect_hostname(bev, NULL, 12345, "127.0.0.1", port));
  show("the other one",
       bufferevent_socket_connect_hostname(bev, NULL, AF_INET6, "127.0.0.1", port));
  show("why", bufferevent_socket_get_dns_error(bev));
  turns(1);
  show_bev(bev);
}

// ---- filters: the effects of watermarks

static enum bufferevent_filter_result pass_bytes(struct evbuffer* source, struct evbuffer* target,
                                                 ev_ssize_t limit, enum bufferevent_flush_mode mode,
                                                 void* context) {
  printf("  %s filters %zu, limit %ld, mode %d\n", (const char*)context,
         evbuffer_get_length(source), (long)limit, mode);
  char byte;
  int count = 0;
  while ((limit < 0 || count < limit) && evbuffer_remove(source, &byte, 1) > 0) {
    if (byte == '!') return BEV_ERROR;
    evbuffer_add(target, &byte, 1);
    count++;
  }
  return count ? BEV_OK : BEV_NEED_MORE;
}

static void run_filter_fails(void) {
  int ends[2];
  begin(ends);
  struct bufferevent* below = bufferevent_socket_new(base, ends[0], 0);
  struct bufferevent* bev =
      watched(bufferevent_filter_new(below, pass_bytes, pass_bytes, 0, NULL, (void*)"f"), "f");
  bufferevent_enable(bev, EV_READ | EV_WRITE);
  put(ends[1], "he!lo");
  turns(2);
  show_bev(bev);
  bufferevent_write(bev, "a!b", 3);
  show_bev(bev);
  turns(2);
  bufferevent_free(bev);
  turns(1);
  show("below is enabled", bufferevent_get_enabled(below));
  bufferevent_free(below);
  turns(1);
}

static struct bufferevent* filter_of_itself;
static int filter_calls;

// Writes more in its first call, and fails in all others.
static enum bufferevent_filter_result write_and_refuse(struct evbuffer* source,
                                                       struct evbuffer* target, ev_ssize_t limit,
                                                       enum bufferevent_flush_mode mode,
                                                       void* writes) {
  (void)limit;
  printf("  filter call %d: %zu, mode %d\n", ++filter_calls, evbuffer_get_length(source), mode);
  if (filter_calls > 1) return BEV_ERROR;
  evbuffer_remove_buffer(source, target, evbuffer_get_length(source));
  if (writes) bufferevent_write(filter_of_itself, "-", 1);
  return BEV_OK;
}

static void run_filter_refuses(void) {
  for (int how = 0; how < 4; how++) {
    int ends[2];
    begin(ends);
    printf("on a pair %d, writes %d\n", how / 2, how % 2);
    struct bufferevent* pair[2] = {NULL, NULL};
    if (how / 2) bufferevent_pair_new(base, 0, pair);
    struct bufferevent* below = how / 2 ? pair[0] : bufferevent_socket_new(base, ends[0], 0);
    struct bufferevent* other = how / 2 ? pair[1] : bufferevent_socket_new(base, ends[1], 0);
    filter_calls = 0;
    filter_of_itself = watched(
        bufferevent_filter_new(below, NULL, write_and_refuse, 0, NULL, how % 2 ? below : NULL),
        "f");
    bufferevent_enable(other, EV_READ);
    bufferevent_write(filter_of_itself, "hello", 5);
    show_bev(filter_of_itself);
    turns(3);
    show_bev(filter_of_itself);
    show("arrived", (long)evbuffer_get_length(other->input));
  }
}

static void run_filter_limits(void) {
  int ends[2];
  begin(ends);
  struct bufferevent* below = bufferevent_socket_new(base, ends[0], 0);
  struct bufferevent* bev = watched(
      bufferevent_filter_new(below, NULL, pass_bytes, BEV_OPT_CLOSE_ON_FREE, NULL, (void*)"f"),
      "f");
  show("underlying", bufferevent_get_underlying(bev) == below);
  show("the same fd", bufferevent_getfd(bev) == ends[0]);
  bufferevent_setwatermark(below, EV_WRITE, 0, 3);
  bufferevent_write(bev, "abcdefgh", 8);
  show("below", (long)evbuffer_get_length(below->output));
  turns(4);
  show_bev(bev);
  put(ends[1], "early");
  turns(1);
  show_bev(bev);
  bufferevent_enable(bev, EV_READ);
  turns(1);
  show_bev(bev);
  show("setfd", bufferevent_setfd(bev, -1));
  show("fd", bufferevent_getfd(below));
  bufferevent_free(bev);
  turns(1);
}

// ---- operations of a program on the buffers

static void change_buffers(const char* name, struct bufferevent* bev) {
  printf("%s\n", name);
  show("add to input", evbuffer_add(bev->input, "abc", 3));
  show("drain input", evbuffer_drain(bev->input, 1));
  show("in", (long)evbuffer_get_length(bev->input));
  show("prepend to output", evbuffer_prepend(bev->output, "abc", 3));
  show("drain output", evbuffer_drain(bev->output, 1));
  show("out", (long)evbuffer_get_length(bev->output));
}

static void run_buffers(void) {
  int ends[2];
  begin(ends);
  struct bufferevent* below = bufferevent_socket_new(base, ends[0], 0);
  struct bufferevent* filter = bufferevent_filter_new(below, NULL, NULL, 0, NULL, NULL);
  struct bufferevent* pair[2];
  bufferevent_pair_new(base, 0, pair);
  bufferevent_disable(filter, EV_WRITE);
  change_buffers("filter", filter);
  change_buffers("below", below);
  change_buffers("pair", pair[0]);
  change_buffers("socket", bufferevent_socket_new(base, ends[1], 0));
}

// ---- rates

static void run_rates(void) {
  int ends[2];
  begin(ends);
  const struct timeval none = {0, 0};
  show("burst below rate", ev_token_bucket_cfg_new(10, 5, 10, 20, NULL) != NULL);
  show("no rate", ev_token_bucket_cfg_new(10, 20, 0, 20, NULL) != NULL);
  show("too much", ev_token_bucket_cfg_new(1, (size_t)EV_RATE_LIMIT_MAX + 1, 1, 1, NULL) != NULL);
  show("the most",
       ev_token_bucket_cfg_new(1, EV_RATE_LIMIT_MAX, 1, EV_RATE_LIMIT_MAX, NULL) != NULL);
  show("no tick", ev_token_bucket_cfg_new(1, 1, 1, 1, &none) != NULL);
  struct ev_token_bucket_cfg* rates = ev_token_bucket_cfg_new(1000, 2500, 700, 2000, NULL);
  struct bufferevent_rate_limit_group* group = bufferevent_rate_limit_group_new(base, rates);
  struct bufferevent* one = bufferevent_socket_new(base, ends[0], 0);
  struct bufferevent* other = bufferevent_socket_new(base, ends[1], 0);
  show("join", bufferevent_add_to_rate_limit_group(one, group));
  show("alone", bufferevent_get_max_to_read(one));
  bufferevent_add_to_rate_limit_group(other, group);
  show("in two", bufferevent_get_max_to_read(one));
  show("share of 400", bufferevent_rate_limit_group_set_min_share(group, 400));
  show("write", bufferevent_get_max_to_write(one));
  bufferevent_rate_limit_group_set_min_share(group, 5000);
  show("write", bufferevent_get_max_to_write(one));
  bufferevent_enable(one, EV_READ);
  bufferevent_enable(other, EV_READ);
  show("decrement", bufferevent_rate_limit_group_decrement_read(group, 5000));
  show("level", bufferevent_rate_limit_group_get_read_limit(group));
  show_bev(one);
  bufferevent_rate_limit_group_decrement_read(group, -6000);
  show("level", bufferevent_rate_limit_group_get_read_limit(group));
  show_bev(one);
  bufferevent_write(one, "0123456789", 10);
  turns(2);
  ev_uint64_t read_total = 0;
  ev_uint64_t written_total = 0;
  bufferevent_rate_limit_group_get_totals(group, &read_total, &written_total);
  printf("totals: %lu %lu\n", (unsigned long)read_total, (unsigned long)written_total);
  bufferevent_rate_limit_group_reset_totals(group);
  bufferevent_rate_limit_group_get_totals(group, &read_total, NULL);
  show("reset", (long)read_total);
  show("leave", bufferevent_remove_from_rate_limit_group(one));
  bufferevent_remove_from_rate_limit_group(other);
  show("no rates for it", bufferevent_rate_limit_group_set_cfg(group, NULL));
  bufferevent_rate_limit_group_free(group);
  bufferevent_free(one);
  bufferevent_free(other);
  turns(1);
  ev_token_bucket_cfg_free(rates);
}

static const Case cases[] = {
    {"fresh", run_fresh},
    {"end", run_end},
    {"free inside", run_free_inside},
    {"free with base", run_free_with_base},
    {"references", run_references},
    {"old", run_old},
    {"options", run_options},
    {"high watermark", run_high_watermark},
    {"connect", run_connect},
    {"connect fails", run_connect_fails},
    {"connect unix", run_connect_unix},
    {"connect own", run_connect_own},
    {"connect by name", run_connect_by_name},
    {"filter fails", run_filter_fails},
    {"filter refuses", run_filter_refuses},
    {"filter limits", run_filter_limits},
    {"buffers", run_buffers},
    {"rates", run_rates},
};

int main(int argc, char** argv) {
  return run_cases(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
