#pragma once

// Random scripts over a server of evhttp: raw clients in the same process send requests, whole and
// in pieces, right and wrong; the target of each selects the action of the server's callback.
//
// Less than 4,096 bytes are sent at once: the original reads no more. Left out are requests that
// the drop-in rejects, or handles differently, on purpose (docs/drop-in.md), above all bodies whose
// length is ambiguous, bytes after a response without a body, folded trailers, and requests that
// are queued when their client ends.
//
// The program that includes this defines prepare_server(), which changes the server if need be.

#include "libevent_http.h"

static void prepare_server(void);

enum { kClients = 3, kTextMost = 3800, kWaitMost = 12 };

typedef struct Client {
  int fd;
  int life;
  char rest[kTextMost + 400];  // The rest of a request that is sent in pieces.
  size_t rest_size;
} Client;

typedef struct Held {
  struct evhttp_request* request;
  int has_begun;
} Held;

static struct evhttp* server;
static struct sockaddr_in address;
static Client clients[kClients];
static int client_count = kClients;
static Held held;  // The request without a response yet, if any.
static int serial;
static int has_pipelined;  // A client may have pipelined requests.

// The server's bufferevents are filters. The original then spins after a timeout, calls the
// callback of a chunk several times, and sends only the first line of a response after a 100.
static int is_filtered;

// ---- the server

static void on_close(struct evhttp_connection* connection, void* arg) {
  printf("  closed %d, held %d\n", (int)(intptr_t)arg, held.request != NULL);
  // A request whose client has left belongs to the program; any other is freed with its connection.
  if (held.request && held.request->evcon == connection) held.request = NULL;
}

static void on_complete(struct evhttp_request* request, void* arg) {
  printf("  completed %d\n", (int)(intptr_t)arg);
  print_request(request);
}

static void on_chunk_sent(struct evhttp_connection* connection, void* arg) {
  static int last;
  if (is_filtered && (int)(intptr_t)arg == last) return;
  last = (int)(intptr_t)arg;
  printf("  sent %d, connection %d\n", (int)(intptr_t)arg, connection != NULL);
}

static int asks(const struct evhttp_request* request, const char* word) {
  const char* query = request->uri ? strchr(request->uri, '?') : NULL;
  return query && strstr(query, word);
}

static void prepare(struct evhttp_request* request) {
  struct evkeyvalq* headers = evhttp_request_get_output_headers(request);
  void* number = (void*)(intptr_t)++serial;
  if (asks(request, "complete")) {
    evhttp_request_set_on_complete_cb(request, on_complete, number);
  }
  evhttp_connection_set_closecb(request->evcon, on_close, number);
  if (asks(request, "length")) evhttp_add_header(headers, "Content-Length", "5");
  if (asks(request, "type")) evhttp_add_header(headers, "Content-Type", "text/x");
  if (asks(request, "end")) evhttp_add_header(headers, "Connection", "close");
  if (asks(request, "stay")) evhttp_add_header(headers, "Connection", "keep-alive");
  if (asks(request, "proxy")) evhttp_add_header(headers, "Proxy-Connection", "keep-alive");
  if (asks(request, "date")) evhttp_add_header(headers, "Date", "Thu, 01 Jan 1970 00:00:00 GMT");
  if (asks(request, "before")) evbuffer_add(request->output_buffer, "before ", 7);
}

// Returns whether the response may have a body.
static int may_send(const struct evhttp_request* request, int code) {
  return request->type != EVHTTP_REQ_HEAD && code != 204 && code != 304 && code / 100 != 1;
}

static void add_body(struct evbuffer* body, const struct evhttp_request* request, int code) {
  if (may_send(request, code)) evbuffer_add_printf(body, "answer %d", serial);
}

static int some_code(void) {
  static const int codes[] = {200, 200, 200, 201, 204, 299, 302, 304, 400, 404, 500, 503, 600};
  return codes[random_below((int)(sizeof codes / sizeof codes[0]))];
}

static const char* some_reason(void) {
  static const char* const reasons[] = {NULL, "OK", "Fine by me", ""};
  return reasons[random_below(4)];
}

static void reply(struct evhttp_request* request) {
  struct evbuffer* body = evbuffer_new();
  const int code = some_code();
  add_body(body, request, code);
  if (!may_send(request, code)) {
    evbuffer_drain(request->output_buffer, evbuffer_get_length(request->output_buffer));
  }
  printf("  reply %d\n", code);
  evhttp_send_reply(request, code, some_reason(), random_chance(90) ? body : NULL);
  evbuffer_free(body);
}

static void fail(struct evhttp_request* request) {
  if (request->type == EVHTTP_REQ_HEAD) {
    reply(request);
    return;
  }
  int code = some_code();
  if (!may_send(request, code)) code = 404;
  printf("  error %d\n", code);
  evhttp_send_error(request, code, random_chance(50) ? NULL : "For no reason");
}

static void send_piece(struct evhttp_request* request) {
  struct evbuffer* piece = evbuffer_new();
  if (random_chance(85)) evbuffer_add_printf(piece, "piece %d,", ++serial);
  const size_t size = evbuffer_get_length(piece);
  if (random_chance(50)) {
    evhttp_send_reply_chunk(request, piece);
  } else {
    evhttp_send_reply_chunk_with_cb(request, piece, on_chunk_sent, (void*)(intptr_t)serial);
  }
  printf("  piece of %zu, %zu left\n", size, evbuffer_get_length(piece));
  evbuffer_free(piece);
}

// Not to a client of 1.0 that asks to keep the connection: the original then sends a length of 0.
// Nor after a part of the body was added: it would not be in a chunk.
static int may_begin(struct evhttp_request* request) {
  if (evbuffer_get_length(request->output_buffer) != 0) return 0;
  const char* connection = evhttp_find_header(request->input_headers, "Connection");
  return request->minor == 1 || !connection ||
         evutil_ascii_strncasecmp(connection, "keep-alive", 10) != 0;
}

static void begin(struct evhttp_request* request) {
  const int code = some_code();
  printf("  begin %d\n", code);
  evhttp_send_reply_start(request, code, some_reason());
  for (int i = random_below(3); i > 0; i--) send_piece(request);
}

static void hold(struct evhttp_request* request, int has_begun) {
  if (held.request) {
    if (has_begun) {
      evhttp_send_reply_end(request);
    } else {
      reply(request);
    }
    return;
  }
  held = (Held){request, has_begun};
}

static void on_request(struct evhttp_request* request, void* arg) {
  printf("  %s\n", (const char*)arg);
  print_request(request);
  prepare(request);
  const int choice = random_below(100);
  if (choice < 40) {
    reply(request);
  } else if (choice < 50) {
    fail(request);
  } else if (choice < 65 && may_begin(request)) {
    begin(request);
    evhttp_send_reply_end(request);
  } else if (choice < 80 && may_begin(request)) {
    begin(request);
    hold(request, 1);
  } else if (choice < 94) {
    hold(request, 0);
  } else if (choice < 97 && request->type != EVHTTP_REQ_HEAD) {
    printf("  cancel\n");
    evhttp_cancel_request(request);
  } else {
    printf("  free the connection\n");
    evhttp_connection_free(request->evcon);
  }
}

// ---- the clients

static const char* pick(const char* const* texts, int count) { return texts[random_below(count)]; }
#define PICK(texts) pick(texts, (int)(sizeof(texts) / sizeof(texts)[0]))

static void add_target(char* to) {
  static const char* const paths[] = {
      "/",    "/a", "/b/c",   "/a%20b", "/%61", "//a/b", "http://h/a", "http://v.x/",
      "/a b", "*",  "/a?x#y", "a",      "/<a>", "/%zz",  "//x:y/",     "ftp://h/"};
  static const char* const words[] = {"complete", "length", "type", "end",
                                      "stay",     "proxy",  "date", "before"};
  strcat(to, random_chance(60) ? "/" : PICK(paths));
  if (!strchr(to, '?')) strcat(to, "?");
  for (int i = random_below(4); i > 0; i--) {
    strcat(to, PICK(words));
    strcat(to, ",");
  }
}

static void add_line_end(char* to) { strcat(to, random_chance(90) ? "\r\n" : "\n"); }

static void add_expectation(char* to) {
  strcat(to, is_filtered ? "Expect: y" : "Expect: 100-continue");
}

static void add_headers(char* to) {
  static const char* const lines[] = {"Host: v.x",
                                      "Host: w.y:80",
                                      "Host: other",
                                      "Connection: close",
                                      "A: b",
                                      "B:c",
                                      "C:   d  \t ",
                                      "Connection: keep-alive",
                                      "D:",
                                      "E: f\r\n g",
                                      "F: g\n\t h\r\n i",
                                      "Connection: Keep-Alive, x",
                                      NULL,  // An expectation.
                                      "Expect: x",
                                      "Proxy-Connection: keep-alive",
                                      "G: \x80\x01"};
  static const char* const wrong[] = {"no colon", " : first", "A: b\rc"};
  for (int i = random_below(5); i > 0; i--) {
    const char* line = random_chance(98) ? PICK(lines) : PICK(wrong);
    if (line) {
      strcat(to, line);
    } else {
      add_expectation(to);
    }
    add_line_end(to);
  }
}

static void add_chunks(char* to) {
  static const char* const wrong[] = {"x\r\n", "3;a=b\r\nabc\r\n", "zz", ";\r\n"};
  for (int i = random_below(4); i > 0; i--) {
    const int size = 1 + random_below(random_chance(80) ? 20 : 300);
    sprintf(to + strlen(to), random_chance(80) ? "%x" : "00%X ", (unsigned)size);
    add_line_end(to);
    for (int at = 0; at < size; at++) strcat(to, "c");
    add_line_end(to);
  }
  if (random_chance(6)) strcat(to, PICK(wrong));
  strcat(to, "0");
  add_line_end(to);
  static const char* const wrong_fields[] = {"no colon\r\n", " first\r\n", "T: u\rv\r\n",
                                             "T: u\r\nno colon\r\n"};
  const int has_field = random_chance(20);
  if (has_field) strcat(to, "T: u\r\n");
  if (random_chance(4)) {
    const char* field = PICK(wrong_fields);
    if (!has_field || *field != ' ') strcat(to, field);  // It would continue the field.
  }
  add_line_end(to);
}

static void add_body_to(char* to) {
  if (random_chance(45)) {
    strcat(to, random_chance(80) ? "Transfer-Encoding: chunked\r\n"
                                 : "Transfer-Encoding: gzip\r\nTransfer-Encoding: ,Chunked;q\r\n");
    add_line_end(to);
    add_chunks(to);
    return;
  }
  static const char* const wrong[] = {
      "Content-Length: x\r\n", "Content-Length: -1\r\n", "Content-Length: 1, 1\r\n",
      "Transfer-Encoding: chunked, x\r\n", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"};
  const int size = random_below(random_chance(80) ? 20 : 300);
  if (random_chance(4)) strcat(to, PICK(wrong));
  sprintf(to + strlen(to), "Content-Length: %d\r\n", size);
  add_line_end(to);
  for (int at = 0; at < size; at++) strcat(to, "b");
}

static void add_request(char* to) {
  static const char* const methods[] = {"GET", "GET",    "GET",   "HEAD",  "POST",
                                        "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS"};
  static const char* const wrong[] = {"\r\n",
                                      "GET\r\n",
                                      "GET /\r\n",
                                      "GET / HTTP/2.0\r\n",
                                      "get / HTTP/1.1\r\n",
                                      "X / HTTP/1.1\r\n",
                                      "GET / HTTP/1.x\r\n",
                                      "GET  / HTTP/1.1\r\n",
                                      "GET /  HTTP/1.1 \r\n",
                                      "GET / http/1.1\r\n"};
  char target[200] = "";
  if (random_chance(4)) {
    strcat(to, PICK(wrong));
    strcat(to, "\r\n");
    return;
  }
  const char* method = PICK(methods);
  add_target(target);
  sprintf(to + strlen(to), "%s %s HTTP/%s", method, target, random_chance(75) ? "1.1" : "1.0");
  add_line_end(to);
  add_headers(to);
  const int may_have_body = strcmp(method, "HEAD") != 0 && strcmp(method, "TRACE") != 0;
  if (may_have_body && random_chance(55)) {
    add_body_to(to);
    return;
  }
  add_line_end(to);
}

// ---- turns

static void pump(void) {
  int quiet = 0;
  for (int turn = 0; turn < kTurnsMost && quiet < kQuiet; turn++) {
    event_base_loop(base, EVLOOP_NONBLOCK);
    if (quiet == 1) finish_step();  // Deadlines expire while nothing else happens.
    quiet++;
    for (int i = 0; i < kClients; i++) {
      if (clients[i].fd < 0) continue;
      const int got = print_wire(i, clients[i].fd);
      if (got != 0) quiet = 0;
      if (got >= 0) continue;
      close(clients[i].fd);
      clients[i].fd = -1;
      clients[i].rest_size = 0;
    }
  }
}

static void connect_client(Client* client) {
  client->fd = socket(AF_INET, SOCK_STREAM, 0);
  send_at_once(client->fd);
  connect(client->fd, (struct sockaddr*)&address, sizeof address);
  client->life++;
  client->rest_size = 0;
}

static void send_some(Client* client) {
  const size_t size =
      random_chance(50) ? client->rest_size : 1 + (size_t)random_below((int)client->rest_size);
  printf("client %d.%d sends ", (int)(client - clients), client->life);
  print_bytes(client->rest, size);
  printf("\n");
  send_bytes(client->fd, client->rest, size);
  memmove(client->rest, client->rest + size, client->rest_size - size);
  client->rest_size -= size;
}

static void op_client(void) {
  Client* client = &clients[random_below(client_count)];
  if (client->fd < 0) connect_client(client);
  if (client->rest_size == 0) {
    char text[kTextMost * 2] = "";
    const int count = random_chance(80) ? 1 : 3;
    if (count > 1 || held.request) has_pipelined = 1;
    for (int i = 0; i < count; i++) add_request(text);
    client->rest_size = strlen(text) < kTextMost ? strlen(text) : kTextMost;
    memcpy(client->rest, text, client->rest_size);
  }
  send_some(client);
}

static void op_leave(void) {
  Client* client = &clients[random_below(client_count)];
  if (client->fd < 0) return;
  if (random_chance(50)) {
    printf("client %d leaves\n", (int)(client - clients));
    close(client->fd);
    client->fd = -1;
  } else if (!held.request || !has_pipelined) {
    printf("client %d sends no more\n", (int)(client - clients));
    shutdown(client->fd, SHUT_WR);
  }
}

static void op_held(void) {
  if (!held.request) return;
  struct evhttp_request* request = held.request;
  printf("held\n");
  print_request(request);
  if (held.has_begun) {
    if (request->evcon && random_chance(60)) {
      send_piece(request);
      return;
    }
    held.request = NULL;
    printf("  end\n");
    evhttp_send_reply_end(request);
    return;
  }
  if (random_chance(30) && may_begin(request)) {
    begin(request);
    held.has_begun = 1;
    return;
  }
  held.request = NULL;
  if (random_chance(80)) {
    reply(request);
  } else {
    fail(request);
  }
}

static void op_wait(void) {
  printf("wait\n");
  advance_steps(1 + random_below(kWaitMost));
}

static void set_up(void) {
  const int fd = open_listener(&address);
  server = evhttp_new(base);
  evhttp_accept_socket(server, fd);
  prepare_server();
  evhttp_set_gencb(server, on_request, "general");
  if (random_chance(60)) evhttp_set_cb(server, "/a", on_request, "of /a");
  if (random_chance(50)) evhttp_set_cb(server, "/a b", on_request, "of /a b");
  if (random_chance(20)) evhttp_set_gencb(server, NULL, NULL);
  if (!is_filtered && random_chance(30)) evhttp_set_timeout(server, 1);
  if (random_chance(20)) evhttp_set_max_headers_size(server, 20 + random_below(100));
  if (random_chance(30)) evhttp_set_max_body_size(server, random_below(200));
  if (random_chance(30)) evhttp_set_allowed_methods(server, (ev_uint16_t)random_below(512));
  if (random_chance(20)) evhttp_set_default_content_type(server, NULL);
  if (random_chance(50)) {
    struct evhttp* host = evhttp_new(NULL);
    evhttp_set_gencb(host, on_request, "of *.x");
    printf("host: %d\n", evhttp_add_virtual_host(server, "*.X", host));
    printf("host again: %d\n", evhttp_add_virtual_host(server, "*.z", host));
    if (random_chance(40)) printf("alias: %d\n", evhttp_add_server_alias(host, "w.y"));
    if (random_chance(20)) printf("alias: %d\n", evhttp_add_server_alias(server, "v.x"));
  }
}

static void run_script(void) {
  begin_http();
  set_up();
  has_pipelined = 0;
  for (int i = 0; i < kClients; i++) clients[i].fd = -1;
  const int steps = 10 + random_below(40);
  for (int step = 0; step < steps; step++) {
    const int choice = random_below(100);
    if (choice < 60) {
      op_client();
    } else if (choice < 85) {
      op_held();
    } else if (choice < 93) {
      if (client_count > 1) op_leave();
    } else {
      op_wait();
    }
    pump();
    virtual_advance(kApart);
  }
  evhttp_free(server);
  pump();
  if (held.request) evhttp_request_free(held.request);
  end_http();
}
