#pragma once

// Shared by the programs that compare evhttp: requests as the program sees them, bytes on the wire,
// and both ends of a connection in one process, on a clock that only the script moves.
//
// Not printed are the date, ports, and EVHTTP_REQ_DEFER_FREE, which is set in more callbacks here.

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_struct.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "harness.h"
#include "virtual_steps.h"

enum { kWireMost = 60000, kTurnsMost = 60, kQuiet = 4 };

// Timeouts are unique, since the order of equal ones is undefined.
enum { kApart = 101 * kMicrosecond };

static struct event_base* base;
static int hides_input;  // Hides how much unrequested input was read.
static unsigned char wire_mask;  // Filters of the program under test change each byte by it.

static inline const char* text_of(const char* text) { return text ? text : "(null)"; }

static inline void print_bytes(const char* bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    const unsigned char c = (unsigned char)bytes[i];
    if (c == '\n') {
      printf("\\n");
    } else if (c == '\r') {
      printf("\\r");
    } else if (c < 32 || c > 126) {
      printf("\\x%02x", c);
    } else {
      putchar(c);
    }
  }
}

// Replaces the date, which has a fixed length.
static inline void hide_dates(char* bytes, size_t size) {
  static const char name[] = "\r\nDate: ";
  const size_t prefix = sizeof name - 1;
  for (size_t i = 0; i + prefix + 29 <= size; i++) {
    if (memcmp(bytes + i, name, prefix) == 0) memset(bytes + i + prefix, '*', 29);
  }
}

// The original sends its own pages also in response to HEAD, after a header without a length.
static inline size_t without_pages(char* bytes, size_t size) {
  static const char end_of_head[] = "\r\n\r\n<";
  static const char end_of_page[] = "</html>\n";
  bytes[size] = 0;
  for (char* next = bytes; (next = strstr(next, end_of_head)) != NULL;) {
    next += sizeof end_of_head - 2;
    const char* head = next;
    while (head > bytes && strncmp(head, "HTTP/1", 6) != 0) head--;
    const char* length = strstr(head, "Content-Length");
    if (length && length < next) continue;
    const char* end = strcasestr(next, end_of_page);
    end = end ? end + sizeof end_of_page - 1 : bytes + size;
    memmove(next, end, (size_t)(bytes + size - end) + 1);
    size -= (size_t)(end - next);
  }
  return size;
}

static inline void print_headers(const char* what, const struct evkeyvalq* headers) {
  const struct evkeyval* header;
  for (header = headers->tqh_first; header; header = header->next.tqe_next) {
    const int is_date = strcmp(header->key, "Date") == 0;
    printf("    %s [%s] = [", what, header->key);
    print_bytes(is_date ? "*" : header->value, is_date ? 1 : strlen(header->value));
    printf("]\n");
  }
}

static inline void print_connection(struct evhttp_connection* connection) {
  struct bufferevent* bev = evhttp_connection_get_bufferevent(connection);
  char* address = NULL;
  ev_uint16_t port = 0;
  evhttp_connection_get_peer(connection, &address, &port);
  printf("    of %s, server %d, base %d: enabled %#x, timeouts %ld %ld, %zu in\n", text_of(address),
         evhttp_connection_get_server(connection) != NULL,
         evhttp_connection_get_base(connection) == base, bufferevent_get_enabled(bev),
         (long)bev->timeout_read.tv_sec, (long)bev->timeout_write.tv_sec,
         hides_input ? 0 : evbuffer_get_length(bev->input));
}

static inline void print_request(struct evhttp_request* request) {
  printf("    kind %d, type %d, %d.%d, code %d ", request->kind, request->type, request->major,
         request->minor, request->response_code);
  printf("%s, flags %#x, chunked %d, done %d\n", text_of(request->response_code_line),
         request->flags & ~(EVHTTP_REQ_DEFER_FREE | EVHTTP_REQ_NEEDS_FREE), request->chunked,
         request->userdone);
  printf("    uri %s, parsed %d, host %s, from %s\n", text_of(evhttp_request_get_uri(request)),
         evhttp_request_get_evhttp_uri(request) != NULL, text_of(evhttp_request_get_host(request)),
         text_of(request->remote_host));
  printf("    sizes %zu %zu, to read %ld, %zu out, in: ", request->headers_size, request->body_size,
         (long)request->ntoread, evbuffer_get_length(request->output_buffer));
  const size_t size = evbuffer_get_length(request->input_buffer);
  print_bytes((const char*)evbuffer_pullup(request->input_buffer, -1), size);
  printf("\n");
  print_headers("in", request->input_headers);
  print_headers("out", request->output_headers);
  if (request->evcon) {
    print_connection(request->evcon);
  } else {
    printf("    without a connection\n");
  }
}

// The script's own system calls, which the weather of the library under test must not affect.
static inline void send_bytes(int fd, const char* bytes, size_t size) {
  static char changed[kWireMost];
  for (size_t i = 0; i < size && i < sizeof changed; i++) changed[i] = bytes[i] ^ (char)wire_mask;
  syscall(SYS_sendto, fd, changed, size, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
}

static inline int accept_one(int fd) {
  return (int)syscall(SYS_accept4, fd, NULL, NULL, SOCK_NONBLOCK);
}

// `bytes` has room for one more.
static inline void print_received(int number, char* bytes, size_t size) {
  hide_dates(bytes, size);
  printf("  wire %d: ", number);
  print_bytes(bytes, without_pages(bytes, size));
  printf("\n");
}

// Prints the bytes that arrived; returns -1 at the end.
static inline int print_wire(int number, int fd) {
  static char bytes[kWireMost + 1];
  const ssize_t size = syscall(SYS_recvfrom, fd, bytes, kWireMost, MSG_DONTWAIT, NULL, NULL);
  for (ssize_t i = 0; i < size; i++) bytes[i] ^= (char)wire_mask;
  if (size > 0) {
    print_received(number, bytes, (size_t)size);
    return 1;
  }
  if (size < 0 && errno == EAGAIN) return 0;
  printf("  wire %d ends\n", number);
  return -1;
}

// Otherwise bytes wait for the other side's acknowledgement, in real time.
static inline void send_at_once(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// While this socket is open without listening, no other process gets the port.
static inline int bind_at(const struct sockaddr_in* address) {
  const int on = 1;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, (const struct sockaddr*)address, sizeof *address) != 0) perror("bind");
  return fd;
}

// Accepted connections inherit the option.
static inline int listen_at(const struct sockaddr_in* address) {
  const int fd = bind_at(address);
  send_at_once(fd);
  listen(fd, 16);
  return fd;
}

static inline struct sockaddr_in any_port(void) {
  return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
}

static inline void find_port(int fd, struct sockaddr_in* address) {
  socklen_t size = sizeof *address;
  getsockname(fd, (struct sockaddr*)address, &size);
}

static inline int open_listener(struct sockaddr_in* address) {
  *address = any_port();
  const int fd = listen_at(address);
  find_port(fd, address);
  return fd;
}

// Counts the library's memory, to detect leaks.
static long memory_blocks;

static inline void* count_malloc(size_t size) {
  memory_blocks++;
  return malloc(size);
}

static inline void* count_realloc(void* old, size_t size) {
  if (!old) memory_blocks++;
  return realloc(old, size);
}

static inline void count_free(void* memory) {
  if (memory) memory_blocks--;
  free(memory);
}

static inline void on_stuck(void) { event_base_loopbreak(base); }

// The message before the original aborts the program is part of the result.
static inline void on_log(int severity, const char* text) {
  (void)text;
  if (severity == EVENT_LOG_ERR) return;
  printf("  log of severity %d\n", severity);
}

static inline void begin_http(void) {
  signal(SIGPIPE, SIG_IGN);
  event_set_mem_functions(count_malloc, count_realloc, count_free);
  event_set_log_callback(on_log);
  use_steps(on_stuck);
  base = event_base_new();
}

static inline void end_http(void) {
  event_base_loop(base, EVLOOP_NONBLOCK);
  event_base_free(base);
  libevent_global_shutdown();
  printf("memory: %ld\n", memory_blocks);
}
