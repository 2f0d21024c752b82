// Clients of evhttp and their requests, with null pointers, meaningless texts and numbers out of
// range. A peer answers their requests, and both are printed.
//
// Left out are local addresses that cannot be used: the original loses the request.
// differential: --undefined
#include <event2/event_compat.h>
#include <event2/http_compat.h>

#include "arguments.h"
#include "libevent_http.h"

enum { kLong = 600 };

static struct evhttp_connection* connection;
static struct sockaddr_in address;
static int listener;
static int peer = -1;

static void show(const char* what, long value) { printf("%s: %ld\n", what, value); }

static void show_text(const char* what, const char* text) {
  printf("%s: %s\n", what, text_of(text));
}

// ---- domains

static const Value kOwnValues[] = {{"null", 0}, {"its", 1}};
static const Domain kOwn = DOMAIN_OF(kOwnValues);

static const char* const kTexts[] = {NULL,           "",          "/",   "/a b",
                                     "http://h:1/p", "127.0.0.1", "::1", "192.0.2.1"};
static const Value kTextValues[] = {{"null", 0}, {"\"\"", 1}, {"/", 2},    {"blank", 3},
                                    {"URI", 4},  {"IPv4", 5}, {"IPv6", 6}, {"another's", 7}};
static const Domain kTextDomain = DOMAIN_OF(kTextValues);
static const Domain kPaths = {kTextValues, 5};
static const Value kAddressValues[] = {{"null", 0}, {"IPv4", 5}};
static const Domain kAddresses = DOMAIN_OF(kAddressValues);

static const Value kSizeValues[] = {{"min", LONG_MIN}, {"-1", -1}, {"0", 0},
                                    {"1", 1},          {"30", 30}, {"max", LONG_MAX}};
static const Domain kSizes = DOMAIN_OF(kSizeValues);

static const Value kTypeValues[] = {{"-1", -1},   {"0", 0},        {"GET", EVHTTP_REQ_GET},
                                    {"3", 3},     {"HEAD", 4},     {"CONNECT", EVHTTP_REQ_CONNECT},
                                    {"512", 512}, {"max", INT_MAX}};
static const Domain kTypes = DOMAIN_OF(kTypeValues);

static const Value kSecondsValues[] = {{"-1", -1}, {"-2", -2},       {"0", 0},
                                       {"1", 1},   {"max", INT_MAX}, {"min", INT_MIN}};
static const Domain kSeconds = DOMAIN_OF(kSecondsValues);

static const Value kSettingValues[] = {{"family", 0}, {"retries", 1}};
static const Domain kSettings = DOMAIN_OF(kSettingValues);

static const Value kSmallValues[] = {{"0", 0}, {"1", 1}, {"2", 2}, {"3", 3}};
static const Domain kSmall = DOMAIN_OF(kSmallValues);

static const Value kPortValues[] = {{"0", 0}, {"its", 1}, {"65535", 65535}};
static const Domain kPorts = DOMAIN_OF(kPortValues);

static const struct timeval kTimes[] = {{0, 0}, {1, 0}, {-1, 0}, {0, 2000000}};
static const Value kTimeValues[] = {
    {"null", -1}, {"0", 0}, {"1s", 1}, {"-1s", 2}, {"2000000us", 3}};
static const Domain kTimeDomain = DOMAIN_OF(kTimeValues);

static const struct timeval* time_of(long value) { return value < 0 ? NULL : &kTimes[value]; }

// ---- the world

static void on_done(struct evhttp_request* request, void* argument) {
  printf("  done, argument %d\n", argument == NULL);
  if (request) print_request(request);
}

static void on_error(enum evhttp_request_error error, void* argument) {
  printf("  error %d, argument %d\n", error, argument == NULL);
}

static struct evhttp_request* new_request(void) {
  struct evhttp_request* request = evhttp_request_new(on_done, NULL);
  evhttp_request_set_error_cb(request, on_error);
  return request;
}

static void open_client(void) {
  begin_http();
  listener = open_listener(&address);
  connection = evhttp_connection_base_new(base, NULL, "127.0.0.1", ntohs(address.sin_port));
}

static struct evhttp_connection* connection_of(long value) {
  return value == 0 ? NULL : connection;
}

static void send_answer(void) {
  static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nanswer";
  send_bytes(peer, text, sizeof text - 1);
}

static void turn(void) {
  for (int i = 0; i < kQuiet; i++) event_base_loop(base, EVLOOP_NONBLOCK);
  const int fd = accept_one(listener);
  if (fd >= 0) {
    printf("  accepted\n");
    send_at_once(fd);
    peer = fd;
  }
  if (peer < 0) return;
  const int got = print_wire(0, peer);
  if (got > 0) send_answer();
  if (got < 0) peer = -1;
}

static void turns(void) {
  for (int i = 0; i < 4; i++) turn();
  advance_steps(kLong);
  for (int i = 0; i < 4; i++) turn();
}

// Sends a correct request over it.
static void close_client(void) {
  show("asked", evhttp_make_request(connection, new_request(), EVHTTP_REQ_GET, "/last"));
  turns();
  evhttp_connection_free(connection);
  turn();
  end_http();
}

// ---- connections

static void call_new(const long* at) {
  begin_http();
  listener = open_listener(&address);
  const int port = at[2] == 1 ? ntohs(address.sin_port) : (int)at[2];
  connection =
      evhttp_connection_base_new(at[0] ? base : NULL, NULL, kTexts[at[1]], (ev_uint16_t)port);
  show("connection", connection != NULL);
  if (connection == NULL) return;
  char* host = NULL;
  ev_uint16_t shown = 0;
  evhttp_connection_get_peer(connection, &host, &shown);
  show_text("host", host);
  show("port", shown == port);
  show("address", evhttp_connection_get_addr(connection) != NULL);
  show("its base", evhttp_connection_get_base(connection) == base);
  evhttp_connection_free(connection);
}

static void call_number(const long* at) {
  static void (*const kSetters[])(struct evhttp_connection*, int) = {evhttp_connection_set_family,
                                                                     evhttp_connection_set_retries};
  open_client();
  kSetters[at[2]](connection_of(at[0]), (int)at[1]);
  close_client();
}

static void call_timeout(const long* at) {
  open_client();
  evhttp_connection_set_timeout(connection_of(at[0]), (int)at[1]);
  close_client();
}

static void call_flags(const long* at) {
  open_client();
  show("set", evhttp_connection_set_flags(connection_of(at[0]), (int)at[1]));
  close_client();
}

static void call_size(const long* at) {
  open_client();
  (at[2] ? evhttp_connection_set_max_headers_size : evhttp_connection_set_max_body_size)(
      connection_of(at[0]), at[1]);
  close_client();
}

static void call_time(const long* at) {
  open_client();
  (at[2] ? evhttp_connection_set_timeout_tv : evhttp_connection_set_initial_retry_tv)(
      connection_of(at[0]), time_of(at[1]));
  close_client();
}

static void call_local(const long* at) {
  open_client();
  evhttp_connection_set_local_address(connection_of(at[0]), kTexts[at[1]]);
  close_client();
}

static void call_null(const long* at) {
  open_client();
  switch (at[0]) {
    case 0:
      evhttp_connection_set_closecb(connection, NULL, NULL);
      break;
    case 1:
      evhttp_connection_get_peer(connection, NULL, NULL);
      break;
    case 2:
      show("server", evhttp_connection_get_server(connection) != NULL);
      break;
    case 3:
      evhttp_connection_free(NULL);
      break;
    default:
      evhttp_connection_free_on_completion(NULL);
  }
  close_client();
}

// ---- made in other ways

// A connection of the current base.
static void call_old_new(const long* at) {
  begin_http();
  if (at[0]) {
    event_base_free(base);
    base = event_init();
  }
  listener = open_listener(&address);
  const int port = at[2] == 1 ? ntohs(address.sin_port) : (int)at[2];
  connection = evhttp_connection_new(kTexts[at[1]], (ev_uint16_t)port);
  show("connection", connection != NULL);
  if (connection == NULL) return;
  show("its base", evhttp_connection_get_base(connection) == base);
  if (at[0] && at[1] == 5 && at[2] == 1) {
    close_client();
  } else {
    evhttp_connection_free(connection);
  }
}

static struct bufferevent* bufferevent_of(long kind) {
  if (kind == 0) return NULL;
  if (kind == 3) {
    struct bufferevent* ends[2];
    bufferevent_pair_new(base, 0, ends);
    return ends[0];
  }
  const int fd = kind == 2 ? socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0) : -1;
  return bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
}

static void call_new_on(const long* at) {
  begin_http();
  listener = open_listener(&address);
  struct bufferevent* bev = bufferevent_of(at[1]);
  connection = evhttp_connection_base_bufferevent_new(at[0] ? base : NULL, NULL, bev, kTexts[at[2]],
                                                      ntohs(address.sin_port));
  show("connection", connection != NULL);
  if (connection == NULL) return;
  show("its own", bev == NULL || evhttp_connection_get_bufferevent(connection) == bev);
  if (at[0] && at[2] == 5 && at[1] < 2) {
    close_client();
  } else {
    evhttp_connection_free(connection);
  }
}

static void call_set_base(const long* at) {
  begin_http();
  listener = open_listener(&address);
  struct event_base* own = at[2] ? base : NULL;
  connection = evhttp_connection_base_new(own, NULL, "127.0.0.1", ntohs(address.sin_port));
  struct event_base* other = at[1] == 2 ? event_base_new() : at[1] == 1 ? base : NULL;
  evhttp_connection_set_base(connection_of(at[0]), other);
  show("its base", evhttp_connection_get_base(connection) == base);
  if (at[2] == 0 && (at[0] == 0 || at[1] == 0)) return;
  close_client();
}

static void call_local_port(const long* at) {
  open_client();
  evhttp_connection_set_local_port(connection_of(at[0]), 0);
  close_client();
}

static void call_get_bufferevent(const long* at) {
  open_client();
  show("bufferevent", evhttp_connection_get_bufferevent(connection_of(at[0])) != NULL);
  close_client();
}

// ---- requests

static void on_chunk(struct evhttp_request* request, void* argument) {
  printf("  chunk, %zu bytes, argument %d\n",
         evbuffer_get_length(evhttp_request_get_input_buffer(request)), argument == NULL);
}

static void on_complete(struct evhttp_request* request, void* argument) {
  printf("  complete %d, argument %d\n", request != NULL, argument == NULL);
}

static int header_result;

static int on_header(struct evhttp_request* request, void* argument) {
  printf("  header, code %d, argument %d\n", evhttp_request_get_response_code(request),
         argument == NULL);
  return header_result;
}

static void call_callbacks(const long* at) {
  open_client();
  struct evhttp_request* mine = new_request();
  struct evhttp_request* request = at[0] ? mine : NULL;
  header_result = at[2] == 2 ? -1 : 0;
  if (at[1] == 0) evhttp_request_set_chunked_cb(request, at[2] ? on_chunk : NULL);
  if (at[1] == 1) evhttp_request_set_header_cb(request, at[2] ? on_header : NULL);
  if (at[1] == 2) evhttp_request_set_error_cb(request, at[2] ? on_error : NULL);
  if (at[1] == 3) evhttp_request_set_on_complete_cb(request, at[2] ? on_complete : NULL, NULL);
  show("asked", evhttp_make_request(connection, mine, EVHTTP_REQ_GET, "/"));
  turns();
  close_client();
}

static void call_buffers(const long* at) {
  open_client();
  struct evhttp_request* mine = new_request();
  struct evhttp_request* request = at[0] ? mine : NULL;
  if (at[1] == 0) show("headers", evhttp_request_get_input_headers(request) != NULL);
  if (at[1] == 1) show("headers", evhttp_request_get_output_headers(request) != NULL);
  if (at[1] == 2) show("buffer", evhttp_request_get_input_buffer(request) != NULL);
  if (at[1] == 3) {
    struct evbuffer* body = evhttp_request_get_output_buffer(request);
    show("added", evbuffer_add(body, "body", 4));
    show("asked", evhttp_make_request(connection, mine, EVHTTP_REQ_POST, "/"));
    turns();
  }
  close_client();
}

static void call_make(const long* at) {
  open_client();
  show("asked", evhttp_make_request(connection_of(at[0]), at[1] ? new_request() : NULL,
                                    (enum evhttp_cmd_type)at[2], kTexts[at[3]]));
  turns();
  close_client();
}

static void call_without_callback(const long* at) {
  open_client();
  struct evhttp_request* request = evhttp_request_new(NULL, NULL);
  if (at[0]) evhttp_request_own(request);
  show("asked", evhttp_make_request(connection, request, EVHTTP_REQ_GET, "/"));
  turns();
  if (at[0]) evhttp_request_free(request);
  close_client();
}

static void call_end(const long* at) {
  open_client();
  struct evhttp_request* request = at[0] ? new_request() : NULL;
  if (at[1] == 0) evhttp_request_free(request);
  if (at[1] == 1) evhttp_cancel_request(request);
  close_client();
}

static void call_get(const long* at) {
  open_client();
  struct evhttp_request* request = at[0] ? new_request() : NULL;
  switch (at[1]) {
    case 0:
      show_text("URI", evhttp_request_get_uri(request));
      break;
    case 1:
      show("parsed", evhttp_request_get_evhttp_uri(request) != NULL);
      break;
    case 2:
      show_text("host", evhttp_request_get_host(request));
      break;
    case 3:
      show("type", evhttp_request_get_command(request));
      break;
    case 7:
      show("code", evhttp_request_get_response_code(request));
      show_text("line", evhttp_request_get_response_code_line(request));
      break;
    case 8:
      show("connection", evhttp_request_get_connection(request) != NULL);
      break;
    case 255:
      show("owned", evhttp_request_is_owned(request));
      break;
    default:
      show("input", evhttp_request_get_input_buffer(request) != NULL);
      show("output", evhttp_request_get_output_headers(request) != NULL);
  }
  if (request) evhttp_request_free(request);
  close_client();
}

int main(int argc, char** argv) {
  static const Call kCalls[] = {
      {"evhttp_connection_base_new", call_new, {&kOwn, &kTextDomain, &kPorts}},
      {"evhttp_connection_set_number", call_number, {&kOwn, &kNumbers, &kSettings}},
      {"evhttp_connection_set_timeout", call_timeout, {&kOwn, &kSeconds}},
      {"evhttp_connection_set_flags", call_flags, {&kOwn, &kNumbers}},
      {"evhttp_connection_set_max_size", call_size, {&kOwn, &kSizes, &kBooleans}},
      {"evhttp_connection_set_time", call_time, {&kOwn, &kTimeDomain, &kBooleans}},
      {"evhttp_connection_set_local_address", call_local, {&kOwn, &kAddresses}},
      {"evhttp_connection, null", call_null, {&kNumbers}},
      {"evhttp_connection_new", call_old_new, {&kBooleans, &kTextDomain, &kPorts}},
      {"evhttp_connection_base_bufferevent_new", call_new_on, {&kOwn, &kSmall, &kTextDomain}},
      {"evhttp_connection_set_base", call_set_base, {&kOwn, &kSmall, &kBooleans}},
      {"evhttp_connection_set_local_port", call_local_port, {&kOwn}},
      {"evhttp_connection_get_bufferevent", call_get_bufferevent, {&kOwn}},
      {"evhttp_request_set_chunked_cb and others", call_callbacks, {&kOwn, &kSmall, &kSmall}},
      {"evhttp_request_get_output_buffer", call_buffers, {&kOwn, &kSmall}},
      {"evhttp_make_request", call_make, {&kOwn, &kOwn, &kTypes, &kPaths}},
      {"evhttp_request_new, no callback", call_without_callback, {&kBooleans}},
      {"evhttp_request_free", call_end, {&kOwn, &kBooleans}},
      {"evhttp_request_get", call_get, {&kOwn, &kNumbers}},
  };
  return run_calls(argc, argv, kCalls, sizeof kCalls / sizeof *kCalls);
}
