// evdns_getaddrinfo(): addresses of both families, services, hosts files, cancelling; and
// bufferevents that connect to a name.
//
// Left out are differences on purpose: AI_ADDRCONFIG depends on the machine; from a hosts file the
// original returns the second of two entries without a port, and success without an address for a
// name that has only the other family.
//
// differential in weather:
#include "libevent_dns.h"

#include <event2/bufferevent.h>
#include <event2/listener.h>

typedef struct Wanted {
  const char* name;
  const char* service;
  int family;
  int type;
  int protocol;
  int flags;
} Wanted;

static void look_up(const Wanted* wanted) {
  const struct evutil_addrinfo hints = {.ai_family = wanted->family,
                                        .ai_socktype = wanted->type,
                                        .ai_protocol = wanted->protocol,
                                        .ai_flags = wanted->flags};
  printf("%s %s %d/%d/%d %#x\n", wanted->name ? wanted->name : "-",
         wanted->service ? wanted->service : "-", wanted->family, wanted->type, wanted->protocol,
         (unsigned)wanted->flags);
  const struct evdns_getaddrinfo_request* request =
      evdns_getaddrinfo(dns, wanted->name, wanted->service, &hints, on_addresses, "found");
  printf("%s\n", request != NULL ? "is asked" : "at once");
  run_for(40000);
}

static void answer_alias(const Query* query) {
  Packet packet = reply_to(query, 0, 3);
  Packet name = {.size = 0};
  put_name(&name, "Real.example");
  put_record(&packet, 5, 60, name.bytes, name.size);
  name.size = 0;
  put_name(&name, "other.example");
  put_record(&packet, 5, 60, name.bytes, name.size);
  if (query->type == 1) {
    put_record(&packet, 1, 60, "\1\2\3\4", 4);
  } else {
    put_record(&packet, 28, 60, "0123456789abcdef", 16);
  }
  send_packet(query, &packet);
}

// Chooses the response by the beginning of the name.
static void answer_by_name(const Query* query) {
  const int is_ipv4 = query->type == 1;
  const char* name = query->lower;
  if (strncmp(name, "nx", 2) == 0) {
    reply_code(query, 3);
  } else if (strncmp(name, "refused", 7) == 0) {
    reply_code(query, 5);
  } else if (strncmp(name, is_ipv4 ? "only6" : "only4", 5) == 0) {
    reply_code(query, 0);
  } else if (strncmp(name, "alias", 5) == 0) {
    answer_alias(query);
  } else if (strncmp(name, "silent", 6) != 0 && strncmp(name, is_ipv4 ? "slow4" : "slow6", 5)) {
    reply_address(query, 9, 70);
  }
}

static void hints(void) {
  static const Wanted some[] = {{"a.x", "80", 0, SOCK_STREAM, 0, 0},
                                {"a.x", "80", 0, 0, 0, 0},
                                {"a.x", NULL, AF_INET, SOCK_DGRAM, 0, 0},
                                {"a.x", "http", AF_INET6, 0, IPPROTO_TCP, 0},
                                {"a.x", "http", AF_INET, SOCK_STREAM, IPPROTO_UDP, 0},
                                {"a.x", "nosuch", AF_INET, SOCK_STREAM, 0, 0},
                                {"a.x", "http", AF_INET, SOCK_STREAM, 0, EVUTIL_AI_NUMERICSERV},
                                {"a.x", "-1", 0, SOCK_STREAM, 0, 0},
                                {"a.x", "0", 0, SOCK_STREAM, 0, 0},
                                {"a.x", "65535", 0, SOCK_STREAM, 0, 0},
                                {"a.x", "65536", 0, SOCK_STREAM, 0, 0},
                                {"a.x", "", 0, SOCK_STREAM, 0, 0},
                                {"", "80", 0, SOCK_STREAM, 0, 0},
                                {NULL, NULL, 0, SOCK_STREAM, 0, 0},
                                {NULL, "80", 0, SOCK_STREAM, 0, 0},
                                {NULL, "80", 0, SOCK_STREAM, 0, EVUTIL_AI_PASSIVE},
                                {NULL, "80", AF_INET6, SOCK_STREAM, 0, EVUTIL_AI_PASSIVE},
                                {"1.2.3.4", "80", 0, SOCK_STREAM, 0, 0},
                                {"::1", "80", 0, 0, 0, 0},
                                {"1.2.3.4", "80", AF_INET6, SOCK_STREAM, 0, 0},
                                {"::1", "80", AF_INET, SOCK_STREAM, 0, 0},
                                {"fe80::1%lo", "80", 0, SOCK_STREAM, 0, 0},
                                {"a.x", "80", 0, SOCK_STREAM, 0, EVUTIL_AI_NUMERICHOST},
                                {"1.2.3.4", "80", AF_INET6, SOCK_STREAM, 0, EVUTIL_AI_NUMERICHOST},
                                {"a.x", "80", AF_UNIX, SOCK_STREAM, 0, 0},
                                {"a.x", "80", 99, SOCK_STREAM, 0, 0},
                                {"a.x", "80", 0, SOCK_RAW, 0, 0},
                                {"a.x", "80", 0, 77, 0, 0},
                                {"a.x", "80", 0, 0, 99, 0},
                                {"a.x", "80", 0, 0, 0, 0x40000},
                                {"a.x", "80", 0, 0, 0, EVUTIL_AI_V4MAPPED | EVUTIL_AI_ALL},
                                {"alias.x", "80", 0, SOCK_STREAM, 0, EVUTIL_AI_CANONNAME},
                                {"alias.x", "80", AF_INET6, 0, 0, EVUTIL_AI_CANONNAME},
                                {"alias.x", "80", 0, SOCK_STREAM, 0, 0},
                                {"a.x", "80", AF_INET, SOCK_STREAM, 0, EVUTIL_AI_CANONNAME}};
  begin(1);
  answer = answer_by_name;
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) look_up(&some[i]);
  evdns_getaddrinfo(dns, "a.x", "80", NULL, on_addresses, "without hints");
  run_for(100);
  static char label[70];
  memset(label, 'a', 64);
  look_up(&(Wanted){label, "80", 0, SOCK_STREAM, 0, 0});
  end();
}

static void failures(void) {
  static const char* const some[] = {"nx.x",    "refused.x", "only4.x", "only6.x",
                                     "slow4.x", "slow6.x",   "silent.x"};
  begin(1);
  answer = answer_by_name;
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    look_up(&(Wanted){some[i], "80", 0, SOCK_STREAM, 0, 0});
    look_up(&(Wanted){some[i], "80", AF_INET, SOCK_STREAM, 0, 0});
  }
  end();
}

static const int outcomes[] = {0, 1, 3, 4, 5, 6, kTc, 99, -1};
static int outcome_of_ipv4;
static int outcome_of_ipv6;

static void answer_outcome(const Query* query) {
  const int outcome = outcomes[query->type == 1 ? outcome_of_ipv4 : outcome_of_ipv6];
  if (outcome == 0) {
    reply_address(query, 1, 1);
  } else if (outcome > 0) {
    reply_code(query, outcome == 99 ? 0 : (unsigned)outcome);
  }
}

static void all_pairs_of_outcomes(void) {
  const int count = (int)(sizeof outcomes / sizeof *outcomes);
  for (int pair = 0; pair < count * count; pair++) {
    outcome_of_ipv4 = pair / count;
    outcome_of_ipv6 = pair % count;
    printf("IPv4 %d, IPv6 %d\n", outcomes[outcome_of_ipv4], outcomes[outcome_of_ipv6]);
    begin(1);
    answer = answer_outcome;
    look_up(&(Wanted){"a", "80", 0, SOCK_STREAM, 0, 0});
    end();
    close(server_fds[0]);
  }
}

static void load(const char* text) {
  char path[] = "/tmp/libevent_dns.XXXXXX";
  const int fd = mkstemp(path);
  if (write(fd, text, strlen(text)) < 0) abort();
  close(fd);
  printf("loaded: %d\n", evdns_base_load_hosts(dns, path));
  unlink(path);
}

static void hosts(void) {
  static const char* const some[] = {
      "one",          "uno",  "two",   "dos",  "ONE",  "six",       "port", "scoped",
      "case.example", "case", "case.", "last", "line", "localhost", "c",    "one."};
  begin(1);
  answer = answer_by_name;
  printf("none: %d\n", evdns_base_load_hosts(dns, NULL));
  look_up(&(Wanted){"localhost", "80", 0, SOCK_STREAM, 0, 0});
  printf("missing: %d\n", evdns_base_load_hosts(dns, "/nonexistent"));
  printf("a directory: %d\n", evdns_base_load_hosts(dns, "/tmp"));
  load(
      "# comment\n1.1.1.1 one uno # c\n  2.2.2.2\ttwo\tdos\n3.3.3.3\nbad line\n4.4.4.4 one\n"
      "::5 One six\r\n1.2.3.4:99 port\nfe80::1%lo scoped\n5.5.5.5 CaSe.example case.\n"
      "6.6.6.6 last");
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    look_up(&(Wanted){some[i], "80", 0, SOCK_STREAM, 0, 0});
  }
  look_up(&(Wanted){"one", "80", AF_INET, SOCK_STREAM, 0, EVUTIL_AI_CANONNAME});
  look_up(&(Wanted){"one", NULL, 0, SOCK_STREAM, 0, EVUTIL_AI_NUMERICHOST});
  evdns_base_resolve_ipv4(dns, "one", 0, on_result, "resolved");
  run_for(1000);
  evdns_base_clear_host_addresses(dns);
  look_up(&(Wanted){"one", "80", 0, SOCK_STREAM, 0, 0});
  load("");
  look_up(&(Wanted){"localhost", "80", 0, SOCK_STREAM, 0, 0});
  end();
}

static struct evdns_getaddrinfo_request* start(const char* name) {
  const struct evutil_addrinfo stream = {.ai_socktype = SOCK_STREAM};
  return evdns_getaddrinfo(dns, name, "80", &stream, on_addresses, (void*)name);
}

static void cancelled(void) {
  begin(1);
  answer = answer_by_name;
  struct evdns_getaddrinfo_request* request = start("a.x");
  evdns_getaddrinfo_cancel(request);
  printf("cancelled\n");
  run_for(1000);
  request = start("slow4.x");
  run_for(100);
  evdns_getaddrinfo_cancel(request);
  printf("cancelled\n");
  run_for(10000);
  start("b.x");
  evdns_base_free(dns, 1);
  printf("freed\n");
  run_for(1000);
  make_resolver();
  start("c.x");
  evdns_base_free(dns, 0);
  run_for(1000);
  dns = evdns_base_new(base, 0);
  start("d.x");
  run_for(1000);
  end();
}

static void no_resolver(void) {
  use_servers(0);
  printf("%d\n", start("1.2.3.4") != NULL);
}

// ---- bufferevents

static void on_event(struct bufferevent* bev, short what, void* arg) {
  printf("%6ld %s: event %#x, lookup error %d, enabled %#x\n", elapsed(), (const char*)arg, what,
         bufferevent_socket_get_dns_error(bev), bufferevent_get_enabled(bev));
}

static void on_connection(struct evconnlistener* listener, evutil_socket_t fd,
                          struct sockaddr* address, int size, void* arg) {
  (void)listener, (void)address, (void)size, (void)arg;
  printf("%6ld a connection\n", elapsed());
  close(fd);
}

static void answer_loopback(const Query* query) {
  if (strncmp(query->lower, "here", 4) != 0) {
    answer_by_name(query);
    return;
  }
  Packet packet = reply_to(query, 0, query->type == 1);
  if (query->type == 1) put_record(&packet, 1, 60, "\177\0\0\1", 4);
  send_packet(query, &packet);
}

static void connect_to(const char* name, int family, int port) {
  struct bufferevent* bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_setcb(bev, NULL, NULL, on_event, (void*)name);
  bufferevent_enable(bev, EV_READ | EV_WRITE);
  const int result = bufferevent_socket_connect_hostname(bev, dns, family, name, port);
  printf("%s: %d, has a socket %d\n", name, result, bufferevent_getfd(bev) >= 0);
  run_for(20000);
  bufferevent_free(bev);
  run_for(10);
}

static void connected_by_name(void) {
  begin(1);
  answer = answer_loopback;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
  socklen_t size = sizeof address;
  struct evconnlistener* listener =
      evconnlistener_new_bind(base, on_connection, NULL, LEV_OPT_CLOSE_ON_FREE, 5,
                              (struct sockaddr*)&address, sizeof address);
  getsockname(evconnlistener_get_fd(listener), (struct sockaddr*)&address, &size);
  const int port = ntohs(address.sin_port);
  connect_to("here.x", AF_UNSPEC, port);
  connect_to("here4.x", AF_INET, port);
  connect_to("here6.x", AF_INET6, port);
  connect_to("127.0.0.1", AF_UNSPEC, port);
  connect_to("nx.x", AF_UNSPEC, port);
  connect_to("silent.x", AF_INET, port);
  connect_to("a.x", 99, port);
  connect_to("a.x", AF_INET, 0);
  struct bufferevent* bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_setcb(bev, NULL, NULL, on_event, "freed");
  bufferevent_socket_connect_hostname(bev, dns, AF_INET, "here.freed.x", port);
  bufferevent_free(bev);
  run_for(1000);
  evconnlistener_free(listener);
  end();
}

int main(int argc, char** argv) {
  static const Case cases[] = {
      {"hints", hints},
      {"failures", failures},
      {"all pairs of outcomes", all_pairs_of_outcomes},
      {"hosts", hosts},
      {"cancelled", cancelled},
      {"no resolver", no_resolver},
      {"connected by name", connected_by_name},
  };
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
