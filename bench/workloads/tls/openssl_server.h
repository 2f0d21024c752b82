// The SSL_CTX of those servers of tls that bring their own: tuned as OpenSSL's manual and nginx
// have it, the same for all.
#ifndef BENCH_WORKLOADS_TLS_OPENSSL_SERVER_H
#define BENCH_WORKLOADS_TLS_OPENSSL_SERVER_H

#include <openssl/ssl.h>

#include "workloads/tls/server.h"

inline SSL_CTX* bench_ssl_context(const TlsServerKind& kind) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(
      context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(context, 1);
  const unsigned char id[] = "bench";
  SSL_CTX_set_session_id_context(context, id, sizeof id);
  if (SSL_CTX_use_certificate_chain_file(context, kind.chain) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, kind.key, SSL_FILETYPE_PEM) != 1)
    bench_die("the certificate");
  return context;
}

#endif
