#include "tls/engine.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "tls/failure.h"
#include "tls/ticket_terms.h"

namespace spate {

namespace {

// ---- the BIO

TlsWire* wire_of(BIO* bio) { return static_cast<TlsWire*>(BIO_get_data(bio)); }

int read_wire(BIO* bio, char* into, int size) {
  BIO_clear_retry_flags(bio);
  TlsWire* wire = wire_of(bio);
  if (wire == nullptr || size <= 0) return -1;
  const std::size_t count =
      wire->take({reinterpret_cast<std::byte*>(into), static_cast<std::size_t>(size)});
  if (count > 0) return static_cast<int>(count);
  BIO_set_retry_read(bio);
  return -1;
}

int write_wire(BIO* bio, const char* from, int size) {
  BIO_clear_retry_flags(bio);
  TlsWire* wire = wire_of(bio);
  if (wire == nullptr || size < 0) return -1;
  const Bytes bytes(reinterpret_cast<const std::byte*>(from), static_cast<std::size_t>(size));
  return wire->put(bytes) ? size : -1;
}

long control_wire(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* make_wire_method() {
  BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "spate");
  if (method == nullptr) return nullptr;
  BIO_meth_set_read(method, &read_wire);
  BIO_meth_set_write(method, &write_wire);
  BIO_meth_set_ctrl(method, &control_wire);
  return method;
}

// Clearing an empty queue costs as much as the bytes of a small record.
void clear_errors() {
  if (ERR_peek_error() != 0) ERR_clear_error();
}

// On the stack during one call of OpenSSL. Clears the error queue first: a failure without an
// error, such as lack of memory, would otherwise be attributed to an earlier one.
class Calling {
 public:
  Calling(BIO* bio, TlsWire& wire) : bio_(bio) {
    clear_errors();
    BIO_clear_retry_flags(bio_);
    BIO_set_data(bio_, &wire);
  }
  ~Calling() {
    BIO_set_data(bio_, nullptr);
    clear_errors();
  }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;

 private:
  BIO* bio_;
};

// SSL_set_tlsext_host_name() without its C casts.
bool set_host_name(SSL* ssl, std::string& name) {
  return SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data()) == 1;
}

int bounded(std::size_t size) { return static_cast<int>(std::min<std::size_t>(size, INT_MAX)); }

}  // namespace

OwnBio make_wire_bio() {
  static BIO_METHOD* const method = make_wire_method();
  OwnBio bio(method == nullptr ? nullptr : BIO_new(method));
  if (bio != nullptr) BIO_set_init(bio.get(), 1);
  return bio;
}

// ---- begin

bool Engine::open(TlsFailure& why) {
  ERR_clear_error();
  ssl_.reset(SSL_new(context_->context()));
  BIO* bio = context_->bio();
  if (ssl_ == nullptr || SSL_set_app_data(ssl_.get(), this) != 1 || BIO_up_ref(bio) != 1) {
    why = take_failure(Error::tls_handshake);
    return false;
  }
  SSL_set_bio(ssl_.get(), bio, bio);
  if (context_->description().side == TlsProvider::Side::server) {
    SSL_set_accept_state(ssl_.get());
    return true;
  }
  SSL_set_connect_state(ssl_.get());
  if (!expect_host()) {
    ERR_clear_error();
    why = {{EINVAL, std::system_category()}, "not a host name: \"" + host_ + "\""};
    return false;
  }
  const KeptSession kept = context_->sessions().take(host_, wall_now());
  if (kept.session != nullptr) SSL_set_session(ssl_.get(), kept.session.get());
  resumed_until_ = kept.valid_until;
  return true;
}

std::int64_t Engine::end_of_trust() const {
  if (!is_checking()) return INT64_MAX;
  return SSL_session_reused(ssl_.get()) == 1 ? resumed_until_ : end_of_chain(ssl_.get());
}

bool Engine::is_checking() const {
  return context_->description().peer_check == PeerCheck::names_and_chain;
}

// A name is sent to the server (SNI); an address is not.
bool Engine::expect_host() {
  if (host_.empty()) return !is_checking();
  if (host_.find('\0') != std::string::npos) return false;
  X509_VERIFY_PARAM* expected = SSL_get0_param(ssl_.get());
  X509_VERIFY_PARAM_set_hostflags(
      expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, host_.c_str()) == 1) return true;
  std::string name = host_.ends_with('.') ? host_.substr(0, host_.size() - 1) : host_;
  return !name.empty() && set_host_name(ssl_.get(), name) &&
         X509_VERIFY_PARAM_set1_host(expected, name.data(), name.size()) == 1;
}

// ---- the handshake

TlsEngine::Progress Engine::shake_hands(TlsWire& wire, TlsFailure& why) {
  const Calling calling(context_->bio(), wire);
  const int outcome = SSL_do_handshake(ssl_.get());
  if (outcome == 1) return Progress::done;
  if (SSL_get_error(ssl_.get(), outcome) == SSL_ERROR_WANT_READ) return Progress::again;
  why = take_failure(Error::tls_handshake);
  if (!refusal_.empty()) why = {Error::tls_certificate, std::move(refusal_)};
  return Progress::failed;
}

// ---- bytes

long Engine::decrypt(TlsWire& wire, std::span<std::byte> room) {
  const Calling calling(context_->bio(), wire);
  const int outcome = SSL_read(ssl_.get(), room.data(), bounded(room.size()));
  return outcome > 0 ? outcome : result_of_failure(wire, outcome);
}

long Engine::encrypt(TlsWire& wire, Bytes bytes) {
  const Calling calling(context_->bio(), wire);
  const int outcome = SSL_write(ssl_.get(), bytes.data(), bounded(bytes.size()));
  return outcome > 0 ? 0 : result_of_failure(wire, outcome);
}

long Engine::result_of_failure(const TlsWire& wire, int outcome) {
  if (wire.is_out_of_memory()) return -ENOMEM;
  switch (SSL_get_error(ssl_.get(), outcome)) {
    case SSL_ERROR_WANT_READ:
      return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    default:
      break;
  }
  const std::error_code code = take_failure(Error::tls_protocol).code;
  if (code.category() == std::system_category()) return -code.value();
  return result_of(static_cast<Error>(code.value()));
}

void Engine::say_goodbye(TlsWire& wire) {
  const Calling calling(context_->bio(), wire);
  SSL_shutdown(ssl_.get());
}

// ---- information

TlsInfo Engine::info() const {
  const SSL* ssl = ssl_.get();
  TlsInfo info;
  info.version = SSL_get_version(ssl);
  info.cipher = SSL_get_cipher_name(ssl);
  const unsigned char* alpn = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl, &alpn, &size);
  if (alpn != nullptr) info.alpn.assign(reinterpret_cast<const char*>(alpn), size);
  if (const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name))
    info.server_name = name;
  info.is_resumed = SSL_session_reused(ssl) == 1;
  X509* certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr) return info;
  info.subject = text_of(X509_get_subject_name(certificate));
  info.names = names_of(certificate);
  unsigned char* der = nullptr;
  const int length = i2d_X509(certificate, &der);
  if (length > 0) {
    const auto* begin = reinterpret_cast<const std::byte*>(der);
    info.certificate.assign(begin, begin + length);
  }
  OPENSSL_free(der);
  return info;
}

}  // namespace spate
