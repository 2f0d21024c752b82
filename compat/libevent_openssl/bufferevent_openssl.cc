// The exported functions.
//
// Semantics: event2/bufferevent_ssl.h; probed: the results for other bufferevents, the owner of the
// SSL after a failure, and which descriptor counts.
#include <openssl/bio.h>
#include <openssl/ssl.h>

#include "compat/libevent_openssl/api.h"
#include "compat/libevent_openssl/bufferevent_bio.h"
#include "compat/libevent_openssl/engine.h"

using namespace spate::libevent;

namespace {

TlsState state_of(bufferevent_ssl_state state) {
  if (state == BUFFEREVENT_SSL_CONNECTING) return TlsState::connecting;
  return state == BUFFEREVENT_SSL_ACCEPTING ? TlsState::accepting : TlsState::open;
}

bool is_known(bufferevent_ssl_state state) {
  return state == BUFFEREVENT_SSL_OPEN || state == BUFFEREVENT_SSL_CONNECTING ||
         state == BUFFEREVENT_SSL_ACCEPTING;
}

// As in libevent, the SSL is freed even though there is no bufferevent.
bufferevent* refuse(SSL* ssl, int options) {
  if ((options & BEV_OPT_CLOSE_ON_FREE) != 0) SSL_free(ssl);
  return nullptr;
}

// A repeated write may come from other memory, and may be partial.
bufferevent* make(const TlsPlan& plan) {
  SSL_set_mode(plan.ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  bufferevent* bev = spate_bufferevent_tls_new(plan);
  return bev != nullptr ? bev : refuse(plan.ssl, plan.options);
}

// Holds the lock of a bufferevent; null for one of another kind.
class Locked {
 public:
  explicit Locked(bufferevent* bev) : bev_(bev), tls_(spate_bufferevent_tls_of(bev)) {
    bufferevent_lock(bev_);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() { bufferevent_unlock(bev_); }

  explicit operator bool() const { return tls_ != nullptr; }
  TlsConnection* operator->() const { return tls_; }

 private:
  bufferevent* bev_;
  TlsConnection* tls_;
};

// Returns the descriptor that the SSL has already, or -1.
evutil_socket_t fd_of(SSL* ssl) {
  BIO* bio = SSL_get_wbio(ssl);
  return bio != nullptr ? static_cast<evutil_socket_t>(BIO_get_fd(bio, nullptr)) : -1;
}

// False if memory runs out.
bool put_on(SSL* ssl, evutil_socket_t fd) {
  BIO* bio = BIO_new_socket(fd, BIO_NOCLOSE);
  if (bio != nullptr) SSL_set_bio(ssl, bio, bio);
  return bio != nullptr;
}

}  // namespace

bufferevent* bufferevent_openssl_socket_new(event_base* base, evutil_socket_t fd, SSL* ssl,
                                            bufferevent_ssl_state state, int options) {
  if (!is_known(state)) return refuse(ssl, options);
  const evutil_socket_t known = fd_of(ssl);
  if (fd < 0) fd = known;
  if (fd != known && (known >= 0 || !put_on(ssl, fd))) return refuse(ssl, options);
  return make({.base = base,
               .below = nullptr,
               .fd = fd,
               .engine = &kOpensslEngine,
               .ssl = ssl,
               .state = state_of(state),
               .options = options});
}

bufferevent* bufferevent_openssl_filter_new(event_base* base, bufferevent* below, SSL* ssl,
                                            bufferevent_ssl_state state, int options) {
  if (below == nullptr || !is_known(state)) return refuse(ssl, options);
  BIO* bio = make_bufferevent_bio(below);
  if (bio == nullptr) return refuse(ssl, options);
  SSL_set_bio(ssl, bio, bio);
  return make({.base = base,
               .below = below,
               .fd = -1,
               .engine = &kOpensslEngine,
               .ssl = ssl,
               .state = state_of(state),
               .options = options});
}

int bufferevent_openssl_get_allow_dirty_shutdown(bufferevent* bev) {
  const Locked connection(bev);
  return connection ? static_cast<int>(connection->allows_dirty_shutdown) : -1;
}

void bufferevent_openssl_set_allow_dirty_shutdown(bufferevent* bev, int allow) {
  const Locked connection(bev);
  if (connection) connection->allows_dirty_shutdown = allow != 0;
}

SSL* bufferevent_openssl_get_ssl(bufferevent* bev) {
  const TlsConnection* connection = spate_bufferevent_tls_of(bev);
  return connection != nullptr ? connection->ssl : nullptr;
}

int bufferevent_ssl_renegotiate(bufferevent* bev) {
  const Locked connection(bev);
  return connection ? spate_bufferevent_tls_renegotiate(*connection.operator->()) : -1;
}

unsigned long bufferevent_get_openssl_error(bufferevent* bev) {
  const Locked connection(bev);
  return connection ? connection->errors.take() : 0;
}
