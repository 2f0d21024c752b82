// The functions of DNS without a base, before and after evdns_init(), with null pointers,
// meaningless texts and numbers out of range; and the hooks of DNS. The clock and the server are
// libevent_dns.h's; the system's files are empty, except for a name server.
//
// Left out are the differences that docs/drop-in.md names: functions without a base before
// evdns_init(), log lines, and names with an empty label.
// differential: --undefined
#include <event2/event_compat.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "arguments.h"
#include "libevent_dns.h"

// They use types of dns.h, and do not include it.
#include <event2/dns_compat.h>
#include <event2/dns_struct.h>

enum { kWholeWait = 20000 };

// Without a name server evdns_init() fails.
static int open_configuration(void) {
  static const char kServer[] = "nameserver 127.0.0.2\n";
  const int fd = memfd_create("resolv.conf", 0);
  if (write(fd, kServer, sizeof kServer - 1) < 0 || lseek(fd, 0, SEEK_SET) != 0) abort();
  return fd;
}

// Both libraries open the files of the system by this function.
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (strcmp(path, "/etc/resolv.conf") == 0) return open_configuration();
  if (strncmp(path, "/etc/", 5) == 0) path = "/dev/null";
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void show(const char* what, long value) { printf("%s: %ld\n", what, value); }

// ---- domains

typedef enum World { kNoCurrent, kCurrent, kResolver, kServer } World;
static const Value kWorldValues[] = {{"of nothing", kNoCurrent},
                                     {"after event_init", kCurrent},
                                     {"after evdns_init", kResolver},
                                     {"with a server", kServer}};
static const Domain kWorlds = DOMAIN_OF(kWorldValues);
static const Domain kCurrents = {kWorldValues + 1, 3};
static const Domain kReady = {kWorldValues + 2, 2};

static const char* const kTexts[] = {
    NULL, "", "a", "a.x", "-1", "0", "3", "127.0.0.1", "127.0.0.1:65536", "[::1]:53", "..a"};
static const Value kTextValues[] = {{"null", 0},     {"\"\"", 1}, {"a", 2},    {"a.x", 3},
                                    {"-1", 4},       {"0", 5},    {"3", 6},    {"address", 7},
                                    {"far port", 8}, {"IPv6", 9}, {"dots", 10}};
static const Domain kTextDomain = DOMAIN_OF(kTextValues);
static const Domain kHosts = {kTextValues + 1, 7};

static const char* const kOptions[] = {
    NULL, "", "ndots", "timeout:", "attempts:", "bind-to:", "edns:", "max-inflight:"};
static const Value kOptionValues[] = {{"null", 0},    {"\"\"", 1},        {"ndots", 2},
                                      {"timeout", 3}, {"attempts", 4},    {"bind-to", 5},
                                      {"unknown", 6}, {"max-inflight", 7}};
static const Domain kOptionDomain = DOMAIN_OF(kOptionValues);

// ---- the world

static void answer_any(const Query* query) { reply_address(query, 1, 6); }

static void answer_name(const Query* query) {
  Packet packet = reply_to(query, 0, 1);
  Packet name = {.size = 0};
  put_name(&name, "host.example");
  put_record(&packet, 12, 6, name.bytes, name.size);
  send_packet(query, &packet);
}

static void begin_global(long world) {
  use_servers(1);
  answer = answer_any;
  event_base_free(base);
  base = world == kNoCurrent ? NULL : event_init();
  if (world < kResolver) return;
  printf("init: %d\n", evdns_init());
  if (world < kServer) return;
  dns = evdns_get_global_base();
  evdns_base_clear_nameservers_and_suspend(dns);
  add_server(0);
  evdns_base_resume(dns);
  evdns_base_set_option(dns, "randomize-case", "0");
  evdns_base_set_option(dns, "timeout", "4.9005");
  evdns_base_set_option(dns, "initial-probe-timeout", "9.7002");
}

static void end_global(long world) {
  dns = NULL;
  if (world == kServer) {
    run_for(kWholeWait);
    printf("servers: %d\n", evdns_count_nameservers());
  }
  evdns_shutdown(1);
  printf("global: %d\n", evdns_get_global_base() != NULL);
}

// ---- the resolver

static void call_init(const long* at) {
  begin_global(at[0]);
  show("init", evdns_init());
  show("again", evdns_init());
  show("global", evdns_get_global_base() != NULL);
  show("servers", evdns_count_nameservers());
  end_global(at[0]);
}

static void call_shutdown(const long* at) {
  begin_global(at[0]);
  answer = NULL;
  if (at[2]) show("asked", evdns_resolve_ipv4("a.x", 0, on_result, (void*)"it"));
  evdns_shutdown((int)at[1]);
  show("global", evdns_get_global_base() != NULL);
  evdns_shutdown((int)at[1]);
  if (base != NULL) event_base_loop(base, EVLOOP_NONBLOCK);
  show("init", evdns_init());
  end_global(kCurrent);
}

static void call_add(const long* at) {
  begin_global(at[0]);
  show("result", evdns_nameserver_ip_add(kTexts[at[1]]));
  show("servers", evdns_count_nameservers());
  end_global(kCurrent);
}

static void call_add_number(const long* at) {
  begin_global(at[0]);
  show("result", evdns_nameserver_add((unsigned long)at[1]));
  show("its own", evdns_base_nameserver_add(evdns_get_global_base(), (unsigned long)at[1]));
  show("servers", evdns_count_nameservers());
  end_global(kCurrent);
}

static void call_pause(const long* at) {
  begin_global(at[0]);
  show("suspended", evdns_clear_nameservers_and_suspend());
  show("again", evdns_clear_nameservers_and_suspend());
  if (at[1]) show("asked", evdns_resolve_ipv4("a.x", 0, on_result, (void*)"it"));
  show("resumed", evdns_resume());
  show("again", evdns_resume());
  show("servers", evdns_count_nameservers());
  end_global(at[0]);
}

// ---- lookups

static void call_resolve(const long* at) {
  begin_global(at[0]);
  const char* name = kTexts[at[1]];
  evdns_callback_type callback = at[4] ? on_result : NULL;
  show("asked", at[3] ? evdns_resolve_ipv6(name, (int)at[2], callback, (void*)"it")
                      : evdns_resolve_ipv4(name, (int)at[2], callback, (void*)"it"));
  end_global(at[0]);
}

static void call_reverse(const long* at) {
  const struct in_addr ipv4 = {htonl(0x01020304)};
  const struct in6_addr ipv6 = {.s6_addr = {1, 2, 3}};
  begin_global(at[0]);
  answer = answer_name;
  evdns_callback_type callback = at[4] ? on_result : NULL;
  show("asked",
       at[3] ? evdns_resolve_reverse_ipv6(at[1] ? &ipv6 : NULL, (int)at[2], callback, (void*)"it")
             : evdns_resolve_reverse(at[1] ? &ipv4 : NULL, (int)at[2], callback, (void*)"it"));
  end_global(at[0]);
}

// ---- settings

static void call_option(const long* at) {
  begin_global(at[0]);
  show("result", evdns_set_option(kOptions[at[1]], kTexts[at[2]], (int)at[3]));
  end_global(kCurrent);
}

static void call_search(const long* at) {
  begin_global(at[0]);
  evdns_search_add(kTexts[at[1]]);
  evdns_search_ndots_set((int)at[2]);
  if (at[3]) evdns_search_clear();
  show("asked", evdns_resolve_ipv4("a.x", 0, on_result, (void*)"it"));
  end_global(at[0]);
}

static void call_file(const long* at) {
  static const char* const kFiles[] = {NULL, "/dev/null", "/nowhere", "/", ""};
  begin_global(at[0]);
  show("result", evdns_resolv_conf_parse((int)at[1], kFiles[at[2]]));
  show("servers", evdns_count_nameservers());
  end_global(kCurrent);
}

// ---- hooks

static void on_dns_log(int is_warning, const char* text) { (void)is_warning, (void)text; }

static ev_uint16_t always_7(void) { return 7; }

static void sevens(char* bytes, size_t size) { memset(bytes, 7, size); }

static void call_hooks(const long* at) {
  evdns_set_log_fn(at[0] ? on_dns_log : NULL);
  evdns_set_transaction_id_fn(at[1] ? always_7 : NULL);
  evdns_set_random_bytes_fn(at[2] ? sevens : NULL);
  begin_global(kServer);
  show("asked", evdns_resolve_ipv4("a.x", 0, on_result, (void*)"it"));
  show("asked", evdns_resolve_ipv6("b.x", 0, on_result, (void*)"it"));
  end_global(kServer);
}

// ---- bases and server ports

static void call_base_new(const long* at) {
  begin_global(kCurrent);
  struct evdns_base* made = evdns_base_new(at[0] ? base : NULL, (int)at[1]);
  show("made", made != NULL);
  if (made == NULL) return;
  show("servers", evdns_base_count_nameservers(made));
  // With both flags the original adds one more: docs/drop-in.md.
  const int both = EVDNS_BASE_INITIALIZE_NAMESERVERS | EVDNS_BASE_DISABLE_WHEN_INACTIVE;
  if ((at[1] & both) != both) {
    show("events", event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED));
  }
  evdns_base_free(made, 0);
}

static void on_request(struct evdns_server_request* request, void* argument) {
  printf("  request %d %d\n", request->nquestions, argument == NULL);
  evdns_server_request_respond(request, 3);
}

static void call_server_port(const long* at) {
  struct sockaddr_in address;
  begin_global(at[0]);
  const int fd = at[1] == 0 ? open_server(&address) : (int)at[1];
  if (at[1] == 0) evutil_make_socket_nonblocking(fd);
  struct evdns_server_port* port =
      evdns_add_server_port(fd, (int)at[2], at[3] ? on_request : NULL, NULL);
  show("port", port != NULL);
  if (port == NULL) return;
  if (base != NULL) event_base_loop(base, EVLOOP_NONBLOCK);
  evdns_close_server_port(port);
  end_global(kCurrent);
}

// ---- the table

static const Value kAddressValues[] = {
    {"0", 0}, {"127.0.0.1", 0x0100007f}, {"max", 0xffffffffL}, {"2^32", 1L << 32}, {"-1", -1}};
static const Domain kAddresses = DOMAIN_OF(kAddressValues);

static const Value kFlagValues[] = {{"0", 0}, {"NO_SEARCH", DNS_QUERY_NO_SEARCH}, {"-1", -1}};
static const Domain kFlags = DOMAIN_OF(kFlagValues);

static const Value kFewValues[] = {{"-1", -1}, {"0", 0}, {"1", 1}, {"max", INT_MAX}};
static const Domain kFew = DOMAIN_OF(kFewValues);

static const Value kFileValues[] = {
    {"null", 0}, {"/dev/null", 1}, {"/nowhere", 2}, {"/", 3}, {"\"\"", 4}};
static const Domain kFileDomain = DOMAIN_OF(kFileValues);

// Without the host's name, which EVDNS_BASE_INITIALIZE_NAMESERVERS uses for a search domain.
static const Value kBaseFlagValues[] = {
    {"0", 0},
    {"INITIALIZE", EVDNS_BASE_INITIALIZE_NAMESERVERS},
    {"DISABLE", EVDNS_BASE_DISABLE_WHEN_INACTIVE},
    {"NO_DEFAULT", EVDNS_BASE_NAMESERVERS_NO_DEFAULT},
    {"INITIALIZE|NO_DEFAULT",
     EVDNS_BASE_INITIALIZE_NAMESERVERS | EVDNS_BASE_NAMESERVERS_NO_DEFAULT},
    {"2", 2},
    {"0x1000", 0x1000},
    {"max", INT_MAX},
    {"min", INT_MIN},
    {"-1", -1}};
static const Domain kBaseFlags = DOMAIN_OF(kBaseFlagValues);

static const Value kSocketValues[] = {{"its", 0}, {"-1", -1}, {"closed", 400}, {"min", INT_MIN}};
static const Domain kSockets = DOMAIN_OF(kSocketValues);

int main(int argc, char** argv) {
  static const Call kCalls[] = {
      {"evdns_init", call_init, {&kCurrents}},
      {"evdns_shutdown", call_shutdown, {&kReady, &kNumbers, &kBooleans}},
      {"evdns_nameserver_ip_add", call_add, {&kReady, &kTextDomain}},
      {"evdns_nameserver_add", call_add_number, {&kReady, &kAddresses}},
      {"evdns_resume", call_pause, {&kReady, &kBooleans}},
      {"evdns_resolve", call_resolve, {&kReady, &kHosts, &kFlags, &kBooleans, &kBooleans}},
      {"evdns_resolve_reverse",
       call_reverse,
       {&kReady, &kBooleans, &kFlags, &kBooleans, &kBooleans}},
      {"evdns_set_option", call_option, {&kReady, &kOptionDomain, &kTextDomain, &kFew}},
      {"evdns_search_add", call_search, {&kReady, &kTextDomain, &kNumbers, &kBooleans}},
      {"evdns_resolv_conf_parse", call_file, {&kReady, &kNumbers, &kFileDomain}},
      {"evdns_set_log_fn and others", call_hooks, {&kBooleans, &kBooleans, &kBooleans}},
      {"evdns_base_new", call_base_new, {&kBooleans, &kBaseFlags}},
      {"evdns_add_server_port", call_server_port, {&kWorlds, &kSockets, &kFew, &kBooleans}},
  };
  return run_calls(argc, argv, kCalls, sizeof kCalls / sizeof *kCalls);
}
