// Groups of bufferevents with a rate limit, connections by host name, and bufferevent_new(), with
// every argument that a program might pass: see arguments.h.
//
// Left out are names that the system's resolver would look up, and the differences that
// docs/drop-in.md names: a group without a base, and names with an empty label.
// differential: --undefined
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_compat.h>
#include <event2/bufferevent_struct.h>
#include <event2/dns.h>
#include <netinet/in.h>

#include "libevent_arguments.h"

static struct bufferevent* bev;
static struct bufferevent_rate_limit_group* group;
static struct sockaddr_in address;

// ---- domains

static const Value kGroupValues[] = {{"NULL", 0}, {"empty", 1}, {"with a member", 2}};
static const Domain kGroups = DOMAIN_OF(kGroupValues);

static const Value kAmountValues[] = {
    {"0", 0},   {"1", 1},          {"50", 50},           {"61", 61},
    {"-1", -1}, {"10^6", 1000000}, {"max", EV_SSIZE_MAX}};
static const Domain kAmounts = DOMAIN_OF(kAmountValues);

// ---- the world

static void on_read(struct bufferevent* of, void* argument) {
  printf("  read %d: %zu, argument %d\n", of == bev, evbuffer_get_length(of->input),
         argument == &address);
  count_callback();
}

static void on_write(struct bufferevent* of, void* argument) {
  printf("  write %d: %zu, argument %d\n", of == bev, evbuffer_get_length(of->output),
         argument == &address);
  count_callback();
}

static void on_happening(struct bufferevent* of, short what, void* argument) {
  printf("  event %d: %#x, argument %d, DNS %d\n", of == bev, (unsigned)what, argument == &address,
         bufferevent_socket_get_dns_error(of));
  count_callback();
}

static void open_bufferevent(int fd) {
  bev = bufferevent_socket_new(base, fd, 0);
  bufferevent_setcb(bev, on_read, on_write, on_happening, &address);
}

static void turns(const char* when) {
  callbacks = 0;
  printf("%s\n", when);
  for (int i = 0; i < 3; i++) event_base_loop(base, EVLOOP_NONBLOCK);
  advance_steps(15);
  event_base_loop(base, EVLOOP_NONBLOCK);
}

static void open_group(long kind) {
  open_world(0);
  if (kind == 0) return;
  struct ev_token_bucket_cfg* rates = ev_token_bucket_cfg_new(50, 60, 50, 60, NULL);
  group = bufferevent_rate_limit_group_new(base, rates);
  if (kind == 2) {
    open_bufferevent(pair[0]);
    bufferevent_add_to_rate_limit_group(bev, group);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
  }
}

static void print_group(void) {
  ev_uint64_t got = 77;
  ev_uint64_t sent = 77;
  if (group == NULL) return;
  bufferevent_rate_limit_group_get_totals(group, &got, &sent);
  printf("limits %ld %ld totals %llu %llu\n",
         (long)bufferevent_rate_limit_group_get_read_limit(group),
         (long)bufferevent_rate_limit_group_get_write_limit(group), (unsigned long long)got,
         (unsigned long long)sent);
}

static void close_group(void) {
  print_group();
  if (bev != NULL) {
    put(pair[1], "some bytes");
    bufferevent_write(bev, "others", 6);
  }
  turns("at once");
  print_group();
  turns("later");
  print_group();
  if (bev != NULL) {
    bufferevent_remove_from_rate_limit_group(bev);
    bufferevent_free(bev);
  }
  if (group != NULL) bufferevent_rate_limit_group_free(group);
  event_base_loop(base, EVLOOP_NONBLOCK);
  event_base_free(base);
}

// ---- groups

static void call_limits(const long* at) {
  open_group(at[0]);
  show("limit", (long)(at[1] ? bufferevent_rate_limit_group_get_read_limit(group)
                             : bufferevent_rate_limit_group_get_write_limit(group)));
  close_group();
}

static void call_decrement(const long* at) {
  open_group(at[0]);
  for (long i = 0; i <= at[3]; i++) {
    show("result", at[1] ? bufferevent_rate_limit_group_decrement_read(group, (ev_ssize_t)at[2])
                         : bufferevent_rate_limit_group_decrement_write(group, (ev_ssize_t)at[2]));
  }
  close_group();
}

static void call_totals(const long* at) {
  ev_uint64_t total = 77;
  open_group(at[0]);
  if (bev != NULL) put(pair[1], "some bytes");
  turns("first");
  if (at[1]) bufferevent_rate_limit_group_reset_totals(group);
  bufferevent_rate_limit_group_get_totals(group, at[2] ? &total : NULL, NULL);
  bufferevent_rate_limit_group_get_totals(group, NULL, at[3] ? &total : NULL);
  show("total", (long)total);
  close_group();
}

static void call_group_new(const long* at) {
  open_world(0);
  struct ev_token_bucket_cfg* rates = at[0] ? ev_token_bucket_cfg_new(50, 60, 50, 60, NULL) : NULL;
  group = bufferevent_rate_limit_group_new(base, rates);
  show("made", group != NULL);
  close_group();
}

static void call_group_free(const long* at) {
  open_group(at[0] == 2 ? 1 : at[0]);
  bufferevent_rate_limit_group_free(group);
  group = NULL;
  close_group();
}

// ---- connections by name

static const char* const kNames[] = {
    NULL,        "",
    "127.0.0.1", "::1",
    "[::1]",     "[127.0.0.1]",
    "a.x",       "127.0.0.1:80",
    "a b",       "a-label-of-sixty-four-bytes-which-is-one-more-than-there-may-be-x"};
static const Value kNameValues[] = {{"NULL", 0},   {"\"\"", 1},      {"IPv4", 2}, {"IPv6", 3},
                                    {"[IPv6]", 4}, {"[IPv4]", 5},    {"a.x", 6},  {"and a port", 7},
                                    {"blank", 8},  {"long label", 9}};
static const Domain kNameDomain = DOMAIN_OF(kNameValues);
static const Domain kNumericNames = {kNameValues, 5};

static int port_of(long value) { return value == 1 ? ntohs(address.sin_port) : (int)value; }

static void open_port(void) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  socklen_t size = sizeof address;
  address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
  if (bind(fd, (struct sockaddr*)&address, size) != 0 || listen(fd, 5) != 0) abort();
  getsockname(fd, (struct sockaddr*)&address, &size);
}

static void connect_by_name(long kind, struct evdns_base* dns, const long* at) {
  open_port();
  if (kind != 0) open_bufferevent(kind == 2 ? pair[0] : -1);
  show("result",
       bufferevent_socket_connect_hostname(bev, dns, (int)at[0], kNames[at[1]], port_of(at[2])));
  show("error", bufferevent_socket_get_dns_error(bev));
  turns("at once");
  if (bev != NULL) show("open", bufferevent_getfd(bev) >= 0);
  bufferevent_enable(bev, EV_READ | EV_WRITE);
  turns("enabled");
  if (bev != NULL) bufferevent_free(bev);
  event_base_loop(base, EVLOOP_NONBLOCK);
}

static void call_connect(const long* at) {
  open_world(0);
  connect_by_name(at[0], evdns_base_new(base, 0), at + 1);
}

static void call_connect_blocking(const long* at) {
  open_world(0);
  connect_by_name(at[0], NULL, at + 1);
}

// ---- bufferevent_new()

static void call_new(const long* at) {
  open_world(0);
  if (at[0]) base = event_init();
  open_port();
  bev = bufferevent_new(fd_of(at[1]), at[2] & 1 ? on_read : NULL, at[2] & 2 ? on_write : NULL,
                        at[2] & 4 ? on_happening : NULL, at[3] ? &address : NULL);
  show("made", bev != NULL);
  if (bev == NULL) return;
  show("base", bufferevent_get_base(bev) == base);
  show("set", bufferevent_base_set(base, bev));
  show("enabled", bufferevent_get_enabled(bev));
  show("input", EVBUFFER_INPUT(bev) == bufferevent_get_input(bev));
  show("output", EVBUFFER_OUTPUT(bev) == bufferevent_get_output(bev));
  show("enable", bufferevent_enable(bev, EV_READ | EV_WRITE));
  put(pair[1], "some bytes");
  turns("at once");
  show("write", bufferevent_write(bev, "others", 6));
  turns("later");
  close(pair[1]);
  turns("ended");
  bufferevent_free(bev);
  event_base_loop(base, EVLOOP_NONBLOCK);
}

// ---- the table

static const Value kKindValues[] = {{"NULL", 0}, {"socket -1", 1}, {"socket", 2}};
static const Domain kKinds = DOMAIN_OF(kKindValues);

static const Value kFamilyValues[] = {{"UNSPEC", AF_UNSPEC}, {"INET", AF_INET}, {"INET6", AF_INET6},
                                      {"UNIX", AF_UNIX},     {"-1", -1},        {"999", 999}};
static const Domain kFamilies = DOMAIN_OF(kFamilyValues);

static const Value kPortValues[] = {{"its", 1},       {"-1", -1},       {"0", 0},
                                    {"65536", 65536}, {"max", INT_MAX}, {"min", INT_MIN}};
static const Domain kPorts = DOMAIN_OF(kPortValues);

static const Value kMaskValues[] = {{"0", 0}, {"1", 1}, {"2", 2}, {"4", 4}, {"7", 7}};
static const Domain kMasks = DOMAIN_OF(kMaskValues);

int main(int argc, char** argv) {
  static const Call calls[] = {
      {"bufferevent_rate_limit_group_get_read_limit", call_limits, {&kGroups, &kBooleans}},
      {"bufferevent_rate_limit_group_decrement_read",
       call_decrement,
       {&kGroups, &kBooleans, &kAmounts, &kBooleans}},
      {"bufferevent_rate_limit_group_reset_totals",
       call_totals,
       {&kGroups, &kBooleans, &kBooleans, &kBooleans}},
      {"bufferevent_rate_limit_group_new", call_group_new, {&kBooleans}},
      {"bufferevent_rate_limit_group_free", call_group_free, {&kGroups}},
      {"bufferevent_socket_connect_hostname",
       call_connect,
       {&kKinds, &kFamilies, &kNameDomain, &kPorts}},
      {"bufferevent_socket_connect_hostname, blocking",
       call_connect_blocking,
       {&kKinds, &kFamilies, &kNumericNames, &kPorts}},
      {"bufferevent_new", call_new, {&kBooleans, &kFds, &kMasks, &kBooleans}},
  };
  return run_calls(argc, argv, calls, sizeof calls / sizeof *calls);
}
