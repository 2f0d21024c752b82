// The settings of DNS with null pointers, meaningless texts and numbers out of range.
// differential: --undefined
#include <arpa/inet.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "arguments.h"

static void show(const char* what, long value) { printf("%s: %ld\n", what, value); }

// ---- domains

static const Value kBaseValues[] = {{"null", 0}, {"empty", 1}, {"of one", 2}};
static const Domain kBases = DOMAIN_OF(kBaseValues);

static struct evdns_base* base_of(long value) {
  if (value == 0) return NULL;
  struct evdns_base* dns = evdns_base_new(event_base_new(), 0);
  if (value == 2) evdns_base_nameserver_ip_add(dns, "127.0.0.1:5353");
  return dns;
}

static const char* const kTexts[] = {
    NULL, "", "a", "-1", "0", "3", "4294967296", "127.0.0.1", "127.0.0.1:65536", "[::1]:53", "..a"};
static const Value kTextValues[] = {{"null", 0},     {"\"\"", 1}, {"a", 2},    {"-1", 3},
                                    {"0", 4},        {"3", 5},    {"2^32", 6}, {"address", 7},
                                    {"far port", 8}, {"IPv6", 9}, {"dots", 10}};
static const Domain kTextDomain = DOMAIN_OF(kTextValues);

static const char* const kOptions[] = {NULL,
                                       "",
                                       "ndots",
                                       "timeout:",
                                       "max-timeouts:",
                                       "max-inflight:",
                                       "attempts",
                                       "bind-to:",
                                       "so-rcvbuf:",
                                       "randomize-case:",
                                       "getaddrinfo-allow-skew:",
                                       "initial-probe-timeout:",
                                       "edns"};
static const Value kOptionValues[] = {
    {"null", 0},         {"\"\"", 1},     {"ndots", 2},   {"timeout", 3},   {"max-timeouts", 4},
    {"max-inflight", 5}, {"attempts", 6}, {"bind-to", 7}, {"so-rcvbuf", 8}, {"case", 9},
    {"skew", 10},        {"probe", 11},   {"unknown", 12}};
static const Domain kOptionDomain = DOMAIN_OF(kOptionValues);

static const Value kSizeValues[] = {
    {"0", 0}, {"1", 1}, {"of IPv4", sizeof(struct sockaddr_in)}, {"128", 128}, {"129", 129}};
static const Domain kSizes = DOMAIN_OF(kSizeValues);

static const Value kFamilyValues[] = {{"null", -1},        {"IPv4", AF_INET},  {"IPv6", AF_INET6},
                                      {"none", AF_UNSPEC}, {"local", AF_UNIX}, {"unknown", 999}};
static const Domain kFamilies = DOMAIN_OF(kFamilyValues);

// ---- calls

static void call_error(const long* at) { printf("%s\n", evdns_err_to_string((int)at[0])); }

static void call_add(const long* at) {
  struct evdns_base* dns = base_of(at[0]);
  show("result", evdns_base_nameserver_ip_add(dns, kTexts[at[1]]));
  show("servers", evdns_base_count_nameservers(dns));
}

static void call_add_address(const long* at) {
  struct sockaddr_storage address = {.ss_family = (sa_family_t)at[1]};
  const struct sockaddr* given = at[1] < 0 ? NULL : (const struct sockaddr*)&address;
  struct evdns_base* dns = base_of(at[0]);
  show("result", evdns_base_nameserver_sockaddr_add(dns, given, (ev_socklen_t)at[2], 0));
  show("servers", evdns_base_count_nameservers(dns));
}

static void call_address(const long* at) {
  struct sockaddr_storage address;
  show("size", evdns_base_get_nameserver_addr(base_of(at[0]), (int)at[1],
                                              (struct sockaddr*)&address, (ev_socklen_t)at[2]));
}

static void call_option(const long* at) {
  show("result", evdns_base_set_option(base_of(at[0]), kOptions[at[1]], kTexts[at[2]]));
}

static void call_search(const long* at) {
  struct evdns_base* dns = base_of(at[0]);
  evdns_base_search_add(dns, kTexts[at[1]]);
  evdns_base_search_ndots_set(dns, (int)at[2]);
  evdns_base_search_clear(dns);
}

static void call_pause(const long* at) {
  struct evdns_base* dns = base_of(at[0]);
  show("suspended", evdns_base_clear_nameservers_and_suspend(dns));
  show("again", evdns_base_clear_nameservers_and_suspend(dns));
  show("resumed", evdns_base_resume(dns));
  show("again", evdns_base_resume(dns));
  evdns_base_clear_host_addresses(dns);
}

static void call_free(const long* at) { evdns_base_free(base_of(at[0]), (int)at[1]); }

static void call_file(const long* at) {
  const char* const name = at[1] == 0 ? "/nowhere" : "/dev/null";
  struct evdns_base* dns = base_of(at[0]);
  show("hosts", evdns_base_load_hosts(dns, name));
  show("settings", evdns_base_resolv_conf_parse(dns, (int)at[2], name));
  show("servers", evdns_base_count_nameservers(dns));
}

int main(int argc, char** argv) {
  static const Call kCalls[] = {
      {"evdns_err_to_string", call_error, {&kNumbers}},
      {"evdns_base_nameserver_ip_add", call_add, {&kBases, &kTextDomain}},
      {"evdns_base_nameserver_sockaddr_add", call_add_address, {&kBases, &kFamilies, &kSizes}},
      {"evdns_base_get_nameserver_addr", call_address, {&kBases, &kNumbers, &kSizes}},
      {"evdns_base_set_option", call_option, {&kBases, &kOptionDomain, &kTextDomain}},
      {"evdns_base_search_add", call_search, {&kBases, &kTextDomain, &kNumbers}},
      {"evdns_base_resume", call_pause, {&kBases}},
      {"evdns_base_free", call_free, {&kBases, &kBooleans}},
      {"evdns_base_load_hosts", call_file, {&kBases, &kBooleans, &kNumbers}},
  };
  return run_calls(argc, argv, kCalls, sizeof kCalls / sizeof *kCalls);
}
