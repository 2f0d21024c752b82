#pragma once

// Bufferevents of each kind, brought into a state, then given another descriptor or connected.

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/bufferevent_struct.h>
#include <event2/event.h>
#include <netinet/in.h>

#include "openssl_ends.h"

typedef enum Kind { kSocket, kFilter, kTls, kTlsFilter, kPair } Kind;
typedef enum State { kNone, kWithOne, kShaking, kOpen, kEnded } State;
enum { kKinds = kPair + 1 };
enum { kStates = kEnded + 1 };
enum { kRuns = 2 * (int)kKinds * (int)kStates };

static const char* const kind_names[kKinds] = {"socket", "filter", "TLS", "TLS filter", "pair"};
static const char* const state_names[kStates] = {"none", "with one", "shaking", "open", "ended"};

static struct event_base* base;
static SSL_CTX* context;
static Kind kind;
static int ends[2];
static struct bufferevent* below;
static struct bufferevent* bev;

static int is_tls(void) { return kind == kTls || kind == kTlsFilter; }

static void turns(int count) {
  for (int i = 0; i < count; i++) event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

static void on_read(struct bufferevent* of, void* arg) {
  (void)arg;
  printf("  reads %zu\n", evbuffer_get_length(of->input));
}

static void on_event(struct bufferevent* of, short what, void* arg) {
  (void)of;
  (void)arg;
  printf("  event %#x\n", what);
}

static const char* name_of_fd(int fd) {
  return fd < 0 ? "none" : fd == ends[0] ? "the first" : "another";
}

static void show_state(const char* when) {
  printf("%s: enabled %#x, %zu in, on %s", when, bufferevent_get_enabled(bev),
         evbuffer_get_length(bev->input), name_of_fd(bufferevent_getfd(bev)));
  if (below) printf(", below %s", name_of_fd(bufferevent_getfd(below)));
  printf("\n");
}

static void make(int fd, int role) {
  const enum bufferevent_ssl_state state =
      role == kServes ? BUFFEREVENT_SSL_ACCEPTING : BUFFEREVENT_SSL_CONNECTING;
  SSL* ssl = is_tls() ? SSL_new(context) : NULL;
  below = kind == kFilter || kind == kTlsFilter ? bufferevent_socket_new(base, fd, 0) : NULL;
  if (kind == kSocket) bev = bufferevent_socket_new(base, fd, 0);
  if (kind == kFilter) bev = bufferevent_filter_new(below, NULL, NULL, 0, NULL, NULL);
  if (kind == kTls) bev = bufferevent_openssl_socket_new(base, fd, ssl, state, 0);
  if (kind == kTlsFilter) bev = bufferevent_openssl_filter_new(base, below, ssl, state, 0);
  if (kind == kPair) {
    struct bufferevent* pair[2];
    bufferevent_pair_new(base, 0, pair);
    bev = pair[0];
  }
  bufferevent_setcb(bev, on_read, NULL, on_event, NULL);
  bufferevent_enable(bev, EV_READ | EV_WRITE);
}

// Both sides send a little.
static void talk(int fd, SSL* hand) {
  char bytes[64];
  bufferevent_write(bev, "hello", 5);
  turns(2);
  const long sent = hand ? SSL_write(hand, "abc", 3) : write(fd, "abc", 3);
  turns(2);
  const long got = hand ? SSL_read(hand, bytes, sizeof bytes) : read(fd, bytes, sizeof bytes);
  printf("sent %ld, got %ld\n", sent > 0 ? sent : -1, got > 0 ? got : -1);
  evbuffer_drain(bev->input, 100);
}

static SSL* shake(int fd, int role) {
  if (!is_tls()) return NULL;
  SSL* hand = hand_end(context, fd, role);
  int result = 0;
  for (int i = 0; i < 6; i++) {
    turns(2);
    result = SSL_do_handshake(hand);
  }
  printf("handshake %d\n", result);
  ERR_clear_error();
  return hand;
}

static void reach(State state, int role) {
  make(state == kNone ? -1 : ends[0], role);
  if (state == kShaking) turns(2);
  if (state < kOpen) return;
  talk(ends[1], shake(ends[1], !role));
  if (state < kEnded) return;
  shutdown(ends[1], SHUT_WR);
  turns(3);
}

static void begin(Kind chosen, State state, int role) {
  kind = chosen;
  printf("%s, %s, %s\n", kind_names[kind], state_names[state],
         role == kServes ? "serves" : "connects");
  base = event_base_new();
  context = make_context(TLS1_3_VERSION, 0);
  open_ends(ends);
  reach(state, role);
}

// ---- steps

static int others[2];

static void set_none(void) {
  printf("set none: %d\n", bufferevent_setfd(bev, -1));
  show_state("after none");
  turns(2);
}

static void set_other(int role) {
  open_ends(others);
  printf("set another: %d\n", bufferevent_setfd(bev, others[0]));
  show_state("after another");
  talk(others[1], shake(others[1], !role));
  show_state("at last");
}

static int listener(struct sockaddr_in* address, int listens) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  socklen_t size = sizeof *address;
  *address = (struct sockaddr_in){.sin_family = AF_INET};
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bind(fd, (struct sockaddr*)address, size);
  if (listens) listen(fd, 5);
  getsockname(fd, (struct sockaddr*)address, &size);
  return fd;
}

enum { kByAddress, kByName, kRefused, kRefusedByName, kNoFamily, kNoAddress, kHows };
static const char* const how_names[kHows] = {"by address",      "by name",   "refused",
                                             "refused by name", "no family", "no address"};

static int connect_by(int how, const struct sockaddr_in* address) {
  const int port = ntohs(address->sin_port);
  struct sockaddr none = {.sa_family = 99};
  switch (how) {
    case kByName:
    case kRefusedByName:
      return bufferevent_socket_connect_hostname(bev, NULL, AF_INET, "127.0.0.1", port);
    case kNoFamily:
      return bufferevent_socket_connect(bev, &none, sizeof none);
    case kNoAddress:
      return bufferevent_socket_connect(bev, NULL, 0);
    default:
      return bufferevent_socket_connect(bev, (const struct sockaddr*)address, sizeof *address);
  }
}

static void connect_once(int how) {
  struct sockaddr_in address;
  const int fd = listener(&address, how == kByAddress || how == kByName);
  printf("connect %s: %d\n", how_names[how], connect_by(how, &address));
  turns(3);
  const int peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK);
  printf("accepted %d\n", peer >= 0);
  if (peer >= 0) talk(peer, shake(peer, kServes));
  show_state("at last");
  close(fd);
}
