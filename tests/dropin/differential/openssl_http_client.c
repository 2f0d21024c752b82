// A client of evhttp over a bufferevent that the program made: a socket, TLS on a socket, or TLS
// through a filter. The server is evhttp over TLS, or a raw socket, in the same process.
//
// Every kind makes the same requests: one, several on one connection, several that each end their
// connection, and requests whose server refuses, ends early or sends garbage. One thing is left out
// that the original cannot do: it connects a TLS filter once only.
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <netinet/in.h>

#include "openssl_ends.h"

enum { kTurnsMost = 3000, kServedMost = 50 };

typedef enum Kind { kPlain, kTls, kTlsFilter, kKinds } Kind;

static const char* const kind_names[kKinds] = {"plain", "TLS", "TLS filter"};

static struct event_base* base;
static SSL_CTX* context;
static Kind kind;
static int defers;
static int served;
static int connections;
static int done;
static int asked;
static struct evhttp_connection* asks_again;

// ---- the server

static struct bufferevent* accept_tls(struct event_base* of, void* arg) {
  (void)arg;
  connections++;
  return bufferevent_openssl_socket_new(of, -1, SSL_new(context), BUFFEREVENT_SSL_ACCEPTING,
                                        BEV_OPT_CLOSE_ON_FREE);
}

static struct bufferevent* accept_plain(struct event_base* of, void* arg) {
  (void)arg;
  connections++;
  return bufferevent_socket_new(of, -1, BEV_OPT_CLOSE_ON_FREE);
}

static void on_request(struct evhttp_request* request, void* arg) {
  (void)arg;
  if (++served > kServedMost) _exit(3);
  printf("  served %s\n", evhttp_request_get_uri(request));
  struct evbuffer* body = evbuffer_new();
  evbuffer_add_printf(body, "answer %d", served);
  evhttp_send_reply(request, 200, "OK", body);
  evbuffer_free(body);
}

static int serve(void) {
  struct evhttp* server = evhttp_new(base);
  const int is_tls = kind == kTls || kind == kTlsFilter;
  evhttp_set_bevcb(server, is_tls ? accept_tls : accept_plain, NULL);
  evhttp_set_gencb(server, on_request, NULL);
  struct evhttp_bound_socket* bound = evhttp_bind_socket_with_handle(server, "127.0.0.1", 0);
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr*)&address, &size);
  return ntohs(address.sin_port);
}

// ---- the client

static struct bufferevent* client_bev(void) {
  SSL* ssl = kind == kTls || kind == kTlsFilter ? SSL_new(context) : NULL;
  const int options = BEV_OPT_CLOSE_ON_FREE | (defers ? BEV_OPT_DEFER_CALLBACKS : 0);
  if (kind == kTls) {
    return bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_CONNECTING, options);
  }
  struct bufferevent* below = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
  if (kind == kPlain) return below;
  return bufferevent_openssl_filter_new(base, below, ssl, BUFFEREVENT_SSL_CONNECTING, options);
}

static void ask(struct evhttp_connection* connection, const char* target, int closes);

static void on_error(enum evhttp_request_error error, void* arg) {
  printf("  error %d of %s\n", error, (const char*)arg);
}

static void on_done(struct evhttp_request* request, void* arg) {
  printf("  done %s: ", (const char*)arg);
  done++;
  if (!request) {
    printf("no request\n");
    return;
  }
  struct evbuffer* body = evhttp_request_get_input_buffer(request);
  printf("code %d, %zu bytes\n", evhttp_request_get_response_code(request),
         evbuffer_get_length(body));
  struct evhttp_connection* connection = asks_again;
  asks_again = NULL;
  if (connection) ask(connection, "/again", 0);
}

static void on_close(struct evhttp_connection* connection, void* arg) {
  (void)connection;
  (void)arg;
  printf("  closed\n");
}

static struct evhttp_connection* connect_client(int port) {
  struct evhttp_connection* connection = evhttp_connection_base_bufferevent_new(
      base, NULL, client_bev(), "127.0.0.1", (ev_uint16_t)port);
  evhttp_connection_set_closecb(connection, on_close, NULL);
  return connection;
}

static void ask(struct evhttp_connection* connection, const char* target, int closes) {
  struct evhttp_request* request = evhttp_request_new(on_done, (void*)(uintptr_t)target);
  evhttp_request_set_error_cb(request, on_error);
  evhttp_add_header(evhttp_request_get_output_headers(request), "Host", "localhost");
  if (closes) {
    evhttp_add_header(evhttp_request_get_output_headers(request), "Connection", "close");
  }
  asked++;
  printf("ask %s: %d\n", target, evhttp_make_request(connection, request, EVHTTP_REQ_GET, target));
}

static void run_until_done(void) {
  for (int i = 0; i < kTurnsMost && done < asked; i++) {
    if (event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK) != 0) break;
    usleep(done < asked ? 200 : 0);
  }
  printf("%d of %d done\n", done, asked);
}

// Runs the remaining callbacks.
static void settle(void) {
  for (int i = 0; i < 20; i++) event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

static void begin(Kind chosen) {
  kind = chosen;
  printf("%s\n", kind_names[kind]);
  served = connections = done = asked = 0;
  base = event_base_new();
  context = make_context(TLS1_3_VERSION, 0);
}

// ---- the cases

static void run_one(void) {
  for (int each = 0; each < kKinds * 2; each++) {
    begin(each / 2);
    defers = each % 2;
    struct evhttp_connection* connection = connect_client(serve());
    ask(connection, "/one", 0);
    run_until_done();
    settle();
    printf("%d connections, %d served\n", connections, served);
    evhttp_connection_free(connection);
    settle();
  }
}

static void run_kept(void) {
  for (Kind each = 0; each < kKinds; each++) {
    begin(each);
    struct evhttp_connection* connection = connect_client(serve());
    for (int i = 0; i < 3; i++) {
      ask(connection, "/kept", 0);
      run_until_done();
    }
    ask(connection, "/queued", 0);
    ask(connection, "/behind", 0);
    run_until_done();
    printf("%d connections, %d served\n", connections, served);
    evhttp_connection_free(connection);
    settle();
  }
}

static void run_reconnect(void) {
  for (Kind each = 0; each < kTlsFilter; each++) {
    begin(each);
    struct evhttp_connection* connection = connect_client(serve());
    for (int i = 0; i < 4; i++) {
      ask(connection, "/closes", 1);
      run_until_done();
      settle();
    }
    printf("%d connections, %d served\n", connections, served);
    evhttp_connection_free(connection);
    settle();
  }
}

static void run_refused(void) {
  for (Kind each = 0; each < kTlsFilter; each++) {
    begin(each);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(fd, (struct sockaddr*)&address, size);
    getsockname(fd, (struct sockaddr*)&address, &size);
    struct evhttp_connection* connection = connect_client(ntohs(address.sin_port));
    ask(connection, "/refused", 0);
    ask(connection, "/behind", 0);
    run_until_done();
    settle();
    evhttp_connection_free(connection);
    settle();
    close(fd);
  }
}

// The peer closes as soon as it has accepted, or after some garbage.
static void on_accept(struct evconnlistener* listener, evutil_socket_t fd, struct sockaddr* peer,
                      int size, void* arg) {
  (void)listener;
  (void)peer;
  (void)size;
  const char* text = arg;
  connections++;
  if (connections > kServedMost) _exit(3);
  if (write(fd, text, strlen(text)) < 0) printf("  write failed\n");
  shutdown(fd, SHUT_WR);
}

static void run_ended(void) {
  static const char* const texts[] = {"", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
                                      "garbage\r\n\r\n"};
  for (Kind each = 0; each < kKinds; each++) {
    for (int i = 0; i < 3; i++) {
      begin(each);
      struct sockaddr_in address = {.sin_family = AF_INET};
      socklen_t size = sizeof address;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      struct evconnlistener* listener =
          evconnlistener_new_bind(base, on_accept, (void*)(uintptr_t)texts[i],
                                  LEV_OPT_CLOSE_ON_FREE, 5, (struct sockaddr*)&address, size);
      getsockname(evconnlistener_get_fd(listener), (struct sockaddr*)&address, &size);
      struct evhttp_connection* connection = connect_client(ntohs(address.sin_port));
      ask(connection, "/ended", 0);
      run_until_done();
      settle();
      printf("%d connections\n", connections);
      evhttp_connection_free(connection);
      settle();
    }
  }
}

// A server over TLS whose response ends with the connection. The request that is made when it has
// ended is not sent there.
static void on_asked(struct bufferevent* bev, void* arg) {
  (void)arg;
  struct evbuffer* input = bufferevent_get_input(bev);
  const int is_first = evbuffer_get_length(input) > 0;
  printf("  server reads\n");
  evbuffer_drain(input, evbuffer_get_length(input));
  if (is_first) bufferevent_write(bev, "HTTP/1.1 200 OK\r\n\r\nuntil the end", 32);
}

static void on_answered(struct bufferevent* bev, void* arg) {
  (void)arg;
  SSL_shutdown(bufferevent_openssl_get_ssl(bev));
  shutdown(bufferevent_getfd(bev), SHUT_WR);
}

static void on_server_end(struct bufferevent* bev, short what, void* arg) {
  (void)arg;
  if (what & BEV_EVENT_CONNECTED) return;
  printf("  server's end\n");
  bufferevent_free(bev);
}

static void on_accept_tls(struct evconnlistener* listener, evutil_socket_t fd,
                          struct sockaddr* peer, int size, void* arg) {
  (void)listener;
  (void)peer;
  (void)size;
  (void)arg;
  connections++;
  struct bufferevent* bev = bufferevent_openssl_socket_new(
      base, fd, SSL_new(context), BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_setcb(bev, on_asked, on_answered, on_server_end, NULL);
  bufferevent_enable(bev, EV_READ | EV_WRITE);
}

static void run_asked_at_end(void) {
  begin(kTls);
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t size = sizeof address;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  struct evconnlistener* listener = evconnlistener_new_bind(
      base, on_accept_tls, NULL, LEV_OPT_CLOSE_ON_FREE, 5, (struct sockaddr*)&address, size);
  getsockname(evconnlistener_get_fd(listener), (struct sockaddr*)&address, &size);
  struct evhttp_connection* connection = connect_client(ntohs(address.sin_port));
  asks_again = connection;
  ask(connection, "/first", 0);
  run_until_done();
  settle();
  printf("%d connections\n", connections);
  evhttp_connection_free(connection);
  settle();
  evconnlistener_free(listener);
}

static const Case cases[] = {
    {"one", run_one},         {"kept", run_kept},   {"reconnect", run_reconnect},
    {"refused", run_refused}, {"ended", run_ended}, {"asked at the end", run_asked_at_end},
};

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  block_seconds = 20;
  return run_cases(argc, argv, cases, sizeof cases / sizeof *cases);
}
