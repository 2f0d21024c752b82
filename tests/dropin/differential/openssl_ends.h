#pragma once

// Ends of TLS for the programs that compare bufferevents on OpenSSL: contexts with one certificate,
// of the same contents and length in each run, and an end that the program moves by hand.

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include "harness.h"

enum { kServes = 1, kConnects = 0 };

static inline X509* make_certificate(EVP_PKEY* key) {
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), "20200101000000Z");
  ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), "20491231000000Z");
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char*)"test", -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_sign(certificate, key, NULL);
  return certificate;
}

// All signatures of this kind have the same length.
static inline SSL_CTX* make_context(int version, int verifies) {
  unsigned char seed[32] = {7};
  EVP_PKEY* key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, sizeof seed);
  X509* certificate = make_certificate(key);
  SSL_CTX* context = SSL_CTX_new(TLS_method());
  SSL_CTX_set_min_proto_version(context, version);
  SSL_CTX_set_max_proto_version(context, version);
  SSL_CTX_set_options(context, SSL_OP_ALLOW_CLIENT_RENEGOTIATION);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_use_certificate(context, certificate);
  SSL_CTX_use_PrivateKey(context, key);
  if (verifies) SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return context;
}

static inline void open_ends(int ends[2]) {
  socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends);
}

// Returns the error's reason, without parts that differ between runs.
static inline const char* reason_of(unsigned long error) {
  const char* reason = error ? ERR_reason_error_string(error) : NULL;
  return error == 0 ? "none" : reason ? reason : "other";
}

// ---- the peer, which the test calls directly

static inline SSL* hand_end(SSL_CTX* context, int fd, int role) {
  SSL* ssl = SSL_new(context);
  SSL_set_fd(ssl, fd);
  if (role == kServes) {
    SSL_set_accept_state(ssl);
  } else {
    SSL_set_connect_state(ssl);
  }
  return ssl;
}

static inline void show_step(SSL* ssl, long value) {
  const int error = SSL_get_error(ssl, (int)value);
  printf(" -> %ld, error %d, %s\n", value > 0 ? value : 0, value > 0 ? 0 : error,
         reason_of(ERR_peek_error()));
  ERR_clear_error();
}

// Reads all there is: the division into records is not compared.
static inline void hand_reads(SSL* ssl) {
  static unsigned char taken[20000];
  long total = 0;
  unsigned sum = 0;
  int got;
  ERR_clear_error();
  while ((got = SSL_read(ssl, taken, sizeof taken)) > 0) {
    for (int i = 0; i < got; i++) sum = sum * 31 + taken[i];
    total += got;
  }
  printf(" %ld bytes, sum %u", total, sum);
  show_step(ssl, got);
}
