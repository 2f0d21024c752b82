// Servers of evhttp, and their responses, with null pointers, invalid codes and numbers out of
// range. One request follows the call, and its response is printed.
//
// Left out are bodies where none is allowed (1xx, 204, 304), which the original sends.
// differential: --undefined
#include <event2/event_compat.h>
#include <event2/http_compat.h>

#include "arguments.h"
#include "libevent_http.h"

enum { kLong = 100 };

static struct evhttp* server;
static struct sockaddr_in address;
static int listener;
static int client = -1;
static const long* answer_with;  // The arguments of the response.

static void show(const char* what, long value) { printf("%s: %ld\n", what, value); }

// ---- domains

static const char* const kTexts[] = {NULL, "", "/", "/a", "v.x", "*.x", "a\r\nb"};
static const Value kTextValues[] = {{"null", 0}, {"\"\"", 1},    {"/", 2},        {"/a", 3},
                                    {"v.x", 4},  {"pattern", 5}, {"two lines", 6}};
static const Domain kTextDomain = DOMAIN_OF(kTextValues);
static const Domain kFewTexts = {kTextValues, 4};

static const Value kSizeValues[] = {{"min", LONG_MIN}, {"-1", -1}, {"0", 0},
                                    {"1", 1},          {"60", 60}, {"max", LONG_MAX}};
static const Domain kSizes = DOMAIN_OF(kSizeValues);

static const Value kServerValues[] = {{"null", 0}, {"its", 1}};
static const Domain kServers = DOMAIN_OF(kServerValues);

static const Value kHostValues[] = {{"null", 0}, {"another", 1}, {"itself", 2}, {"of another", 3}};
static const Domain kHosts = DOMAIN_OF(kHostValues);

static const char* const kAddresses[] = {NULL, "", "127.0.0.1", "::1", "192.0.2.1"};
static const Value kAddressValues[] = {
    {"null", 0}, {"\"\"", 1}, {"IPv4", 2}, {"IPv6", 3}, {"another's", 4}};
static const Domain kAddressDomain = DOMAIN_OF(kAddressValues);

static const Value kSecondsValues[] = {{"-1", -1}, {"-2", -2},       {"0", 0},
                                       {"1", 1},   {"max", INT_MAX}, {"min", INT_MIN}};
static const Domain kSeconds = DOMAIN_OF(kSecondsValues);

static const Value kFdValues[] = {{"its", 0}, {"-1", -1}, {"closed", 400}, {"min", INT_MIN}};
static const Domain kFds = DOMAIN_OF(kFdValues);

static const Value kCodeValues[] = {
    {"min", INT_MIN}, {"-1", -1},   {"0", 0},       {"1", 1},         {"99", 99},
    {"100", 100},     {"200", 200}, {"204", 204},   {"304", 304},     {"404", 404},
    {"599", 599},     {"600", 600}, {"1000", 1000}, {"12345", 12345}, {"max", INT_MAX}};
static const Domain kCodes = DOMAIN_OF(kCodeValues);

static const Value kBodyValues[] = {{"null", 0}, {"empty", 1}, {"full", 2}};
static const Domain kBodies = DOMAIN_OF(kBodyValues);

static struct evbuffer* body_of(long value) {
  if (value == 0) return NULL;
  struct evbuffer* body = evbuffer_new();
  if (value == 2) evbuffer_add_printf(body, "body");
  return body;
}

static const struct timeval kTimes[] = {{0, 0}, {1, 0}, {-1, 0}, {0, 2000000}};
static const Value kTimeValues[] = {
    {"null", -1}, {"0", 0}, {"1s", 1}, {"-1s", 2}, {"2000000us", 3}};
static const Domain kTimeDomain = DOMAIN_OF(kTimeValues);

static const struct timeval* time_of(long value) { return value < 0 ? NULL : &kTimes[value]; }

// ---- the world

static void on_request(struct evhttp_request* request, void* argument) {
  printf("  %s\n", (const char*)argument);
  struct evbuffer* body = body_of(2);
  evhttp_send_reply(request, 200, "Fine", body);
  evbuffer_free(body);
}

static void open_server(void) {
  begin_http();
  listener = open_listener(&address);
  server = evhttp_new(base);
  evhttp_accept_socket(server, listener);
  evhttp_set_gencb(server, on_request, "general");
}

static void turn(void) {
  for (int i = 0; i < kQuiet; i++) event_base_loop(base, EVLOOP_NONBLOCK);
  if (client >= 0 && print_wire(0, client) < 0) client = -1;
}

static void ask(void) {
  static const char text[] =
      "POST /a HTTP/1.1\r\nHost: v.x\r\nContent-Length: 4\r\n\r\nbodyGET / HTTP/1.0\r\n\r\n";
  client = socket(AF_INET, SOCK_STREAM, 0);
  send_at_once(client);
  connect(client, (struct sockaddr*)&address, sizeof address);
  turn();
  if (client >= 0) send_bytes(client, text, sizeof text - 1);
  for (int i = 0; i < 3; i++) turn();
  advance_steps(kLong);
  for (int i = 0; i < 3; i++) turn();
}

static void close_server(void) {
  ask();
  evhttp_free(server);
  turn();
  end_http();
}

static struct evhttp* server_of(long value) { return value == 0 ? NULL : server; }

// ---- settings

static void call_size(const long* at) {
  open_server();
  (at[2] ? evhttp_set_max_headers_size : evhttp_set_max_body_size)(server_of(at[0]), at[1]);
  close_server();
}

static void call_timeout(const long* at) {
  open_server();
  evhttp_set_timeout(server_of(at[0]), (int)at[1]);
  close_server();
}

static void call_timeout_tv(const long* at) {
  open_server();
  evhttp_set_timeout_tv(server_of(at[0]), time_of(at[1]));
  close_server();
}

static void call_methods(const long* at) {
  open_server();
  evhttp_set_allowed_methods(server_of(at[0]), (ev_uint16_t)at[1]);
  close_server();
}

static void call_flags(const long* at) {
  open_server();
  show("result", evhttp_set_flags(server_of(at[0]), (int)at[1]));
  close_server();
}

static void call_type(const long* at) {
  open_server();
  evhttp_set_default_content_type(server_of(at[0]), kTexts[at[1]]);
  close_server();
}

static void call_set_cb(const long* at) {
  open_server();
  struct evhttp* its = server_of(at[0]);
  show("set", evhttp_set_cb(its, kTexts[at[1]], at[2] ? on_request : NULL, "of a path"));
  show("again", evhttp_set_cb(its, kTexts[at[1]], on_request, "again"));
  if (at[3]) show("deleted", evhttp_del_cb(its, kTexts[at[1]]));
  close_server();
}

static void call_del_cb(const long* at) {
  open_server();
  show("deleted", evhttp_del_cb(server_of(at[0]), kTexts[at[1]]));
  close_server();
}

static void call_gencb(const long* at) {
  open_server();
  evhttp_set_gencb(server_of(at[0]), NULL, NULL);
  evhttp_set_bevcb(server_of(at[0]), NULL, NULL);
  close_server();
}

static void call_host(const long* at) {
  open_server();
  struct evhttp* host = at[1] == 0 ? NULL : at[1] == 2 ? server : evhttp_new(NULL);
  if (host && host != server) evhttp_set_gencb(host, on_request, "of the host");
  struct evhttp* other = NULL;
  if (at[1] == 3) {
    other = evhttp_new(NULL);
    evhttp_add_virtual_host(other, "other", host);
  }
  show("added", evhttp_add_virtual_host(server_of(at[0]), kTexts[at[2]], host));
  if (at[3]) show("removed", evhttp_remove_virtual_host(server_of(at[0]), host));
  close_server();
}

static void call_alias(const long* at) {
  open_server();
  show("removed", evhttp_remove_server_alias(server_of(at[0]), kTexts[at[1]]));
  show("added", evhttp_add_server_alias(server_of(at[0]), kTexts[at[1]]));
  if (at[2]) show("removed", evhttp_remove_server_alias(server_of(at[0]), kTexts[at[1]]));
  close_server();
}

// ---- sockets

static void call_bind(const long* at) {
  open_server();
  struct evhttp_bound_socket* bound =
      evhttp_bind_socket_with_handle(server_of(at[0]), kAddresses[at[1]], 0);
  show("bound", bound != NULL);
  if (bound) evhttp_del_accept_socket(server, bound);
  close_server();
}

static void call_accept(const long* at) {
  struct sockaddr_in own;
  open_server();
  const int fd = at[1] == 0 ? open_listener(&own) : (int)at[1];
  struct evhttp_bound_socket* bound = evhttp_accept_socket_with_handle(server_of(at[0]), fd);
  show("bound", bound != NULL);
  if (bound) show("its own", evhttp_bound_socket_get_fd(bound) == fd);
  close_server();
}

static void call_bound(const long* at) {
  open_server();
  switch (at[0]) {
    case 0:
      show("bound", evhttp_bind_listener(server, NULL) != NULL);
      break;
    case 1:
      evhttp_foreach_bound_socket(server, NULL, NULL);
      break;
    case 2:
      show("fd", evhttp_bound_socket_get_fd(NULL));
      break;
    case 3:
      show("listener", evhttp_bound_socket_get_listener(NULL) != NULL);
      break;
    default:
      evhttp_del_accept_socket(server, NULL);
  }
  close_server();
}

static void call_bind_socket(const long* at) {
  open_server();
  // Port 0, or one that is taken.
  const int port = at[2] ? ntohs(address.sin_port) : 0;
  show("bound", evhttp_bind_socket(server_of(at[0]), kAddresses[at[1]], (ev_uint16_t)port));
  close_server();
}

static void call_accept_socket(const long* at) {
  struct sockaddr_in own;
  open_server();
  const int fd = at[1] == 0 ? open_listener(&own) : (int)at[1];
  show("accepts", evhttp_accept_socket(server_of(at[0]), fd));
  close_server();
}

static void call_start(const long* at) {
  begin_http();
  if (at[0]) base = event_init();
  const int taken = open_listener(&address);
  server = evhttp_start(kAddresses[at[1]], at[2] ? ntohs(address.sin_port) : 0);
  show("server", server != NULL);
  close(taken);
  if (server != NULL) evhttp_free(server);
}

static void call_new(const long* at) {
  begin_http();
  server = evhttp_new(at[0] ? base : NULL);
  show("server", server != NULL);
  if (at[1]) evhttp_set_gencb(server, on_request, "general");
  if (at[2]) {
    show("bound", evhttp_bind_socket(server, "127.0.0.1", 0));
  }
  evhttp_free(server);
  end_http();
}

static void call_free(const long* at) {
  open_server();
  if (at[1]) ask();
  evhttp_free(server_of(at[0]));
  if (at[0] == 0) close_server();
}

// ---- answers

static void on_fail(struct evhttp_request* request, void* argument) {
  const long* at = argument;
  evhttp_send_error(request, (int)at[0], kTexts[at[1]]);
}

static void on_reply(struct evhttp_request* request, void* argument) {
  const long* at = argument;
  const int has_body = at[0] / 100 != 1 && at[0] != 204 && at[0] != 304;
  struct evbuffer* body = has_body ? body_of(at[2]) : NULL;
  evhttp_send_reply(request, (int)at[0], kTexts[at[1]], body);
  if (body) evbuffer_free(body);
}

static void on_pieces(struct evhttp_request* request, void* argument) {
  const long* at = argument;
  struct evbuffer* body = body_of(at[2]);
  evhttp_send_reply_start(request, (int)at[0], kTexts[at[1]]);
  evhttp_send_reply_chunk(request, body);
  if (body) evbuffer_free(body);
  evhttp_send_reply_end(request);
}

static void on_sent(struct evhttp_connection* connection, void* argument) {
  printf("  sent %d, argument %d\n", connection != NULL, argument == NULL);
}

static void on_pieces_with_callback(struct evhttp_request* request, void* argument) {
  const long* at = argument;
  struct evbuffer* body = body_of(at[1]);
  evhttp_send_reply_start(request, 200, "Fine");
  for (long i = 0; i <= at[3]; i++) {
    evhttp_send_reply_chunk_with_cb(at[0] ? request : NULL, body, at[2] ? on_sent : NULL, NULL);
  }
  if (body) evbuffer_free(body);
  evhttp_send_reply_end(request);
}

static void answer(const long* at, void (*callback)(struct evhttp_request*, void*)) {
  answer_with = at;
  open_server();
  evhttp_set_cb(server, "/a", callback, (void*)answer_with);
  close_server();
}

static void call_error(const long* at) { answer(at, on_fail); }
static void call_reply(const long* at) { answer(at, on_reply); }
static void call_pieces(const long* at) { answer(at, on_pieces); }
static void call_chunks(const long* at) { answer(at, on_pieces_with_callback); }

int main(int argc, char** argv) {
  static const Call kCalls[] = {
      {"evhttp_set_max_size", call_size, {&kServers, &kSizes, &kBooleans}},
      {"evhttp_set_timeout", call_timeout, {&kServers, &kSeconds}},
      {"evhttp_set_timeout_tv", call_timeout_tv, {&kServers, &kTimeDomain}},
      {"evhttp_set_allowed_methods", call_methods, {&kServers, &kNumbers}},
      {"evhttp_set_flags", call_flags, {&kServers, &kNumbers}},
      {"evhttp_set_default_content_type", call_type, {&kServers, &kFewTexts}},
      {"evhttp_set_cb", call_set_cb, {&kServers, &kTextDomain, &kBooleans, &kBooleans}},
      {"evhttp_del_cb", call_del_cb, {&kServers, &kTextDomain}},
      {"evhttp_set_gencb", call_gencb, {&kServers}},
      {"evhttp_add_virtual_host", call_host, {&kServers, &kHosts, &kTextDomain, &kBooleans}},
      {"evhttp_add_server_alias", call_alias, {&kServers, &kTextDomain, &kBooleans}},
      {"evhttp_bind_socket_with_handle", call_bind, {&kServers, &kAddressDomain}},
      {"evhttp_accept_socket_with_handle", call_accept, {&kServers, &kFds}},
      {"evhttp_bind_socket", call_bind_socket, {&kServers, &kAddressDomain, &kBooleans}},
      {"evhttp_accept_socket", call_accept_socket, {&kServers, &kFds}},
      {"evhttp_start", call_start, {&kBooleans, &kAddressDomain, &kBooleans}},
      {"evhttp_new", call_new, {&kBooleans, &kBooleans, &kBooleans}},
      {"evhttp_free", call_free, {&kServers, &kBooleans}},
      {"evhttp_bound_socket", call_bound, {&kNumbers}},
      {"evhttp_send_error", call_error, {&kCodes, &kTextDomain}},
      {"evhttp_send_reply", call_reply, {&kCodes, &kTextDomain, &kBodies}},
      {"evhttp_send_reply_start", call_pieces, {&kCodes, &kTextDomain, &kBodies}},
      {"evhttp_send_reply_chunk_with_cb",
       call_chunks,
       {&kServers, &kBodies, &kBooleans, &kBooleans}},
  };
  return run_calls(argc, argv, kCalls, sizeof kCalls / sizeof *kCalls);
}
