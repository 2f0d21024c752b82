// A server over bufferevent_openssl: answers each request of HTTP/1.0, then ends the connection.
//
//     tls_answerer CERTIFICATE KEY
//
// Prints its port.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <openssl/ssl.h>

static const struct timeval patience = {10, 0};
static struct event_base* base;
static SSL_CTX* context;

static void on_leftover(struct bufferevent* bev, void* arg) {
  (void)arg;
  evbuffer_drain(bufferevent_get_input(bev), evbuffer_get_length(bufferevent_get_input(bev)));
}

static void on_end(struct bufferevent* bev, short what, void* arg) {
  (void)what;
  (void)arg;
  bufferevent_free(bev);
}

// Reads up to the peer's end. Closing with unread input would reset the connection, and the peer
// might lose the alert.
static void leave(struct bufferevent* bev) {
  const int fd = dup(bufferevent_getfd(bev));
  bufferevent_free(bev);
  if (fd < 0) return;
  shutdown(fd, SHUT_WR);
  struct bufferevent* rest = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_setcb(rest, on_leftover, NULL, on_end, NULL);
  bufferevent_set_timeouts(rest, &patience, NULL);
  bufferevent_enable(rest, EV_READ);
}

static void on_written(struct bufferevent* bev, void* arg) {
  (void)arg;
  SSL_shutdown(bufferevent_openssl_get_ssl(bev));
  leave(bev);
}

static void on_read(struct bufferevent* bev, void* arg) {
  static const char answer[] = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nanswer\n";
  (void)arg;
  struct evbuffer* input = bufferevent_get_input(bev);
  if (evbuffer_search(input, "\r\n\r\n", 4, NULL).pos < 0) return;
  evbuffer_drain(input, evbuffer_get_length(input));
  bufferevent_setcb(bev, NULL, on_written, NULL, NULL);
  bufferevent_write(bev, answer, sizeof answer - 1);
}

static void on_event(struct bufferevent* bev, short what, void* arg) {
  (void)arg;
  if (what & BEV_EVENT_CONNECTED) return;
  if (what & BEV_EVENT_EOF) SSL_shutdown(bufferevent_openssl_get_ssl(bev));
  leave(bev);
}

static void on_accept(struct evconnlistener* listener, evutil_socket_t fd, struct sockaddr* peer,
                      int size, void* arg) {
  (void)listener;
  (void)peer;
  (void)size;
  (void)arg;
  struct bufferevent* bev = bufferevent_openssl_socket_new(
      base, fd, SSL_new(context), BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_setcb(bev, on_read, NULL, on_event, NULL);
  bufferevent_set_timeouts(bev, &patience, &patience);
  bufferevent_enable(bev, EV_READ | EV_WRITE);
}

int main(int argc, char** argv) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t size = sizeof address;
  if (argc != 3) return 2;
  signal(SIGPIPE, SIG_IGN);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  context = SSL_CTX_new(TLS_server_method());
  if (SSL_CTX_use_certificate_file(context, argv[1], SSL_FILETYPE_PEM) != 1) return 2;
  if (SSL_CTX_use_PrivateKey_file(context, argv[2], SSL_FILETYPE_PEM) != 1) return 2;
  base = event_base_new();
  struct evconnlistener* listener = evconnlistener_new_bind(
      base, on_accept, NULL, LEV_OPT_CLOSE_ON_FREE, 100, (struct sockaddr*)&address, (int)size);
  if (!listener) return 2;
  getsockname(evconnlistener_get_fd(listener), (struct sockaddr*)&address, &size);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  return event_base_dispatch(base);
}
