// Bufferevents on OpenSSL, case by case: cases that random scripts (openssl_script.c) do not reach.
//
// Descriptors and pending events of a handshake are not compared.
#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/bufferevent_struct.h>
#include <event2/event.h>
#include <netinet/in.h>

#include "openssl_ends.h"

static struct event_base* base;
static SSL_CTX* context;
static int ends[2];

static void show(const char* what, long value) { printf("%s: %ld\n", what, value); }

static void on_read(struct bufferevent* bev, void* arg) {
  printf("  %s reads: %zu in\n", (const char*)arg, evbuffer_get_length(bev->input));
}

static void on_write(struct bufferevent* bev, void* arg) {
  printf("  %s writes: %zu out\n", (const char*)arg, evbuffer_get_length(bev->output));
}

static void on_event(struct bufferevent* bev, short what, void* arg) {
  const int error = errno;
  printf("  %s event %#x: enabled %#x", (const char*)arg, what, bufferevent_get_enabled(bev));
  unsigned long code;
  while ((code = bufferevent_get_openssl_error(bev)) != 0) {
    printf(", %s", ERR_reason_error_string(code) ? reason_of(code) : "a code");
  }
  printf("%s%s\n", what & BEV_EVENT_ERROR ? ", " : "",
         what & BEV_EVENT_ERROR ? strerror(error) : "");
}

static void show_bev(struct bufferevent* bev) {
  printf("enabled %#x, %zu in, %zu out, open %d, priority %d, underlying %d\n",
         bufferevent_get_enabled(bev), evbuffer_get_length(bev->input),
         evbuffer_get_length(bev->output), bufferevent_getfd(bev) >= 0,
         bufferevent_get_priority(bev), bufferevent_get_underlying(bev) != NULL);
}

static void turns(int count) {
  for (int i = 0; i < count; i++) event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

static struct bufferevent* watched(struct bufferevent* bev, const char* name) {
  bufferevent_setcb(bev, on_read, on_write, on_event, (void*)(uintptr_t)name);
  return bev;
}

static struct bufferevent* on_socket(int fd, int role, int options, const char* name) {
  return watched(
      bufferevent_openssl_socket_new(
          base, fd, SSL_new(context),
          role == kServes ? BUFFEREVENT_SSL_ACCEPTING : BUFFEREVENT_SSL_CONNECTING, options),
      name);
}

static void begin(int version) {
  base = event_base_new();
  event_base_priority_init(base, 4);
  context = make_context(version, 0);
  open_ends(ends);
}

static void shake(SSL* hand) {
  for (int i = 0; i < 4; i++) {
    show_step(hand, SSL_do_handshake(hand));
    turns(2);
  }
}

// Returns a server with a complete handshake, and its peer.
static struct bufferevent* open_server(SSL** hand) {
  struct bufferevent* bev = on_socket(ends[0], kServes, BEV_OPT_CLOSE_ON_FREE, "server");
  *hand = hand_end(context, ends[1], kConnects);
  shake(*hand);
  bufferevent_enable(bev, EV_READ | EV_WRITE);
  return bev;
}

static int listener(struct sockaddr_in* address) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  socklen_t size = sizeof *address;
  *address = (struct sockaddr_in){.sin_family = AF_INET};
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bind(fd, (struct sockaddr*)address, size);
  listen(fd, 5);
  getsockname(fd, (struct sockaddr*)address, &size);
  return fd;
}

static void run_connect(void) {
  begin(TLS1_2_VERSION);
  struct sockaddr_in address;
  const int listening = listener(&address);
  const struct sockaddr* where = (struct sockaddr*)&address;
  struct bufferevent* bev = on_socket(-1, kConnects, BEV_OPT_CLOSE_ON_FREE, "client");
  show_bev(bev);
  show("enable", bufferevent_enable(bev, EV_READ | EV_WRITE));
  show("connect", bufferevent_socket_connect(bev, where, sizeof address));
  show("dns", bufferevent_socket_get_dns_error(bev));
  turns(3);
  const int accepted = accept4(listening, NULL, NULL, SOCK_NONBLOCK);
  shake(hand_end(context, accepted, kServes));
  show_bev(bev);
  close(listening);
  struct bufferevent* refused = on_socket(-1, kConnects, BEV_OPT_CLOSE_ON_FREE, "refused");
  show("connect", bufferevent_socket_connect(refused, where, sizeof address));
  turns(3);
  refused = on_socket(-1, kConnects, BEV_OPT_DEFER_CALLBACKS, "named");
  show("connect by name", bufferevent_socket_connect_hostname(refused, NULL, AF_INET, "127.0.0.1",
                                                              ntohs(address.sin_port)));
  turns(3);
  show("connect to nothing", bufferevent_socket_connect(on_socket(-1, kServes, 0, "x"), NULL, 0));
}

static void run_settings(void) {
  begin(TLS1_2_VERSION);
  struct bufferevent* bev = on_socket(-1, kServes, 0, "a");
  show("base", bufferevent_base_set(base, bev));
  show("priority", bufferevent_priority_set(bev, 1));
  show("none", bufferevent_setfd(bev, -1));
  show_bev(bev);
  show("some", bufferevent_setfd(bev, ends[0]));
  show("is", bufferevent_getfd(bev) == ends[0]);
  show_bev(bev);
  shake(hand_end(context, ends[1], kConnects));
  show("flush", bufferevent_flush(bev, EV_WRITE, BEV_FINISHED));
  show("dirty", bufferevent_openssl_get_allow_dirty_shutdown(bev));
  bufferevent_openssl_set_allow_dirty_shutdown(bev, 7);
  show("dirty", bufferevent_openssl_get_allow_dirty_shutdown(bev));
  show("none again", bufferevent_setfd(bev, -1));
  show_bev(bev);
}

static void run_open(void) {
  begin(TLS1_3_VERSION);
  SSL* one = hand_end(context, ends[0], kConnects);
  SSL* other = hand_end(context, ends[1], kServes);
  for (int i = 0; i < 4; i++) {
    SSL_do_handshake(one);
    SSL_do_handshake(other);
  }
  struct bufferevent* bev =
      watched(bufferevent_openssl_socket_new(base, ends[0], one, BUFFEREVENT_SSL_OPEN, 0), "open");
  show_bev(bev);
  bufferevent_enable(bev, EV_READ);
  show("sent", SSL_write(other, "hello", 5));
  turns(2);
  bufferevent_write(bev, "ab", 2);
  turns(2);
  hand_reads(other);
  show("its own", bufferevent_openssl_get_ssl(bev) == one);
  bufferevent_free(bev);
  turns(2);
  show("is still open", fcntl(ends[0], F_GETFD) >= 0);
  show("sent", SSL_write(other, "x", 1));
  char byte;
  show("read by hand", SSL_read(one, &byte, 1));
}

// Which descriptor is used: that of the SSL, or the argument.
static void run_descriptor(void) {
  begin(TLS1_3_VERSION);
  SSL* ssl = SSL_new(context);
  SSL_set_fd(ssl, ends[0]);
  struct bufferevent* bev =
      bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_CONNECTING, 0);
  show("is that of the SSL", bufferevent_getfd(bev) == ends[0]);
  bev = bufferevent_openssl_socket_new(base, ends[0], ssl, BUFFEREVENT_SSL_CONNECTING, 0);
  show("the same", bev != NULL);
  bev = bufferevent_openssl_socket_new(base, ends[1], ssl, BUFFEREVENT_SSL_CONNECTING, 0);
  show("another one", bev != NULL);
}

static void run_filter(void) {
  begin(TLS1_3_VERSION);
  struct bufferevent* below = bufferevent_socket_new(base, ends[0], BEV_OPT_CLOSE_ON_FREE);
  struct bufferevent* bev = watched(
      bufferevent_openssl_filter_new(base, below, SSL_new(context), BUFFEREVENT_SSL_CONNECTING, 0),
      "filter");
  show("descriptor", bufferevent_getfd(bev) == ends[0]);
  show("underlying", bufferevent_get_underlying(bev) == below);
  show("base", bufferevent_base_set(base, bev));
  turns(1);
  shake(hand_end(context, ends[1], kServes));
  bufferevent_free(bev);
  turns(1);
  show("is still open", fcntl(ends[0], F_GETFD) >= 0);
  bufferevent_data_cb callback;
  bufferevent_getcb(below, &callback, NULL, NULL, NULL);
  show("is called by nobody", callback == NULL);
  show("enabled", bufferevent_get_enabled(below));
}

static void change_buffers(struct bufferevent* bev) {
  show("add to input", evbuffer_add(bev->input, "abc", 3));
  show("drain input", evbuffer_drain(bev->input, 3));
  show("prepend to output", evbuffer_prepend(bev->output, "abc", 3));
  show("drain output", evbuffer_drain(bev->output, 3));
  show("left", (long)evbuffer_get_length(bev->output));
}

// The program may remove bytes from the output again.
static void run_buffers(void) {
  for (int is_filter = 0; is_filter < 2; is_filter++) {
    begin(TLS1_3_VERSION);
    struct bufferevent* below = is_filter ? bufferevent_socket_new(base, ends[0], 0) : NULL;
    struct bufferevent* bev =
        is_filter ? watched(bufferevent_openssl_filter_new(base, below, SSL_new(context),
                                                           BUFFEREVENT_SSL_ACCEPTING, 0),
                            "filter")
                  : on_socket(ends[0], kServes, 0, "socket");
    change_buffers(bev);
    SSL* hand = hand_end(context, ends[1], kConnects);
    shake(hand);
    change_buffers(bev);
    bufferevent_disable(bev, EV_WRITE);
    bufferevent_write(bev, "taken back", 10);
    show("waits", event_pending(&bev->ev_write, EV_WRITE, NULL));
    turns(2);
    show("waits", event_pending(&bev->ev_write, EV_WRITE, NULL));
    show("drain output", evbuffer_drain(bev->output, 10));
    bufferevent_write(bev, "sent", 4);
    bufferevent_enable(bev, EV_WRITE);
    turns(2);
    hand_reads(hand);
  }
}

static void run_rates(void) {
  begin(TLS1_3_VERSION);
  const struct timeval tick = {3600, 0};
  struct ev_token_bucket_cfg* rates = ev_token_bucket_cfg_new(2000, 4000, 2000, 4000, &tick);
  struct bufferevent_rate_limit_group* group = bufferevent_rate_limit_group_new(base, rates);
  struct bufferevent* bev = on_socket(ends[0], kServes, 0, "limited");
  show("set", bufferevent_set_rate_limit(bev, rates));
  show("join", bufferevent_add_to_rate_limit_group(bev, group));
  SSL* hand = hand_end(context, ends[1], kConnects);
  shake(hand);
  show("read", bufferevent_get_read_limit(bev));
  show("write", bufferevent_get_write_limit(bev));
  bufferevent_enable(bev, EV_READ | EV_WRITE);
  SSL_write(hand, "0123456789", 10);
  turns(3);
  show("read", bufferevent_get_read_limit(bev));
  bufferevent_write(bev, "0123456789", 10);
  turns(3);
  show("write", bufferevent_get_write_limit(bev));
  show("of the group", bufferevent_rate_limit_group_get_write_limit(group));
  bufferevent_decrement_read_limit(bev, 5000);
  SSL_write(hand, "0123456789", 10);
  turns(3);
  bufferevent_decrement_read_limit(bev, -5000);
  turns(3);
}

static void run_dirty(void) {
  for (int allow = 0; allow < 2; allow++) {
    for (int unread = 0; unread < 2; unread++) {
      begin(TLS1_3_VERSION);
      SSL* hand;
      struct bufferevent* bev = open_server(&hand);
      bufferevent_openssl_set_allow_dirty_shutdown(bev, allow);
      if (unread) bufferevent_write(bev, "unread", 6);
      turns(2);
      printf("allowed %d, unread %d\n", allow, unread);
      close(ends[1]);
      turns(3);
    }
  }
}

static void run_other_kinds(void) {
  begin(TLS1_3_VERSION);
  struct bufferevent* plain = bufferevent_socket_new(base, ends[0], 0);
  show("ssl", bufferevent_openssl_get_ssl(plain) != NULL);
  show("dirty", bufferevent_openssl_get_allow_dirty_shutdown(plain));
  bufferevent_openssl_set_allow_dirty_shutdown(plain, 1);
  show("renegotiate", bufferevent_ssl_renegotiate(plain));
  show("error", (long)bufferevent_get_openssl_error(plain));
}

static void run_peer_renegotiates(void) {
  begin(TLS1_2_VERSION);
  SSL* hand;
  struct bufferevent* bev = open_server(&hand);
  show("asked", SSL_renegotiate(hand));
  shake(hand);
  SSL_write(hand, "after", 5);
  bufferevent_write(bev, "it", 2);
  turns(3);
  hand_reads(hand);
}

// The peer asks for another handshake, and sends data instead of it. A write that waits for the
// handshake then fails, and the read event on which it failed does not read after it.
static void run_write_fails_to_be_repeated(void) {
  static const int options[] = {0, BEV_OPT_DEFER_CALLBACKS};
  for (int i = 0; i < 2; i++) {
    begin(TLS1_2_VERSION);
    struct bufferevent* bev = on_socket(ends[0], kConnects, options[i], "client");
    SSL* hand = hand_end(context, ends[1], kServes);
    shake(hand);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
    show("asked", SSL_renegotiate(hand));
    show_step(hand, SSL_do_handshake(hand));
    turns(3);
    bufferevent_write(bev, "it", 2);
    turns(3);
    show_step(hand, SSL_write(hand, "data", 4));
    turns(3);
    show_bev(bev);
  }
}

static const Case cases[] = {
    {"connect", run_connect},
    {"settings", run_settings},
    {"open", run_open},
    {"descriptor", run_descriptor},
    {"filter", run_filter},
    {"buffers", run_buffers},
    {"rates", run_rates},
    {"dirty", run_dirty},
    {"other kinds", run_other_kinds},
    {"peer renegotiates", run_peer_renegotiates},
    {"write fails to be repeated", run_write_fails_to_be_repeated},
};

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
