#pragma once

// Reasons for which an evhttp client cannot connect, and requests that show how they end.

#include <arpa/inet.h>
#include <event2/bufferevent.h>
#include <event2/dns.h>
#include <event2/dns_struct.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "harness.h"

static struct event_base* base;
static struct evhttp_connection* connection;
static int asked;
static int done;
static int again;

static void on_done(struct evhttp_request* request, void* arg);

static void on_error(enum evhttp_request_error error, void* arg) {
  printf("  error %d of %s\n", error, (const char*)arg);
}

static void on_close(struct evhttp_connection* closed, void* arg) {
  (void)closed;
  (void)arg;
  printf("  closed\n");
}

static void ask(const char* name) {
  struct evhttp_request* request = evhttp_request_new(on_done, (void*)(uintptr_t)name);
  evhttp_request_set_error_cb(request, on_error);
  const int result = evhttp_make_request(connection, request, EVHTTP_REQ_GET, "/");
  printf("  ask %s: %d\n", name, result);
  if (result == 0) asked++;
}

static void on_done(struct evhttp_request* request, void* arg) {
  printf("  done %s: ", (const char*)arg);
  done++;
  if (request) {
    printf("code %d\n", evhttp_request_get_response_code(request));
  } else {
    printf("no request\n");
  }
  if (again > 0) {
    again--;
    ask("again");
  }
}

// ---- a name server that knows no name

static void on_question(struct evdns_server_request* request, void* arg) {
  (void)arg;
  evdns_server_request_respond(request, DNS_ERR_NOTEXIST);
}

static struct evdns_base* names(void) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t size = sizeof address;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bind(fd, (struct sockaddr*)&address, size);
  getsockname(fd, (struct sockaddr*)&address, &size);
  evdns_add_server_port_with_base(base, fd, 0, on_question, NULL);
  struct evdns_base* made = evdns_base_new(base, 0);
  evdns_base_nameserver_sockaddr_add(made, (struct sockaddr*)&address, size, 0);
  return made;
}

// ---- the reasons

typedef struct Reason {
  const char* name;
  const char* host;
  const char* local;  // The address to connect from, or null.
  int port;           // -1: one that is bound, and does not listen.
  int by_dns;
} Reason;

static const Reason reasons[] = {
    {"refused", "127.0.0.1", NULL, -1, 0},
    {"refused, by name server", "127.0.0.1", NULL, -1, 1},
    {"unreachable", "239.10.20.30", NULL, 80, 0},
    {"unreachable, by name server", "239.10.20.30", NULL, 80, 1},
    {"unknown name", "no.such.name.invalid", NULL, 80, 1},
    {"port 0", "127.0.0.1", NULL, 0, 0},
    {"no such local address", "127.0.0.1", "1.2.3.4", 80, 0},
    {"unreachable from there", "10.255.255.1", "127.0.0.1", 80, 0},
};

static int bound_port(void) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t size = sizeof address;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bind(fd, (struct sockaddr*)&address, size);
  getsockname(fd, (struct sockaddr*)&address, &size);
  return ntohs(address.sin_port);
}
