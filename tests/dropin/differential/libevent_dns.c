// The resolver: the choice and order of servers, search lists, cancelling, shutting down, settings,
// resolv.conf, functions without a base. See also libevent_dns_answers.c, libevent_dns_addresses.c.
// differential in weather:
#include "libevent_dns.h"

#include <event2/dns_compat.h>
#include <event2/event_compat.h>
#include <sys/resource.h>

static void ask(const char* name) {
  virtual_advance(3 * kMillisecond);
  if (evdns_base_resolve_ipv4(dns, name, 0, on_result, (void*)name) == NULL) {
    printf("%6ld %s: cannot be asked for\n", elapsed(), name);
  }
}

static void ask_and_wait(const char* name, int milliseconds) {
  ask(name);
  run_for(milliseconds);
}

static int code;
static void answer_code(const Query* query) { reply_code(query, (unsigned)code); }
static void answer_address(const Query* query) { reply_address(query, query->server + 1, 123); }
static void answer_not_there(const Query* query) { reply_code(query, 3); }

static void server_is_silent(void) {
  begin(1);
  ask_and_wait("a.example", 400000);
  end();
}

static void default_times(void) {
  use_servers(1);
  dns = evdns_base_new(base, 0);
  add_server(0);
  evdns_base_resolve_ipv4(dns, "a.example", 0, on_result, "a");
  run_for(200000);
  end();
}

static void two_servers_are_silent(void) {
  begin(2);
  ask("a.example");
  ask("b.example");
  ask_and_wait("c.example", 100000);
  ask_and_wait("d.example", 30000);
  end();
}

static void servers_take_turns(void) {
  begin(4);
  answer = answer_address;
  for (int i = 0; i < 9; i++) ask_and_wait(i % 2 ? "odd.example" : "even.example", 10);
  end();
}

static void codes_of_one_server(void) {
  begin(1);
  answer = answer_code;
  for (code = 0; code < 16; code++) {
    printf("code %d\n", code);
    ask_and_wait("a.example", 60000);
  }
  end();
}

static void codes_of_three_servers(void) {
  begin(3);
  answer = answer_code;
  for (code = 0; code < 8; code++) {
    printf("code %d\n", code);
    ask_and_wait("a.example", 60000);
  }
  end();
}

static void flags_of_answers(void) {
  static const int flags[] = {kTc, kTc | 3, kAa, kRa, 0x40, 0x7800, 0x70};
  begin(1);
  answer = answer_code;
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    code = flags[i];
    printf("flags %#x\n", (unsigned)code);
    ask_and_wait("a.example", 30000);
  }
  end();
}

// The first server returns errors; the others answer.
static void answer_but_first(const Query* query) {
  if (query->server != 0) {
    answer_address(query);
  } else if (code >= 0) {
    reply_code(query, (unsigned)code);
  }
}

static void first_server_is_broken(void) {
  static const int codes[] = {-1, 2, 4, 5};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    code = codes[i];
    printf("code %d\n", code);
    begin(3);
    answer = answer_but_first;
    for (int n = 0; n < 6; n++) ask_and_wait("a.example", 7000);
    run_for(60000);
    answer = answer_address;
    run_for(100000);
    for (int n = 0; n < 4; n++) ask_and_wait("b.example", 10);
    end();
  }
}

static void refused_while_others_go_on(void) {
  begin(3);
  answer = answer_but_first;
  code = 5;
  ask_and_wait("bad.example", 1000);
  ask_and_wait("two.example", 1000);
  evdns_base_resume(dns);
  run_for(20000);
  end();
}

static void all_kinds_of_questions(void) {
  begin(2);
  answer = answer_address;
  struct in_addr ipv4 = {htonl(0x01020304)};
  struct in6_addr ipv6;
  inet_pton(AF_INET6, "2001:db8::1", &ipv6);
  evdns_base_resolve_ipv4(dns, "a.example", 0, on_result, "IPv4");
  evdns_base_resolve_ipv6(dns, "a.example", 0, on_result, "IPv6");
  evdns_base_resolve_reverse(dns, &ipv4, 0, on_result, "reverse IPv4");
  evdns_base_resolve_reverse_ipv6(dns, &ipv6, 0, on_result, "reverse IPv6");
  run_for(1000);
  end();
}

// Empty labels within a name, and names of more than 253 bytes, are left out: they are invalid, and
// the original sends queries for them.
static void names(void) {
  static const char* const some[] = {"",    "a.",     "a",    "1.2.3.4", "::1",
                                     "a b", "a\001b", "_x.y", "A.B",     "\xc3\xa4"};
  begin(1);
  answer = answer_address;
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) ask_and_wait(some[i], 10);
  static char labels[2][100];
  for (int i = 0; i < 2; i++) {
    memset(labels[i], 'a', (size_t)(63 + i));
    ask_and_wait(labels[i], 10);
  }
  static char longest[300];
  for (int i = 0; i < 253; i++) longest[i] = i % 50 == 49 ? '.' : 'a';
  ask_and_wait(longest, 10);
  memset(longest, 0, sizeof longest);
  for (int i = 0; i < 256; i++) longest[i] = i % 50 == 49 ? '.' : 'a';
  ask_and_wait(longest, 10);
  end();
}

static void no_servers(void) {
  use_servers(1);
  dns = evdns_base_new(base, 0);
  evdns_base_set_option(dns, "randomize-case", "0");
  answer = answer_address;
  ask_and_wait("a.example", 20000);
  printf("a server\n");
  add_server(0);
  run_for(20000);
  printf("resumed\n");
  evdns_base_resume(dns);
  run_for(20000);
  end();
}

static void suspended(void) {
  begin(1);
  answer = answer_address;
  ask("a.example");
  evdns_base_clear_nameservers_and_suspend(dns);
  printf("%d servers\n", evdns_base_count_nameservers(dns));
  ask_and_wait("b.example", 20000);
  add_server(0);
  run_for(20000);
  evdns_base_resume(dns);
  run_for(20000);
  ask_and_wait("c.example", 10);
  end();
}

static void few_in_flight(void) {
  static const char* const some[] = {"a.x", "b.x", "c.x", "d.x", "e.x", "f.x", "g.x"};
  begin(1);
  evdns_base_set_option(dns, "max-inflight", "2");
  evdns_base_set_option(dns, "timeout", "0.9005");
  for (int i = 0; i < 7; i++) ask(some[i]);
  run_for(40000);
  answer = answer_address;
  run_for(40000);
  for (int i = 0; i < 7; i++) ask(some[i]);
  run_for(1000);
  end();
}

static void options_count(void) {
  static const char* const options[][3] = {{"attempts", "1", "0"},
                                           {"max-timeouts", "1", "7"},
                                           {"initial-probe-timeout", "1.0005", "2000.0005"}};
  for (int i = 0; i < 3; i++) {
    for (int value = 1; value <= 2; value++) {
      printf("%s %s\n", options[i][0], options[i][value]);
      begin(1);
      evdns_base_set_option(dns, options[i][0], options[i][value]);
      ask("a.example");
      ask("b.example");
      ask_and_wait("c.example", 60000);
      end();
    }
  }
}

// ---- search lists

static void search_lists(void) {
  static const char* const some[] = {"a", "a.b", "a.b.c", "a.", "a.b.", ""};
  begin(1);
  answer = answer_not_there;
  evdns_base_search_add(dns, "one.test");
  evdns_base_search_add(dns, ".two.test");
  evdns_base_search_add(dns, "...three.test.");
  for (int ndots = -1; ndots < 3; ndots++) {
    printf("ndots %d\n", ndots);
    evdns_base_search_ndots_set(dns, ndots);
    for (int i = 0; i < 6; i++) ask_and_wait(some[i], 10);
  }
  evdns_base_resolve_ipv4(dns, "alone", DNS_QUERY_NO_SEARCH, on_result, "alone");
  evdns_base_resolve_ipv6(dns, "six", 0, on_result, "six");
  evdns_base_search_clear(dns);
  run_for(10);
  evdns_base_search_add(dns, "");
  evdns_base_search_add(dns, ".");
  ask_and_wait("a.b", 10);
  end();
}

static void codes_in_search_lists(void) {
  begin(1);
  answer = answer_code;
  evdns_base_search_add(dns, "s.test");
  for (code = 0; code < 7; code++) {
    printf("code %d\n", code);
    ask_and_wait("a", 60000);
  }
  code = kTc;
  ask_and_wait("a", 60000);
  answer = NULL;
  ask_and_wait("a", 60000);
  end();
}

static void domains_that_are_too_long(void) {
  static char domain[201];
  static char name[61];
  begin(1);
  answer = answer_not_there;
  for (int i = 0; i < 200; i++) domain[i] = i % 50 == 49 ? '.' : 'a';
  memset(name, 'n', 60);
  evdns_base_search_add(dns, domain);
  ask_and_wait(name, 10);
  evdns_base_search_add(dns, "fits");
  ask_and_wait(name, 10);
  end();
}

// ---- ending early

static void cancelled(void) {
  begin(1);
  struct evdns_request* a = evdns_base_resolve_ipv4(dns, "a.x", 0, on_result, "a");
  struct evdns_request* b = evdns_base_resolve_ipv4(dns, "b.x", 0, on_result, "b");
  evdns_cancel_request(dns, a);
  printf("cancelled\n");
  run_for(100);
  evdns_cancel_request(dns, b);
  run_for(1000);
  struct evdns_request* c = evdns_base_resolve_ipv4(dns, "c.x", 0, on_result, "c");
  evdns_base_clear_nameservers_and_suspend(dns);
  evdns_cancel_request(dns, c);
  run_for(1000);
  evdns_cancel_request(NULL, evdns_base_resolve_ipv4(dns, "d.x", 0, on_result, "d"));
  run_for(1000);
  end();
}

static void cancelled_once_answered(void) {
  begin(1);
  answer = answer_address;
  struct evdns_request* a = evdns_base_resolve_ipv4(dns, "a.x", 0, on_result, "a");
  serve_all();
  evdns_base_search_add(dns, "s.test");
  struct evdns_request* b = evdns_base_resolve_ipv4(dns, "b.x", 0, on_result, "b");
  evdns_cancel_request(dns, b);
  evdns_cancel_request(dns, b);
  evdns_cancel_request(dns, a);
  run_for(1000);
  end();
}

static void shut_down(void) {
  for (int tells = 0; tells < 2; tells++) {
    for (int has_server = 0; has_server < 2; has_server++) {
      begin(has_server);
      evdns_base_resolve_ipv4(dns, "a.x", 0, on_result, "a");
      evdns_base_free(dns, tells);
      printf("freed\n");
      run_for(1000);
      event_base_free(base);
      server_count = 0;
    }
  }
}

static void free_in_callback(int result, char type, int count, int ttl, void* found, void* arg) {
  on_result(result, type, count, ttl, found, arg);
  evdns_base_resolve_ipv4(dns, "again.x", 0, on_result, "again");
  evdns_base_free(dns, 1);
}

static void freed_in_a_callback(void) {
  begin(1);
  answer = answer_address;
  evdns_base_resolve_ipv4(dns, "a.x", 0, free_in_callback, "a");
  evdns_base_resolve_ipv4(dns, "b.x", 0, on_result, "b");
  run_for(1000);
  event_base_free(base);
}

static void loop_is_kept(void) {
  static const int flags[] = {0, EVDNS_BASE_DISABLE_WHEN_INACTIVE};
  for (int i = 0; i < 2; i++) {
    use_servers(1);
    dns = evdns_base_new(base, flags[i]);
    printf("no server: %d\n", event_base_loop(base, EVLOOP_NONBLOCK));
    add_server(0);
    printf("idle: %d\n", event_base_loop(base, EVLOOP_NONBLOCK));
    evdns_base_resolve_ipv4(dns, "a.x", 0, on_result, "a");
    printf("busy: %d\n", event_base_loop(base, EVLOOP_NONBLOCK));
    answer = answer_address;
    run_for(1000);
    printf("idle: %d\n", event_base_loop(base, EVLOOP_NONBLOCK));
    end();
    close(server_fds[0]);
  }
}

// ---- settings

static void addresses_of_servers(void) {
  static const char* const some[] = {"127.0.0.1", "127.0.0.1:53", "127.0.0.1:54", "::1",
                                     "[::1]",     "[::1]:53",     "[::1]:77",     "",
                                     "foo",       "1.1.1.1:0",    "1.1.1.1:x",    "1.1.1.1:99999",
                                     "256.1.1.1", "fe80::1%lo",   "0.0.0.0",      " 1.2.3.4",
                                     "1.2.3.4"};
  use_servers(0);
  dns = evdns_base_new(base, 0);
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    const int result = evdns_base_nameserver_ip_add(dns, some[i]);
    printf("\"%s\": %d, %d\n", some[i], result, evdns_base_count_nameservers(dns));
  }
  printf("%d\n", evdns_base_nameserver_add(dns, htonl(0x7f000009)));
  printf("%d\n", evdns_base_nameserver_add(dns, htonl(0x7f000009)));
  for (int i = -1; i <= evdns_base_count_nameservers(dns); i++) {
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    const int size =
        evdns_base_get_nameserver_addr(dns, i, (struct sockaddr*)&address, sizeof address);
    printf("%d: %d, %d, %d", i, size, address.ss_family,
           ntohs(((struct sockaddr_in*)&address)->sin_port));
    printf(", %d\n", evdns_base_get_nameserver_addr(dns, i, (struct sockaddr*)&address, 4));
  }
  end();
}

static void bound_to(const char* address) {
  static const char* const servers[] = {"127.9.9.9", "192.0.2.5", "0.0.0.0", "::1", "2001:db8::2"};
  dns = evdns_base_new(base, 0);
  printf("%s: %d, servers:", address, evdns_base_set_option(dns, "bind-to", address));
  for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
    printf(" %d", evdns_base_nameserver_ip_add(dns, servers[i]));
  }
  printf("\n");
  evdns_base_free(dns, 0);
}

static void servers_that_cannot_be_added(void) {
  use_servers(0);
  bound_to("127.0.0.1");
  bound_to("192.0.2.1");  // An address that this machine does not have.
  bound_to("2001:db8::1");
  dns = evdns_base_new(base, 0);
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_NOFILE, &none);
  printf("no descriptors: %d\n", evdns_base_nameserver_ip_add(dns, "127.0.0.1"));
  end();
}

static void values_of_options(void) {
  static const char* const options[] = {"ndots",
                                        "timeout:",
                                        "max-timeouts",
                                        "max-inflight",
                                        "attempts",
                                        "bind-to",
                                        "so-rcvbuf",
                                        "so-sndbuf",
                                        "randomize-case",
                                        "ndots:x",
                                        "timeoutx",
                                        "edns-udp-size",
                                        "initial-probe-timeout",
                                        "getaddrinfo-allow-skew",
                                        "n",
                                        ""};
  static const char* const values[] = {"",   "0",    "1",     "-1",     "-5",        "3",   "300",
                                       "x",  "3x",   "0.001", "0.0009", "1e20",      "inf", "0x10",
                                       " 5", "1.5s", "::1",   "1.1",    "127.0.0.1", "1 "};
  use_servers(0);
  dns = evdns_base_new(base, 0);
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    printf("%s:", options[i]);
    for (size_t j = 0; j < sizeof values / sizeof *values; j++) {
      printf(" \"%s\" %d", values[j], evdns_base_set_option(dns, options[i], values[j]));
    }
    printf("\n");
  }
  end();
}

static const char* write_file(const char* text) {
  static char path[] = "/tmp/libevent_dns.XXXXXX";
  static int fd = -1;
  if (fd < 0) fd = mkstemp(path);
  if (ftruncate(fd, 0) != 0 || pwrite(fd, text, strlen(text), 0) < 0) abort();
  return path;
}

static const char* own_name = "host";

int gethostname(char* name, size_t size) {
  snprintf(name, size, "%s", own_name);
  return 0;
}

static void show_servers(void) {
  for (int i = 0; i < evdns_base_count_nameservers(dns); i++) {
    struct sockaddr_in address;
    evdns_base_get_nameserver_addr(dns, i, (struct sockaddr*)&address, sizeof address);
    printf(" %s:%d", address.sin_family == AF_INET ? inet_ntoa(address.sin_addr) : "IPv6",
           ntohs(address.sin_port));
  }
  printf("\n");
}

static void parse(const char* text, int flags) {
  printf("flags %d, %s\n", flags, text);
  dns = evdns_base_new(base, 0);
  const char* path = write_file(text);
  printf("%d:", evdns_base_resolv_conf_parse(dns, flags, path));
  unlink(path);
  show_servers();
  evdns_base_clear_nameservers_and_suspend(dns);
  add_server(0);
  evdns_base_set_option(dns, "randomize-case", "0");
  answer = answer_not_there;
  ask_and_wait("nx", 10);
  ask_and_wait("nx.a.b", 10);
  answer = NULL;
  ask_and_wait("silent.x.y.z", 60010);
  evdns_base_free(dns, 0);
}

static void resolv_conf(void) {
  static const char* const some[] = {
      "nameserver 1.2.3.4\nsearch one.t two.t\noptions ndots:2 timeout:1.9005 attempts:2\n",
      "",
      "nameserver\nnameserver bad\nNameserver 1.1.1.1\nnameservers 1.1.1.1\n",
      "  nameserver 1.1.1.1 2.2.2.2\n#nameserver 2.2.2.2\n;nameserver 3.3.3.3\nnameserver\t4.4.4.4",
      "nameserver 1.1.1.1\r\nnameserver ::1\nnameserver 1.1.1.1:5353\nnameserver 5.5.5.5#x\n",
      "domain d1\ndomain d2 d3\n",
      "domain d1\nsearch s1 s2\n",
      "search s1 s2\nsearch s3 s4\ndomain d1\n",
      "search\n",
      "domain\n",
      "search .s1. s2\n",
      "options ndots:0\noptions timeout:1.9005\noptions foo bar:3 attempts:1 ndots:x ndots\n",
      "options\noptions ndots:3\nsearch s\n",
      "search s\noptions ndots:4\n",
      "options timeout:0.5005 max-timeouts:1 max-inflight:1 bind-to:127.0.0.1 so-rcvbuf:4000\n"};
  use_servers(1);
  for (int flags = 0; flags < 32; flags++) {
    if (flags < 8 || flags == 15 || flags == 18 || flags == 31) parse(some[0], flags);
  }
  for (size_t i = 1; i < sizeof some / sizeof *some; i++) parse(some[i], 7);
  own_name = "host.of.example";
  parse("", 7);
  parse("domain d\n", 7);
  parse("search\n", 1);
}

static void resolv_conf_is_missing(void) {
  use_servers(0);
  for (int i = 0; i < 64; i++) {
    const int flags = i / 2;
    dns = evdns_base_new(base, 0);
    if (i % 2 == 1) evdns_base_nameserver_ip_add(dns, "127.0.0.1:5353");
    printf("%d: %d", flags, evdns_base_resolv_conf_parse(dns, flags, "/nonexistent"));
    show_servers();
    evdns_base_free(dns, 0);
  }
  dns = evdns_base_new(base, 0);
  printf("%d\n", evdns_base_resolv_conf_parse(dns, 7, "/tmp"));
  end();
}

// ---- without a base

static void legacy(void) {
  use_servers(1);
  event_base_free(base);
  base = event_init();
  printf("%d\n", evdns_get_global_base() != NULL);
  printf("%d\n", evdns_nameserver_ip_add("127.0.0.1:9"));
  printf("%d servers\n", evdns_count_nameservers());
  printf("%d\n", evdns_nameserver_add(htonl(0x7f000001)));
  printf("%d\n", evdns_clear_nameservers_and_suspend());
  dns = evdns_get_global_base();
  add_server(0);
  printf("%d\n", evdns_set_option("randomize-case", "0", 0));
  answer = answer_address;
  struct in_addr ipv4 = {1};
  struct in6_addr ipv6 = {.s6_addr = {1}};
  printf("%d\n", evdns_resolve_ipv4("a.x", 0, on_result, "IPv4"));
  printf("%d\n", evdns_resolve_ipv6("a.x", 0, on_result, "IPv6"));
  printf("%d\n", evdns_resolve_reverse(&ipv4, 0, on_result, "reverse IPv4"));
  printf("%d\n", evdns_resolve_reverse_ipv6(&ipv6, 0, on_result, "reverse IPv6"));
  run_for(1000);
  evdns_search_add("z");
  evdns_search_ndots_set(3);
  answer = answer_not_there;
  printf("%d\n", evdns_resolve_ipv4("a.x", 0, on_result, "searched"));
  run_for(1000);
  evdns_search_clear();
  printf("%d\n", evdns_resolv_conf_parse(1, "/nonexistent"));
  answer = NULL;
  printf("%d\n", evdns_resolve_ipv4("silent.x", 0, on_result, "silent"));
  evdns_shutdown(1);
  printf("%d, %d\n", evdns_get_global_base() != NULL, evdns_set_option("ndots", "2", 0));
  run_for(1000);
  evdns_shutdown(0);
}

static void errors(void) {
  for (int error = -2; error < 75; error++) printf("%d %s\n", error, evdns_err_to_string(error));
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"server is silent", server_is_silent},
      {"default times", default_times},
      {"two servers are silent", two_servers_are_silent},
      {"servers take turns", servers_take_turns},
      {"codes of one server", codes_of_one_server},
      {"codes of three servers", codes_of_three_servers},
      {"flags of answers", flags_of_answers},
      {"first server is broken", first_server_is_broken},
      {"refused while others go on", refused_while_others_go_on},
      {"all kinds of questions", all_kinds_of_questions},
      {"names", names},
      {"no servers", no_servers},
      {"suspended", suspended},
      {"few in flight", few_in_flight},
      {"options count", options_count},
      {"search lists", search_lists},
      {"codes in search lists", codes_in_search_lists},
      {"domains that are too long", domains_that_are_too_long},
      {"cancelled", cancelled},
      {"cancelled once answered", cancelled_once_answered},
      {"shut down", shut_down},
      {"freed in a callback", freed_in_a_callback},
      {"loop is kept", loop_is_kept},
      {"addresses of servers", addresses_of_servers},
      {"servers that cannot be added", servers_that_cannot_be_added},
      {"values of options", values_of_options},
      {"resolv.conf", resolv_conf},
      {"resolv.conf is missing", resolv_conf_is_missing},
      {"legacy", legacy},
      {"errors", errors},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
