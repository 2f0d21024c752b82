#pragma once

// A random script over a client of evhttp, whose server answers by hand. The program that includes
// this defines the functions that carry the bytes.

#include "libevent_http.h"

enum { kRequests = 400, kTextMost = 3800, kWaitMost = 40, kClosesMost = 50, kRetrySteps = 20 };

typedef enum Life { kWaiting, kOver, kOwned } Life;

typedef struct Asked {
  int number;
  Life life;
  int is_head;
  struct evhttp_request* request;
} Asked;

static struct evhttp_connection* connection;
static struct sockaddr_in address;
static int listener = -1;
static int port_kept = -1;
static int peer = -1;
static int peers;
static Asked asked[kRequests];
static int count;
static int is_deep;  // Inside a callback.
static char rest[kTextMost + 1];
static size_t rest_size;

static void op_ask(void);

// The script's own: the client's end, and the server's, which is `peer`.
static struct evhttp_connection* make_connection(int port);
static int may_ask(void);
static int may_end_body(void);  // By the end of the connection.
static int may_retry(void);
static int is_plain(void);
static void peer_opens(void);
static int peer_may_send(void);
static void peer_sends(const char* bytes, size_t size);
static int peer_shows(void);  // As print_wire().
static void peer_shuts(void);
static void peer_closes(void);

static inline int is_waited_for(void) {
  for (int i = 0; i < count; i++) {
    if (asked[i].life == kWaiting) return 1;
  }
  return 0;
}

// ---- callbacks

static void on_close(struct evhttp_connection* closed, void* arg) {
  (void)arg;
  printf("  closed, its own %d\n", closed == connection);
}

static int on_header(struct evhttp_request* request, void* arg) {
  const Asked* self = arg;
  const int result = random_chance(85) ? 0 : random_below(3) - 1;
  printf("  header of %d: %d\n", self->number, result);
  print_request(request);
  return result;
}

static void on_chunk(struct evhttp_request* request, void* arg) {
  Asked* self = arg;
  printf("  chunk of %d\n", self->number);
  print_request(request);
  if (random_chance(30)) evbuffer_drain(request->input_buffer, 1);
  if (random_chance(90)) return;
  printf("  cancel\n");
  self->life = kOver;
  evhttp_cancel_request(request);
}

static void on_error(enum evhttp_request_error error, void* arg) {
  const Asked* self = arg;
  printf("  error %d of %d\n", error, self->number);
}

static void on_done(struct evhttp_request* request, void* arg) {
  Asked* self = arg;
  printf("  done %d, request %d\n", self->number, request != NULL);
  self->life = kOver;
  if (request) {
    print_request(request);
    if (random_chance(10)) {
      evhttp_request_own(request);
      self->life = kOwned;
      self->request = request;
    }
  }
  if (is_deep || count >= kRequests || !connection) return;
  is_deep = 1;
  if (random_chance(20)) op_ask();
  is_deep = 0;
}

// ---- requests

static const char* pick(const char* const* texts, int number) {
  return texts[random_below(number)];
}
#define PICK(texts) pick(texts, (int)(sizeof(texts) / sizeof(texts)[0]))

static void add_some_headers(struct evhttp_request* request) {
  static const char* const lines[][2] = {
      {"Host", "h"},
      {"Connection", "close"},
      {"Connection", "keep-alive"},
      {"A", "b"},
      {"Content-Length", "4"},
      {"Proxy-Connection", "keep-alive"},
      {"B", "folded\r\n more"},
      {"Content-Type", "text/x"},
  };
  for (int i = random_below(4); i > 0; i--) {
    const char* const* line = lines[random_below((int)(sizeof lines / sizeof lines[0]))];
    const int result = evhttp_add_header(request->output_headers, line[0], line[1]);
    printf("  add %s: %d\n", line[0], result);
  }
}

static void op_ask(void) {
  static const enum evhttp_cmd_type types[] = {
      EVHTTP_REQ_GET,  EVHTTP_REQ_GET,     EVHTTP_REQ_GET,    EVHTTP_REQ_POST,  EVHTTP_REQ_PUT,
      EVHTTP_REQ_HEAD, EVHTTP_REQ_OPTIONS, EVHTTP_REQ_DELETE, EVHTTP_REQ_TRACE, EVHTTP_REQ_PATCH};
  static const char* const targets[] = {"/", "/a?b", "http://h/x", "", "/a b"};
  if (count >= kRequests || !connection || !may_ask()) return;
  Asked* self = &asked[count];
  const enum evhttp_cmd_type type = types[random_below((int)(sizeof types / sizeof types[0]))];
  *self = (Asked){count++, kWaiting, type == EVHTTP_REQ_HEAD, NULL};
  struct evhttp_request* request = evhttp_request_new(on_done, self);
  if (random_chance(30)) evhttp_request_set_header_cb(request, on_header);
  if (random_chance(30) && !hides_input) evhttp_request_set_chunked_cb(request, on_chunk);
  if (random_chance(50)) evhttp_request_set_error_cb(request, on_error);
  const int may_have_body = type == EVHTTP_REQ_POST || type == EVHTTP_REQ_PUT;
  if (may_have_body && random_chance(70)) {
    evbuffer_add_printf(request->output_buffer, "body of %d", self->number);
    if (random_chance(30)) {
      evhttp_add_header(request->output_headers, "Expect", "100-continue");
    }
  }
  add_some_headers(request);
  if (random_chance(10)) request->major = 1;
  self->request = request;
  printf("ask %d, type %d\n", self->number, type);
  const int result = evhttp_make_request(connection, request, type, PICK(targets));
  printf("  asked: %d\n", result);
}

static void op_cancel(void) {
  if (count == 0) return;
  Asked* self = &asked[random_below(count)];
  if (self->life != kWaiting) return;
  printf("cancel %d\n", self->number);
  self->life = kOver;
  evhttp_cancel_request(self->request);
}

static void op_free_owned(void) {
  for (int i = 0; i < count; i++) {
    if (asked[i].life != kOwned) continue;
    printf("free %d\n", i);
    print_request(asked[i].request);
    evhttp_request_free(asked[i].request);
    asked[i].life = kOver;
  }
}

// ---- answers

static void add(const char* text) {
  if (strlen(rest) + strlen(text) < kTextMost) strcat(rest, text);
}

static void add_line_end(void) { add(random_chance(90) ? "\r\n" : "\n"); }

static void add_number(const char* format, int number) {
  char text[64];
  snprintf(text, sizeof text, format, number);
  add(text);
}

static void add_first_line(void) {
  static const char* const lines[] = {
      "HTTP/1.1 200 OK",     "HTTP/1.1 200 OK",        "HTTP/1.1 200 OK",      "HTTP/1.0 200 Old",
      "HTTP/1.1 404 Not it", "HTTP/1.1 204 Nothing",   "HTTP/1.1 304 No news", "HTTP/1.1 500",
      "HTTP/1.1 299 ",       "HTTP/1.0 302 Else where"};
  static const char* const wrong[] = {
      "HTTP/1.1",         "junk",          "",          "HTTP/1.1 x OK", "HTTP/2.0 200 OK",
      "HTTP/1.1  200 OK", "HTTP/1.1 0 OK", "ICY 200 OK"};
  add(random_chance(95) ? PICK(lines) : PICK(wrong));
  add_line_end();
}

static void add_chunks(void) {
  static const char* const wrong[] = {"x\r\n", "3;a=b\r\nabc\r\n"};
  add("Transfer-Encoding: chunked\r\n\r\n");
  for (int i = random_below(4); i > 0; i--) {
    const int size = 1 + random_below(30);
    add_number("%x", size);
    add_line_end();
    for (int at = 0; at < size; at++) add("c");
    add_line_end();
  }
  if (random_chance(6)) add(PICK(wrong));
  add("0");
  add_line_end();
  if (random_chance(20)) add("T: u\r\n");
  add_line_end();
}

static void add_answer(void) {
  static const char* const lines[] = {"A: b",
                                      "Connection: close",
                                      "Connection: keep-alive",
                                      "B: c\r\n d",
                                      "Connection: x",
                                      "Proxy-Connection: close",
                                      "C:",
                                      "D:e"};
  add_first_line();
  for (int i = random_below(3); i > 0; i--) {
    add(random_chance(98) ? PICK(lines) : "no colon");
    add_line_end();
  }
  const int choice = random_below(100);
  if (choice < 35) {
    add_chunks();
  } else if (choice < 85 || !may_end_body()) {
    const int size = random_below(60);
    if (random_chance(4)) add("Content-Length: x\r\n");
    add_number("Content-Length: %d\r\n\r\n", size);
    for (int at = 0; at < size; at++) add("b");
  } else {
    add_line_end();
    add("up to the end");
  }
}

static void op_answer(void) {
  if (peer < 0 || !peer_may_send()) return;
  if (rest_size == 0) {
    rest[0] = 0;
    if (random_chance(12) && is_plain()) add("HTTP/1.1 100 Continue\r\n\r\n");
    if (random_chance(90)) add_answer();
    rest_size = strlen(rest);
    if (rest_size == 0) return;
  }
  const size_t size = random_chance(60) ? rest_size : 1 + (size_t)random_below((int)rest_size);
  printf("peer sends ");
  print_bytes(rest, size);
  printf("\n");
  peer_sends(rest, size);
  memmove(rest, rest + size, rest_size - size + 1);
  rest_size -= size;
}

static void close_peer(void) {
  peer_closes();
  peer = -1;
  rest_size = 0;
}

static void op_peer_ends(void) {
  if (peer < 0) return;
  const int choice = random_below(3);
  printf("peer ends by %d\n", choice);
  if (choice == 0) {
    peer_shuts();
    return;
  }
  if (choice == 1) {
    const struct linger now = {1, 0};
    setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  close_peer();
}

static void stop_listening(void) {
  close(listener);
  listener = -1;
}

static void op_listen(void) {
  if (listener >= 0) {
    if (random_chance(60)) return;
    printf("peer does not listen\n");
    stop_listening();
    return;
  }
  printf("peer listens\n");
  listener = listen_at(&address);
}

// ---- turns

static void pump(void) {
  int quiet = 0;
  for (int turn = 0; turn < kTurnsMost && quiet < kQuiet; turn++) {
    event_base_loop(base, EVLOOP_NONBLOCK);
    if (quiet == 1) finish_step();  // Deadlines expire while nothing else happens.
    if (connection) send_at_once(bufferevent_getfd(evhttp_connection_get_bufferevent(connection)));
    quiet++;
    const int fd = listener < 0 ? -1 : accept_one(listener);
    if (fd >= 0) {
      printf("  accepted, peer %d\n", peer >= 0);
      if (peer >= 0) close_peer();
      peer = fd;
      quiet = 0;
      peers++;
      peer_opens();
    }
    if (peer < 0) continue;
    const int got = peer_shows();
    if (got != 0) quiet = 0;
    if (got < 0) close_peer();
  }
}

static void set_up(void) {
  address = any_port();
  port_kept = bind_at(&address);
  find_port(port_kept, &address);
  listener = listen_at(&address);
  connection = make_connection(ntohs(address.sin_port));
  evhttp_connection_set_closecb(connection, on_close, NULL);
  if (random_chance(40)) evhttp_connection_set_timeout(connection, 1);
  if (random_chance(20)) {
    evhttp_connection_set_max_headers_size(connection, 20 + random_below(80));
  }
  if (random_chance(30)) {
    const int most = random_below(100);
    printf("at most %d bytes\n", most);
    evhttp_connection_set_max_body_size(connection, most);
  }
  static const int flags[] = {0, EVHTTP_CON_REUSE_CONNECTED_ADDR, EVHTTP_CON_LINGERING_CLOSE, 1};
  printf("flags: %d\n", evhttp_connection_set_flags(connection, flags[random_below(4)]));
}

static void random_op(void) {
  const int choice = random_below(100);
  if (choice < 30) {
    op_ask();
  } else if (choice < 70) {
    op_answer();
  } else if (choice < 78) {
    op_peer_ends();
  } else if (choice < 84) {
    op_cancel();
  } else if (choice < 88) {
    op_listen();
  } else if (choice < 92) {
    op_free_owned();
  } else {
    printf("wait\n");
    advance_steps(1 + random_below(kWaitMost));
  }
}

// Once only, and without cancelling: after either the original does not try again, or hangs.
static void run_retries(void) {
  const struct timeval delay = {0, 210007};
  evhttp_connection_set_initial_retry_tv(connection, &delay);
  evhttp_connection_set_retries(connection, random_below(4));
  stop_listening();
  is_deep = 1;
  for (int i = 1 + random_below(3); i > 0; i--) op_ask();
  for (int step = random_below(kRetrySteps); step > 0; step--) {
    advance_steps(1);
    pump();
  }
  op_listen();
  for (int step = 0; step < kRetrySteps; step++) {
    advance_steps(1);
    pump();
  }
  evhttp_connection_free(connection);
  end_http();
}

static void run_script(void) {
  begin_http();
  set_up();
  if (random_chance(15) && may_retry()) {
    run_retries();
    return;
  }
  const int steps = 20 + random_below(60);
  for (int step = 0; step < steps; step++) {
    random_op();
    pump();
    print_connection(connection);
    virtual_advance(kApart);
  }
  // When it cannot connect, the original forgets the connection.
  if (listener < 0 || !may_ask() || !is_plain() || random_chance(50)) {
    printf("free the connection\n");
    evhttp_connection_free(connection);
    connection = NULL;
  } else {
    printf("free the connection on completion\n");
    evhttp_connection_free_on_completion(connection);
    op_ask();
    connection = NULL;  // It goes before the callback of the last request that fails.
    pump();
    for (int i = 0; i < kClosesMost && peer >= 0; i++) {
      close_peer();
      pump();
    }
  }
  pump();
  op_free_owned();
  end_http();
}
