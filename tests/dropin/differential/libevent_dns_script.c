// Random scripts over a resolver with up to three servers, which answer at random: every seed is a
// script, which prints each call, each query that a server gets, and each callback.
//
// No two events may be due at once, since their order is undefined. So no two queries are sent at
// once: addresses are looked up in one family, max-inflight stays the same, and no lookup starts
// while there are no servers; and each query has a unique timeout (libevent_dns.h).
//
// differential: --seeds 1:800
// differential in weather: --seeds 1:400 --chunk 50
#include "libevent_dns.h"

enum { kLookups = 3, kSteps = 40 };

typedef struct Lookup {
  int number;
  int is_busy;
  struct evdns_request* request;
  struct evdns_getaddrinfo_request* addresses;
} Lookup;

static Lookup lookups[kLookups];
static int lookup_count;
static int answers_percent;
static int depth;
static int has_few_in_flight;
static int is_calm;  // No server fails.

static void random_op(void);

static int busy_count(void) {
  int count = 0;
  for (int i = 0; i < kLookups; i++) count += lookups[i].is_busy;
  return count;
}

static const char* some_name(void) {
  static const char* const names[] = {"a", "b.c", "www.example.com", "x.y.z.example.",
                                      "deep.a.b.c"};
  return names[random_below(5)];
}

// ---- the servers

static void reply_with_authority(const Query* query, unsigned flags) {
  Packet packet = {.size = 0};
  put_header(&packet, query->id, kQr | flags, 1, 0, 1, 0);
  put_question(&packet, query);
  put16(&packet, 0xc00c);
  put16(&packet, 6);
  put16(&packet, 1);
  put32(&packet, (uint32_t)random_below(1000));
  put16(&packet, 24);
  put(&packet, "\1n\0\0", 4);
  for (int i = 0; i < 5; i++) put32(&packet, (uint32_t)random_below(1000));
  send_packet(query, &packet);
}

static void reply_many(const Query* query) {
  const int count = 1 + random_below(40);
  Packet packet = reply_to(query, 0, count);
  unsigned char address[16] = {32, 1, 13, 184};
  for (int i = 0; i < count; i++) {
    const int is_other = random_chance(10);
    const int is_ipv6 = (query->type == 28) != is_other;
    address[is_ipv6 ? 15 : 3] = (unsigned char)i;
    put_record(&packet, is_ipv6 ? 28 : 1, (uint32_t)random_below(5000), address, is_ipv6 ? 16 : 4);
  }
  send_packet(query, &packet);
}

static void reply_name(const Query* query) {
  Packet packet = reply_to(query, 0, 1);
  put_record(&packet, 12, 77, "\4host\7example", 14);
  send_packet(query, &packet);
}

// Refuses one at a time: the next query of a refused lookup goes to another server, and two such
// queries would arrive in any order.
static unsigned some_code(void) {
  static const unsigned codes[] = {0, 1, 2, 2, 3, 4, 5, 6, kTc};
  static int64_t refused_until;
  const unsigned code = codes[random_below(9)];
  if (code != 4 && code != 5) return code;
  if (virtual_now < refused_until) return 3;
  refused_until = virtual_now + kTimeoutMost * (int64_t)kMillisecond;
  return code;
}

static void answer_anyhow(const Query* query) {
  if (!is_calm && !random_chance(answers_percent)) return;
  const int choice = random_below(is_calm ? 65 : 100);
  if (choice < 45) {
    if (query->type == 12) {
      reply_name(query);
    } else {
      reply_many(query);
    }
  } else if (choice < 65) {
    reply_with_authority(query, random_chance(70) ? 3 : 0);
  } else if (choice < 90) {
    reply_code(query, some_code());
  } else {
    Packet packet = reply_to(query, 0, 1);  // The record is missing.
    send_packet(query, &packet);
  }
}

// ---- the program

static void act(void) {
  if (depth > 0 || !random_chance(20)) return;
  depth++;
  random_op();
  depth--;
}

static void on_lookup(int result, char type, int count, int ttl, void* found, void* arg) {
  Lookup* lookup = arg;
  char name[16];
  snprintf(name, sizeof name, "lookup %d", lookup->number);
  lookup->is_busy = 0;
  on_result(result, type, count, ttl, found, name);
  act();
}

static void on_some_addresses(int result, struct evutil_addrinfo* list, void* arg) {
  Lookup* lookup = arg;
  int count = 0;
  for (const struct evutil_addrinfo* one = list; one != NULL; one = one->ai_next) {
    count += one->ai_family == AF_INET ? 1 : 100;
  }
  lookup->is_busy = 0;
  printf("%6ld addresses %d: %s, %d\n", elapsed(), lookup->number, evutil_gai_strerror(result),
         count);
  if (list != NULL) evutil_freeaddrinfo(list);
  act();
}

static void begin_lookup(Lookup* lookup) {
  lookup->number = lookup_count++;
  lookup->is_busy = 1;
  lookup->request = NULL;
  lookup->addresses = NULL;
}

static void op_resolve(Lookup* lookup) {
  const char* name = some_name();
  const int flags = random_chance(20) ? DNS_QUERY_NO_SEARCH : 0;
  const struct in_addr ipv4 = {htonl(0x01020300U + (unsigned)random_below(3))};
  struct in6_addr ipv6 = {.s6_addr = {0x20, 1}};
  ipv6.s6_addr[15] = (unsigned char)random_below(3);
  begin_lookup(lookup);
  const int kind = random_below(10);
  printf("%6ld resolve %d: %s, kind %d\n", elapsed(), lookup->number, name, kind);
  if (kind < 5) {
    lookup->request = evdns_base_resolve_ipv4(dns, name, flags, on_lookup, lookup);
  } else if (kind < 8) {
    lookup->request = evdns_base_resolve_ipv6(dns, name, flags, on_lookup, lookup);
  } else if (kind == 8) {
    lookup->request = evdns_base_resolve_reverse(dns, &ipv4, flags, on_lookup, lookup);
  } else {
    lookup->request = evdns_base_resolve_reverse_ipv6(dns, &ipv6, flags, on_lookup, lookup);
  }
}

static void op_addresses(Lookup* lookup) {
  const char* name = some_name();
  const struct evutil_addrinfo hints = {.ai_family = random_chance(50) ? AF_INET : AF_INET6,
                                        .ai_socktype = SOCK_STREAM};
  begin_lookup(lookup);
  printf("%6ld addresses %d: %s, family %d\n", elapsed(), lookup->number, name, hints.ai_family);
  struct evdns_getaddrinfo_request* request =
      evdns_getaddrinfo(dns, name, "80", &hints, on_some_addresses, lookup);
  lookup->addresses = request;
  if (request == NULL) lookup->is_busy = 0;
}

static void op_look_up(void) {
  if (evdns_base_count_nameservers(dns) == 0 || (depth > 0 && busy_count() > 0)) return;
  for (int i = 0; i < kLookups; i++) {
    if (lookups[i].is_busy) continue;
    if (random_chance(60)) {
      op_resolve(&lookups[i]);
    } else {
      op_addresses(&lookups[i]);
    }
    return;
  }
}

static void cancel(Lookup* lookup) {
  if (!lookup->is_busy) return;
  printf("%6ld cancel %d\n", elapsed(), lookup->number);
  if (lookup->addresses != NULL) {
    evdns_getaddrinfo_cancel(lookup->addresses);
  } else {
    evdns_cancel_request(dns, lookup->request);
  }
}

static void op_cancel(void) { cancel(&lookups[random_below(kLookups)]); }

// Does not set ndots during a lookup: see op_search().
static void op_option(void) {
  static const char* const options[][4] = {{"attempts", "1", "2", "3"},
                                           {"max-timeouts", "1", "3", "9"},
                                           {"initial-probe-timeout", "2.7002", "9.7002", "0.6002"},
                                           {"getaddrinfo-allow-skew", "0.3005", "2.9005", "1.7005"},
                                           {"ndots", "0", "1", "2"}};
  const char* const* option = options[random_below(busy_count() > 0 ? 4 : 5)];
  const char* value = option[1 + random_below(3)];
  printf("%6ld %s %s: %d\n", elapsed(), option[0], value,
         evdns_base_set_option(dns, option[0], value));
}

// Not during a lookup: the original's lookup continues in the changed list, and may try a name
// twice. Nor if few questions are in flight: the original's next question then waits for ever.
static void op_search(void) {
  static const char* const domains[] = {"one.test", ".two.test", "three"};
  if (busy_count() > 0 || has_few_in_flight) return;
  printf("%6ld search\n", elapsed());
  if (random_chance(30)) {
    evdns_base_search_clear(dns);
  } else {
    evdns_base_search_add(dns, domains[random_below(3)]);
  }
}

// Lookups that were in flight are queued in an undefined order, so there is at most one. The
// original also crashes if a server is down.
static void op_suspend(void) {
  if (busy_count() > 1 || !is_calm) return;
  printf("%6ld suspend: %d\n", elapsed(), evdns_base_clear_nameservers_and_suspend(dns));
  if (random_chance(50)) return;
  for (int i = 0; i < server_count; i++) add_server(i);
  printf("%6ld resume: %d\n", elapsed(), evdns_base_resume(dns));
}

static void op_servers(void) {
  printf("%6ld add: %d, %d\n", elapsed(), add_server(random_below(server_count)),
         evdns_base_count_nameservers(dns));
  if (random_chance(70)) evdns_base_resume(dns);
}

static void random_op(void) {
  if (depth == 0) virtual_advance((1 + random_below(97)) * (int64_t)kMillisecond);
  const int choice = random_below(100);
  if (choice < 55) {
    op_look_up();
  } else if (choice < 65) {
    op_cancel();
  } else if (choice < 75) {
    op_option();
  } else if (choice < 83) {
    op_search();
  } else if (choice < 90) {
    op_suspend();
  } else {
    op_servers();
  }
}

static void run(void) {
  is_uneven = 1;
  answers_percent = random_below(4) * 33;
  is_calm = random_chance(30);
  begin(1 + random_below(3));
  answer = answer_anyhow;
  has_few_in_flight = random_chance(30);
  if (has_few_in_flight) evdns_base_set_option(dns, "max-inflight", random_chance(50) ? "1" : "3");
  for (int i = 0; i < kSteps; i++) {
    random_op();
    if (random_chance(40)) run_for(random_below(random_chance(80) ? 500 : 30000));
  }
  depth++;                                                 // Ends what callbacks do.
  for (int i = 0; i < kLookups; i++) cancel(&lookups[i]);  // Otherwise they would end in any order.
  run_for(10);
  op_resolve(&lookups[0]);
  printf("%6ld free\n", elapsed());
  evdns_base_free(dns, random_chance(80));
  dns = NULL;
  run_for(100);
  event_base_free(base);
}

int main(int argc, char** argv) { return run_seeds(argc, argv, run); }
