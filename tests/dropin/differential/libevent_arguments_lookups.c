// Lookups and cancellations, with null pointers, invalid names and meaningless hints. A server
// answers each question, and the clock is libevent_dns.h's.
//
// Left out is the root, for which the original makes a question that cannot be read.
// differential: --undefined
#include "arguments.h"
#include "libevent_dns.h"

enum { kWholeWait = 20000 };

static void answer_address(const Query* query) { reply_address(query, 1, 6); }

static void answer_name(const Query* query) {
  Packet packet = reply_to(query, 0, 1);
  Packet name = {.size = 0};
  put_name(&name, "host.example");
  put_record(&packet, 12, 6, name.bytes, name.size);
  send_packet(query, &packet);
}

// ---- domains

typedef enum World { kNoBase, kNoServer, kServer } World;
static const Value kWorldValues[] = {{"null", kNoBase}, {"empty", kNoServer}, {"of one", kServer}};
static const Domain kWorlds = DOMAIN_OF(kWorldValues);

static struct evdns_base* open_world(long world) {
  use_servers(1);
  answer = answer_address;
  if (world == kServer) {
    make_resolver();
  } else if (world == kNoServer) {
    dns = evdns_base_new(base, 0);
  }
  return dns;
}

// Prints the result of the lookup.
static void close_world(const void* request) {
  printf("%s\n", request != NULL ? "is asked" : "no request");
  run_for(kWholeWait);
  if (dns != NULL) evdns_base_free(dns, 1);
  event_base_loop(base, EVLOOP_NONBLOCK);
}

#define LABEL "a-label-of-sixty-three-bytes-which-is-as-many-as-there-may-be--x"
static const char* const kNames[] = {NULL,  "",          "a",   "a.x",   "a.",
                                     "a b", "127.0.0.1", "::1", "%\x01", LABEL "." LABEL};
static const Value kNameValues[] = {{"null", 0},    {"\"\"", 1},  {"a", 2},    {"a.x", 3},
                                    {"a.", 4},      {"blank", 5}, {"IPv4", 6}, {"IPv6", 7},
                                    {"control", 8}, {"long", 9}};
static const Domain kNameDomain = DOMAIN_OF(kNameValues);

static const char* const kServices[] = {NULL, "", "0", "80", "-1", "65536", "http", "x", "80x"};
static const Value kServiceValues[] = {{"null", 0},  {"\"\"", 1}, {"0", 2}, {"80", 3}, {"-1", 4},
                                       {"65536", 5}, {"http", 6}, {"x", 7}, {"80x", 8}};
static const Domain kServiceDomain = DOMAIN_OF(kServiceValues);

static const Value kFamilyValues[] = {{"no hints", -1},   {"any", AF_UNSPEC}, {"IPv4", AF_INET},
                                      {"IPv6", AF_INET6}, {"local", AF_UNIX}, {"999", 999},
                                      {"least", INT_MIN}};
static const Domain kFamilies = DOMAIN_OF(kFamilyValues);

static const Value kTypeValues[] = {
    {"0", 0}, {"stream", SOCK_STREAM}, {"raw", SOCK_RAW}, {"99", 99}};
static const Domain kTypes = DOMAIN_OF(kTypeValues);

static const Value kProtocolValues[] = {{"0", 0}, {"TCP", IPPROTO_TCP}, {"-1", -1}};
static const Domain kProtocols = DOMAIN_OF(kProtocolValues);

// The result of AI_ADDRCONFIG depends on the machine.
static const Value kFlagValues[] = {{"0", 0},
                                    {"passive", EVUTIL_AI_PASSIVE},
                                    {"canonical", EVUTIL_AI_CANONNAME},
                                    {"numeric host", EVUTIL_AI_NUMERICHOST},
                                    {"numeric service", EVUTIL_AI_NUMERICSERV},
                                    {"all", -1 & ~EVUTIL_AI_ADDRCONFIG}};
static const Domain kFlags = DOMAIN_OF(kFlagValues);

// ---- calls

static void call_names(const long* at) {
  struct evdns_base* resolver = open_world(at[0]);
  close_world((at[3] ? evdns_base_resolve_ipv6 : evdns_base_resolve_ipv4)(
      resolver, kNames[at[1]], (int)at[2], on_result, "it"));
}

static void call_without_callback(const long* at) {
  struct evdns_base* resolver = open_world(kServer);
  close_world(
      (at[0] ? evdns_base_resolve_ipv6 : evdns_base_resolve_ipv4)(resolver, "a.x", 0, NULL, NULL));
}

static void call_reverse(const long* at) {
  const struct in_addr ipv4 = {htonl(0x01020304)};
  const struct in6_addr ipv6 = {.s6_addr = {1, 2, 3}};
  struct evdns_base* resolver = open_world(at[0]);
  answer = answer_name;
  close_world(at[1] == 0 ? evdns_base_resolve_reverse(resolver, at[2] ? &ipv4 : NULL, (int)at[3],
                                                      on_result, "IPv4")
                         : evdns_base_resolve_reverse_ipv6(resolver, at[2] ? &ipv6 : NULL,
                                                           (int)at[3], on_result, "IPv6"));
}

static void call_cancel(const long* at) {
  struct evdns_base* resolver = open_world(kServer);
  if (at[1] == 0) answer = NULL;
  struct evdns_request* request =
      at[2] ? evdns_base_resolve_ipv4(resolver, "a.x", 0, on_result, "it") : NULL;
  evdns_cancel_request(at[0] ? resolver : NULL, request);
  close_world(request);
}

static struct evdns_getaddrinfo_request* find(struct evdns_base* resolver, const char* name,
                                              const char* service, const long* at) {
  const struct evutil_addrinfo hints = {.ai_family = (int)at[0],
                                        .ai_socktype = (int)at[1],
                                        .ai_protocol = (int)at[2],
                                        .ai_flags = (int)at[3]};
  return evdns_getaddrinfo(resolver, name, service, at[0] == -1 ? NULL : &hints, on_addresses,
                           "it");
}

static void call_families(const long* at) {
  const long hints[] = {at[2], 0, 0, at[3]};
  struct evdns_base* resolver = open_world(at[0]);
  close_world(find(resolver, kNames[at[1]], "80", hints));
}

static void call_services(const long* at) {
  const long hints[] = {AF_UNSPEC, 0, 0, at[2]};
  struct evdns_base* resolver = open_world(kServer);
  close_world(find(resolver, kNames[at[0]], kServices[at[1]], hints));
}

static void call_hints(const long* at) {
  struct evdns_base* resolver = open_world(kServer);
  close_world(find(resolver, "a.x", kServices[at[4]], at));
}

static void call_addresses_without_callback(const long* at) {
  struct evdns_base* resolver = open_world(kServer);
  close_world(evdns_getaddrinfo(resolver, kNames[at[0]], NULL, NULL, NULL, NULL));
}

static void call_cancel_addresses(const long* at) {
  static const long kAnything[] = {AF_UNSPEC, 0, 0, 0};
  struct evdns_base* resolver = open_world(kServer);
  struct evdns_getaddrinfo_request* request = at[0] ? find(resolver, "a.x", NULL, kAnything) : NULL;
  evdns_getaddrinfo_cancel(request);
  if (at[1]) evdns_getaddrinfo_cancel(request);
  close_world(request);
}

int main(int argc, char** argv) {
  static const Call kCalls[] = {
      {"evdns_base_resolve", call_names, {&kWorlds, &kNameDomain, &kNumbers, &kBooleans}},
      {"evdns_base_resolve, no callback", call_without_callback, {&kBooleans}},
      {"evdns_base_resolve_reverse", call_reverse, {&kWorlds, &kBooleans, &kBooleans, &kNumbers}},
      {"evdns_cancel_request", call_cancel, {&kBooleans, &kBooleans, &kBooleans}},
      {"evdns_getaddrinfo", call_families, {&kWorlds, &kNameDomain, &kFamilies, &kFlags}},
      {"evdns_getaddrinfo, services", call_services, {&kNameDomain, &kServiceDomain, &kFlags}},
      {"evdns_getaddrinfo, hints",
       call_hints,
       {&kFamilies, &kTypes, &kProtocols, &kFlags, &kServiceDomain}},
      {"evdns_getaddrinfo, no callback", call_addresses_without_callback, {&kNameDomain}},
      {"evdns_getaddrinfo_cancel", call_cancel_addresses, {&kBooleans, &kBooleans}},
  };
  return run_calls(argc, argv, kCalls, sizeof kCalls / sizeof *kCalls);
}
