#include "tls/loop_context.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <utility>

#include "tls/engine.h"
#include "tls/failure.h"
#include "tls/ticket_terms.h"

namespace spate {

namespace {

// Real chains are shorter.
constexpr int kMaxDepth = 8;

// Keys and digests of at least 112 bits (RSA of 2048, no SHA-1), independent of the system's
// settings.
constexpr int kSecurityLevel = 2;

// With forward secrecy and authentication, which all of TLS 1.3 have.
constexpr char kCiphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

const unsigned char* unsigned_of(const void* bytes) {
  return static_cast<const unsigned char*>(bytes);
}

// Keeps the description for the failure of the handshake: the certificate is freed before that.
int on_verified(int is_good, X509_STORE_CTX* check) {
  if (is_good == 1) return 1;
  const auto* ssl = static_cast<const SSL*>(
      X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx()));
  Engine::of(ssl).note_refusal(words_of(check));
  return 0;
}

int on_server_name(SSL* ssl, int*, void*) {
  const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name != nullptr) Engine::of(ssl).context().choose_identity(ssl, name);
  return SSL_TLSEXT_ERR_OK;
}

int on_alpn(SSL* ssl, const unsigned char** chosen, unsigned char* size,
            const unsigned char* offered, unsigned offered_size, void*) {
  const std::string& ours = Engine::of(ssl).context().description().alpn;
  unsigned char* found = nullptr;
  const int outcome =
      SSL_select_next_proto(&found, size, unsigned_of(ours.data()),
                            static_cast<unsigned>(ours.size()), offered, offered_size);
  *chosen = found;
  return outcome == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

int on_session(SSL* ssl, SSL_SESSION* session) {
  const Engine& engine = Engine::of(ssl);
  if (engine.host().empty()) return 0;
  engine.context().sessions().keep(
      engine.host(), {.session = OwnSession(session), .valid_until = engine.end_of_trust()});
  return 1;
}

bool set_keys(const TlsTicketKey& key, const unsigned char* iv, EVP_CIPHER_CTX* cipher,
              EVP_MAC_CTX* mac, int encrypts) {
  char digest[] = "SHA256";
  auto* mac_key = const_cast<std::byte*>(key.mac.data());
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, mac_key, key.mac.size()),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0), OSSL_PARAM_END};
  return EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), nullptr, unsigned_of(key.cipher.data()), iv,
                           encrypts) == 1 &&
         EVP_MAC_CTX_set_params(mac, parameters) == 1;
}

int encrypt_ticket(const Description& server, unsigned char* name, unsigned char* iv,
                   EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac) {
  const auto key = server.ticket_keys->current(server.ticket_lifetime);
  if (!key || RAND_bytes(iv, EVP_CIPHER_iv_length(EVP_aes_256_cbc())) != 1) return -1;
  std::memcpy(name, key->name.data(), key->name.size());
  return set_keys(*key, iv, cipher, mac, 1) ? 1 : -1;
}

// A ticket of an older key is accepted, and replaced by a new one. Tickets of TLS 1.3 are always
// replaced, because each should be used only once.
int on_ticket(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
              EVP_MAC_CTX* mac, int encrypts) {
  const Description& server = Engine::of(ssl).context().description();
  if (encrypts == 1) return encrypt_ticket(server, name, iv, cipher, mac);
  const std::span<const std::byte, 16> its_name(reinterpret_cast<const std::byte*>(name), 16);
  const auto found = server.ticket_keys->find(its_name);
  if (!found) return 0;
  if (!set_keys(found->key, iv, cipher, mac, 0)) return -1;
  return found->is_current && SSL_version(ssl) != TLS1_3_VERSION ? 1 : 2;
}

int verify_mode(TlsClientCheck check) {
  if (check == TlsClientCheck::none) return SSL_VERIFY_NONE;
  const int must = check == TlsClientCheck::required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
  return SSL_VERIFY_PEER | must;
}

long whole_seconds(Nanos time) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(std::min(time, kForever)).count();
  return std::min<long>(seconds, INT_MAX);
}

bool is_for(const Identity& identity, const char* name) {
  return X509_check_host(identity.certificate.get(), name, std::strlen(name),
                         X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, nullptr) == 1;
}

bool show(SSL* ssl, const Identity& identity) {
  return SSL_use_cert_and_key(ssl, identity.certificate.get(), identity.key.get(),
                              identity.chain.get(), 1) == 1;
}

// Sessions may be resumed only in contexts that accept the same clients.
bool set_session_id(SSL_CTX* context, const Description& server) {
  const std::string what =
      std::to_string(static_cast<int>(server.client_check)) + server.trusted_text;
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  return EVP_Digest(what.data(), what.size(), digest, &size, EVP_sha256(), nullptr) == 1 &&
         SSL_CTX_set_session_id_context(context, digest, size) == 1;
}

}  // namespace

std::shared_ptr<LoopContext> LoopContext::make(std::shared_ptr<const Description> description,
                                               TlsFailure& why) {
  auto made = std::make_shared<LoopContext>(std::move(description));
  ERR_clear_error();
  return made->open(why) ? made : nullptr;
}

bool LoopContext::open(TlsFailure& why) {
  const bool is_server = description_->side == TlsProvider::Side::server;
  context_.reset(SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method()));
  bio_ = make_wire_bio();
  if (context_ == nullptr || bio_ == nullptr || !configure() ||
      !(is_server ? configure_server() : configure_client())) {
    why = take_failure(Error::tls_handshake);
    return false;
  }
  return load_identities(why);
}

bool LoopContext::configure() {
  SSL_CTX* context = context_.get();
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_mode(context, SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_verify_depth(context, kMaxDepth);
  SSL_CTX_set_security_level(context,
                             std::max(kSecurityLevel, SSL_CTX_get_security_level(context)));
  SSL_CTX_set1_cert_store(context, description_->trusted.get());
  const bool is_newest = description_->min_version == TlsVersion::tls_1_3;
  return SSL_CTX_set_min_proto_version(context, is_newest ? TLS1_3_VERSION : TLS1_2_VERSION) == 1 &&
         SSL_CTX_set_cipher_list(context, kCiphers) == 1;
}

bool LoopContext::configure_server() {
  SSL_CTX* context = context_.get();
  const Description& server = *description_;
  SSL_CTX_set_verify(context, verify_mode(server.client_check), &on_verified);
  if (server.client_check != TlsClientCheck::none)
    SSL_CTX_set_client_CA_list(context, issuers_in(server.trusted_text));
  SSL_CTX_callback_ctrl(context, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB,
                        reinterpret_cast<void (*)()>(&on_server_name));
  if (!server.alpn.empty()) SSL_CTX_set_alpn_select_cb(context, &on_alpn, nullptr);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_timeout(context, whole_seconds(server.ticket_lifetime));
  if (server.tickets == 0) SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  return set_session_id(context, server) && SSL_CTX_set_num_tickets(context, server.tickets) == 1 &&
         SSL_CTX_set_tlsext_ticket_key_evp_cb(context, &on_ticket) == 1 &&
         keep_ticket_terms(context);
}

bool LoopContext::configure_client() {
  SSL_CTX* context = context_.get();
  const Description& client = *description_;
  const bool checks = client.peer_check == PeerCheck::names_and_chain;
  SSL_CTX_set_verify(context, checks ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                     checks ? &on_verified : nullptr);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, &on_session);
  return client.alpn.empty() ||
         SSL_CTX_set_alpn_protos(context, unsigned_of(client.alpn.data()),
                                 static_cast<unsigned>(client.alpn.size())) == 0;
}

bool LoopContext::load_identities(TlsFailure& why) {
  for (const TlsIdentity& text : description_->identities) {
    auto identity = load(text);
    if (!identity) {
      why = std::move(identity.error());
      return false;
    }
    identities_.push_back(std::move(*identity));
  }
  if (identities_.empty()) return true;
  const Identity& first = identities_.front();
  if (SSL_CTX_use_cert_and_key(context_.get(), first.certificate.get(), first.key.get(),
                               first.chain.get(), 1) == 1)
    return true;
  why = take_failure(Error::tls_certificate);
  return false;
}

// There may be several certificates for the name, with keys of different types.
void LoopContext::choose_identity(SSL* ssl, const char* name) const {
  bool is_cleared = false;
  for (const Identity& identity : identities_) {
    if (!is_for(identity, name)) continue;
    if (!std::exchange(is_cleared, true)) SSL_certs_clear(ssl);
    show(ssl, identity);
  }
}

std::unique_ptr<TlsEngine> LoopContext::make_engine(std::string_view host, TlsFailure& why) {
  auto engine = std::make_unique<Engine>(shared_from_this(), host);
  if (!engine->open(why)) return nullptr;
  return engine;
}

}  // namespace spate
