// Semantics: OpenSSL's manual (SSL_get_error(3), SSL_read(3), SSL_write(3)); probed: which errors
// are kept, their order, and which ends count as errors.
#include "compat/libevent_openssl/engine.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cerrno>

namespace spate::libevent {
namespace {

using Kind = TlsStep::Kind;

// OpenSSL's first error is the cause; it is stored last, to be returned first.
void keep_errors(TlsErrors& errors, int code) {
  errors.put(static_cast<unsigned long>(code));
  while (const unsigned long error = ERR_get_error()) errors.put(error);
}

// True for the end of the transport, unlike that of the protocol.
bool is_cut_off(int code) { return code == SSL_ERROR_SYSCALL && ERR_peek_error() == 0; }

TlsStep end(TlsConnection& connection, int code) {
  if (code == SSL_ERROR_ZERO_RETURN) return {Kind::ended, BEV_EVENT_EOF, 0};
  const bool is_eof = is_cut_off(code) && connection.allows_dirty_shutdown;
  keep_errors(connection.errors, code);
  return {Kind::ended, is_eof ? short{BEV_EVENT_EOF} : short{BEV_EVENT_ERROR}, 0};
}

TlsStep step_of(TlsConnection& connection, int result) {
  if (result > 0) return {Kind::done, 0, result};
  const int code = SSL_get_error(connection.ssl, result);
  if (code == SSL_ERROR_WANT_READ) return {Kind::wants_read, 0, 0};
  if (code == SSL_ERROR_WANT_WRITE) return {Kind::wants_write, 0, 0};
  return end(connection, code);
}

void forget_errors(TlsConnection& connection) {
  ERR_clear_error();
  connection.errors.clear();
}

bool reset(TlsConnection& connection) { return SSL_clear(connection.ssl) == 1; }

void begin(TlsConnection& connection) {
  if (connection.state == TlsState::accepting) {
    SSL_set_accept_state(connection.ssl);
  } else {
    SSL_set_connect_state(connection.ssl);
  }
}

TlsStep handshake(TlsConnection& connection) {
  forget_errors(connection);
  return step_of(connection, SSL_do_handshake(connection.ssl));
}

void renegotiate(TlsConnection& connection) { SSL_renegotiate(connection.ssl); }

TlsStep read(TlsConnection& connection, void* target, int most) {
  forget_errors(connection);
  return step_of(connection, SSL_read(connection.ssl, target, most));
}

TlsStep write(TlsConnection& connection, const void* bytes, int count) {
  forget_errors(connection);
  return step_of(connection, SSL_write(connection.ssl, bytes, count));
}

bool has_pending(const TlsConnection& connection) { return SSL_pending(connection.ssl) > 0; }

std::uint64_t wire_read(const TlsConnection& connection) {
  BIO* bio = SSL_get_rbio(connection.ssl);
  return bio != nullptr ? BIO_number_read(bio) : 0;
}

std::uint64_t wire_written(const TlsConnection& connection) {
  BIO* bio = SSL_get_wbio(connection.ssl);
  return bio != nullptr ? BIO_number_written(bio) : 0;
}

bool use_fd(TlsConnection& connection, evutil_socket_t fd) {
  BIO* bio = nullptr;
  if (fd >= 0) {
    bio = BIO_new_socket(fd, BIO_NOCLOSE);
    if (bio == nullptr) return false;
  }
  SSL_set_bio(connection.ssl, bio, bio);
  return true;
}

void free_end(TlsConnection& connection) { SSL_free(connection.ssl); }

}  // namespace

constexpr TlsEngine kOpensslEngine = {
    .reset = reset,
    .begin = begin,
    .handshake = handshake,
    .renegotiate = renegotiate,
    .read = read,
    .write = write,
    .has_pending = has_pending,
    .wire_read = wire_read,
    .wire_written = wire_written,
    .use_fd = use_fd,
    .free = free_end,
};

}  // namespace spate::libevent
