// Functions that programs seldom call, and no script of this directory uses: servers and clients on
// given sockets, and DNS without an evdns_base.
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/dns.h>
#include <event2/dns_compat.h>
#include <event2/dns_struct.h>
#include <event2/http.h>
#include <event2/http_compat.h>
#include <event2/http_struct.h>
#include <stdarg.h>

#include "libevent_cases.h"

enum { kTurnsMost = 2000 };

static struct event_base* base;
static int answered;

static ev_uint16_t port_of(int fd) {
  struct sockaddr_in address = {0};
  socklen_t size = sizeof address;
  getsockname(fd, (struct sockaddr*)&address, &size);
  return ntohs(address.sin_port);
}

// Returns a port that was free a moment ago. It is below the ephemeral range, which sockets of
// other tests use.
static ev_uint16_t free_port(void) {
  static unsigned turn;
  for (;;) {
    const ev_uint16_t port =
        (ev_uint16_t)(10000 + ((unsigned)getpid() * 31 + ++turn * 7919) % 20000);
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(0x7f000001)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const int refused = bind(fd, (const struct sockaddr*)&address, sizeof address);
    close(fd);
    if (!refused) return port;
  }
}

// ---- HTTP

static void on_request(struct evhttp_request* request, void* port) {
  const int expected = port ? *(const ev_uint16_t*)port : 0;
  printf("  asked for %s", evhttp_request_get_uri(request));
  if (expected) printf(", from the port %d", request->remote_port == expected);
  printf("\n");
  evhttp_send_reply(request, 200, "Fine", NULL);
}

static void on_answer(struct evhttp_request* request, void* arg) {
  (void)arg;
  printf("  answer %d\n", request ? evhttp_request_get_response_code(request) : -1);
  answered = 1;
}

static void ask(struct evhttp_connection* client) {
  struct evhttp_request* request = evhttp_request_new(on_answer, NULL);
  answered = 0;
  show("asked", evhttp_make_request(client, request, EVHTTP_REQ_GET, "/path"));
  for (int i = 0; i < kTurnsMost && !answered; i++) event_base_loop(base, EVLOOP_ONCE);
}

static void a_server_of_its_own(void) {
  base = event_init();
  const ev_uint16_t port = free_port();
  struct evhttp* server = evhttp_start("127.0.0.1", port);
  show("started", server != NULL);
  show("started twice", evhttp_start("127.0.0.1", port) != NULL);
  evhttp_set_gencb(server, on_request, NULL);
  struct evhttp_connection* client = evhttp_connection_new("127.0.0.1", port);
  show("base", evhttp_connection_get_base(client) == NULL);
  evhttp_connection_set_base(client, base);
  show("base", evhttp_connection_get_base(client) == base);
  ask(client);
  evhttp_connection_free(client);
  evhttp_free(server);
}

static void bound_sockets(void) {
  base = event_base_new();
  struct evhttp* server = evhttp_new(base);
  const ev_uint16_t port = free_port();
  show("bound", evhttp_bind_socket(server, "127.0.0.1", port));
  show("bound twice", evhttp_bind_socket(server, "127.0.0.1", port));
  evhttp_free(server);
}

static void a_client_of_the_programs(void) {
  base = event_base_new();
  struct evhttp* server = evhttp_new(base);
  const ev_uint16_t port = free_port();
  const ev_uint16_t own = free_port();
  evhttp_bind_socket(server, "127.0.0.1", port);
  evhttp_set_gencb(server, on_request, (void*)&own);
  struct bufferevent* bev = bufferevent_socket_new(base, -1, 0);
  struct evhttp_connection* client =
      evhttp_connection_base_bufferevent_new(base, NULL, bev, "127.0.0.1", port);
  show("its bufferevent", evhttp_connection_get_bufferevent(client) == bev);
  evhttp_connection_set_local_address(client, "127.0.0.1");
  evhttp_connection_set_local_port(client, own);
  ask(client);
  ask(client);
  evhttp_connection_free(client);
  evhttp_free(server);
}

// ---- DNS

static void on_dns_log(int is_warning, const char* message) {
  (void)is_warning;
  (void)message;
}

static void on_question(struct evdns_server_request* request, void* arg) {
  const ev_uint32_t address = htonl(0xc0000207);
  (void)arg;
  printf("  question of %zu\n", strlen(request->questions[0]->name));  // In any letters.
  evdns_server_request_add_a_reply(request, request->questions[0]->name, 1, &address, 60);
  evdns_server_request_respond(request, 0);
}

static void on_found(int result, char type, int count, int ttl, void* addresses, void* arg) {
  (void)arg;
  printf("  found %d, type %d, %d, %d\n", result, type, count, ttl);
  if (count == 1) printf("  %#x\n", ntohl(*(const ev_uint32_t*)addresses));
  answered = 1;
}

static ev_uint16_t an_id(void) { return 7; }
static void some_bytes(char* bytes, size_t size) { memset(bytes, 7, size); }

static void names_without_a_base(void) {
  base = event_init();
  evdns_set_log_fn(on_dns_log);
  evdns_set_transaction_id_fn(an_id);
  evdns_set_random_bytes_fn(some_bytes);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  bind(fd, (struct sockaddr*)&address, sizeof address);
  struct evdns_server_port* port = evdns_add_server_port(fd, 0, on_question, NULL);
  show("port", port != NULL);
  show("init", evdns_init());
  show("cleared", evdns_clear_nameservers_and_suspend());
  show("servers", evdns_count_nameservers());
  show("resumed", evdns_resume());
  char text[32];
  snprintf(text, sizeof text, "127.0.0.1:%d", port_of(fd));
  show("added", evdns_nameserver_ip_add(text));
  show("servers", evdns_count_nameservers());
  answered = 0;
  show("asked", evdns_resolve_ipv4("a.example", DNS_QUERY_NO_SEARCH, on_found, NULL));
  for (int i = 0; i < kTurnsMost && !answered; i++) event_base_loop(base, EVLOOP_ONCE);
  evdns_close_server_port(port);
  evdns_shutdown(0);
}

// ---- buffers

static int print_to(struct evbuffer* buffer, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = evbuffer_add_vprintf(buffer, format, arguments);
  va_end(arguments);
  return length;
}

static void printed_text(void) {
  struct evbuffer* buffer = evbuffer_new();
  show("nothing", print_to(buffer, "%s", ""));
  show("a number", print_to(buffer, "%d,", 12));
  show("much", print_to(buffer, "%*d", 5000, 7));
  show("length", (long)evbuffer_get_length(buffer));
  evbuffer_freeze(buffer, 0);
  show("frozen", print_to(buffer, "%d", 12));
  evbuffer_free(buffer);
}

static void a_group_that_pays(void) {
  const struct timeval tick = {1000, 0};
  base = event_base_new();
  struct ev_token_bucket_cfg* rates = ev_token_bucket_cfg_new(100, 200, 300, 400, &tick);
  struct bufferevent_rate_limit_group* group = bufferevent_rate_limit_group_new(base, rates);
  show("limit", bufferevent_rate_limit_group_get_write_limit(group));
  show("paid", bufferevent_rate_limit_group_decrement_write(group, 250));
  show("limit", bufferevent_rate_limit_group_get_write_limit(group));
  show("paid", bufferevent_rate_limit_group_decrement_write(group, 100));
  show("limit", bufferevent_rate_limit_group_get_write_limit(group));
  show("reading", bufferevent_rate_limit_group_get_read_limit(group));
  show("given back", bufferevent_rate_limit_group_decrement_write(group, -500));
  show("limit", bufferevent_rate_limit_group_get_write_limit(group));
  bufferevent_rate_limit_group_free(group);
  ev_token_bucket_cfg_free(rates);
  event_base_free(base);
}

int main(int argc, char** argv) {
  static const Case kCases[] = {
      {"a server of its own", a_server_of_its_own},
      {"bound sockets", bound_sockets},
      {"a client of the program's", a_client_of_the_programs},
      {"names without a base", names_without_a_base},
      {"printed text", printed_text},
      {"a group that pays", a_group_that_pays},
  };
  event_set_log_callback(NULL);
  return run_cases(argc, argv, kCases, sizeof kCases / sizeof *kCases);
}
