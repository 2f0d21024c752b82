// Random scripts over a client of evhttp that the program gives its bufferevent: a socket, TLS on a
// socket, or TLS through a filter. The server is the other end of TLS, moved by hand.
//
// How bytes lie in records is not compared. The original connects a TLS filter once only, and does
// not try again through TLS that defers its callbacks; so the one has one request at a time, up to
// the first end, and the other is always listened for. It waits for ever after a response 100 over
// TLS, so the server sends none.
//
// differential: --seeds 1:300
// differential settings: debug,precise,poll
#include <event2/bufferevent_ssl.h>

#include "http_client_script.h"
#include "openssl_ends.h"

typedef enum Kind { kPlain, kTls, kTlsFilter, kKinds } Kind;

static Kind kind;
static int defers;
static SSL_CTX* context;
static SSL* hand;  // On the peer.
static int is_shut;

static struct bufferevent* make_bev(void) {
  const int options = BEV_OPT_CLOSE_ON_FREE | (defers ? BEV_OPT_DEFER_CALLBACKS : 0);
  SSL* ssl = kind == kPlain ? NULL : SSL_new(context);
  if (kind == kTls) {
    return bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_CONNECTING, options);
  }
  struct bufferevent* below = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
  if (kind == kPlain) return below;
  return bufferevent_openssl_filter_new(base, below, ssl, BUFFEREVENT_SSL_CONNECTING, options);
}

static struct evhttp_connection* make_connection(int port) {
  kind = (Kind)random_below(kKinds);
  defers = random_chance(30);
  printf("kind %d, defers %d\n", kind, defers);
  return evhttp_connection_base_bufferevent_new(base, NULL, make_bev(), "127.0.0.1",
                                                (ev_uint16_t)port);
}

static int may_ask(void) {
  if (kind != kTlsFilter) return listener >= 0 || (kind == kPlain && !defers);
  return listener >= 0 && peers == 0 && !is_waited_for();
}

static int may_end_body(void) { return 1; }
static int may_retry(void) { return kind == kPlain && !defers; }
static int is_plain(void) { return kind == kPlain; }

// ---- the server's end

static void peer_opens(void) {
  if (kind != kPlain) hand = hand_end(context, peer, kServes);
  is_shut = 0;
}

static int peer_may_send(void) {
  return kind == kPlain || (SSL_is_init_finished(hand) && !is_shut);
}

static void peer_sends(const char* bytes, size_t size) {
  if (kind == kPlain) {
    send_bytes(peer, bytes, size);
  } else {
    ERR_clear_error();
    SSL_write(hand, bytes, (int)size);
  }
}

static int show_decrypted(void) {
  static char bytes[kWireMost + 1];
  size_t size = 0;
  int got;
  ERR_clear_error();
  while ((got = SSL_read(hand, bytes + size, (int)(kWireMost - size))) > 0) size += (size_t)got;
  const int error = SSL_get_error(hand, got);
  if (size > 0) print_received(peers, bytes, size);
  if (error == SSL_ERROR_WANT_READ) return size > 0;
  printf("  wire %d ends\n", peers);
  return -1;
}

static int peer_shows(void) {
  if (kind == kPlain) return print_wire(peers, peer);
  if (SSL_is_init_finished(hand)) return show_decrypted();
  ERR_clear_error();
  const int result = SSL_do_handshake(hand);
  if (result == 1) return 1;
  if (SSL_get_error(hand, result) == SSL_ERROR_WANT_READ) return 0;
  printf("  wire %d fails\n", peers);
  return -1;
}

static void peer_shuts(void) {
  is_shut = 1;
  if (kind != kPlain && SSL_is_init_finished(hand)) SSL_shutdown(hand);
  shutdown(peer, SHUT_WR);
}

static void peer_closes(void) {
  SSL_free(hand);
  hand = NULL;
  close(peer);
}

int main(int argc, char** argv) {
  block_seconds = 5;
  context = make_context(TLS1_3_VERSION, 0);
  return run_seeds(argc, argv, run_script);
}
