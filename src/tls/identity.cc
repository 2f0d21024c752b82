#include "tls/identity.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <cerrno>
#include <climits>
#include <utility>

#include "tls/failure.h"

namespace spate {

namespace {

std::unexpected<TlsFailure> failed(std::string_view what) {
  TlsFailure failure = take_failure(Error::tls_certificate);
  failure.text = std::string(what) + ": " + failure.text;
  return std::unexpected(std::move(failure));
}

std::unexpected<TlsFailure> refused(std::string text) {
  ERR_clear_error();
  return std::unexpected(TlsFailure{Error::tls_certificate, std::move(text)});
}

std::string name_of(const std::string& file, std::string_view otherwise) {
  return file.empty() ? std::string(otherwise) : file;
}

// Describes why no key was read. For a text without a key, and for an encrypted key, OpenSSL's own
// reasons are "unsupported" and the like.
std::unexpected<TlsFailure> failed_key(const TlsIdentity& identity) {
  const std::string name = name_of(identity.key_file, "key");
  if (!identity.key.contains("PRIVATE KEY-----")) return refused(name + ": no private key in PEM");
  if (identity.key.contains("ENCRYPTED"))
    return refused(name + ": the private key is encrypted. \"openssl pkey\" can decrypt it");
  return failed(name);
}

OwnBio reader_of(const std::string& text) {
  return OwnBio(
      BIO_new_mem_buf(text.data(), static_cast<int>(std::min<std::size_t>(text.size(), INT_MAX))));
}

// An encrypted key is refused: OpenSSL would ask for its passphrase on the terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

OwnCertificate next_certificate(BIO* bio) {
  return OwnCertificate(PEM_read_bio_X509(bio, nullptr, &no_passphrase, nullptr));
}

// Returns whether the text ended after the last certificate, rather than being invalid.
bool is_at_end() {
  const unsigned long error = ERR_peek_last_error();
  return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

}  // namespace

TlsResult<std::string> read_text(const std::string& path) {
  ERR_clear_error();
  const OwnBio bio(BIO_new_file(path.c_str(), "rb"));
  if (bio == nullptr) return failed(path);
  std::string text;
  char room[4096];
  for (;;) {
    const int count = BIO_read(bio.get(), room, sizeof(room));
    if (count < 0) return failed(path);
    if (count == 0) return text;
    text.append(room, static_cast<std::size_t>(count));
  }
}

TlsResult<TlsIdentity> read_files(const TlsIdentity& identity) {
  TlsIdentity read = identity;
  if (!identity.chain_file.empty()) {
    auto text = read_text(identity.chain_file);
    if (!text) return std::unexpected(std::move(text.error()));
    read.chain = std::move(*text);
  }
  if (!identity.key_file.empty()) {
    auto text = read_text(identity.key_file);
    if (!text) return std::unexpected(std::move(text.error()));
    read.key = std::move(*text);
  }
  return read;
}

TlsResult<Identity> load(const TlsIdentity& identity) {
  ERR_clear_error();
  Identity loaded;
  const OwnBio chain = reader_of(identity.chain);
  const OwnBio key = reader_of(identity.key);
  loaded.chain.reset(sk_X509_new_null());
  if (chain == nullptr || key == nullptr || loaded.chain == nullptr) return failed("identity");
  loaded.certificate = next_certificate(chain.get());
  const std::string chain_name = name_of(identity.chain_file, "certificate");
  if (loaded.certificate == nullptr && is_at_end())
    return refused(chain_name + ": no certificate in PEM");
  if (loaded.certificate == nullptr) return failed(chain_name);
  while (OwnCertificate next = next_certificate(chain.get())) {
    if (sk_X509_push(loaded.chain.get(), next.get()) == 0) return failed("chain");
    next.release();
  }
  if (!is_at_end()) return failed("chain");
  ERR_clear_error();
  loaded.key.reset(PEM_read_bio_PrivateKey(key.get(), nullptr, &no_passphrase, nullptr));
  if (loaded.key == nullptr) return failed_key(identity);
  if (X509_check_private_key(loaded.certificate.get(), loaded.key.get()) != 1)
    return refused("the key is not that of the certificate for " +
                   text_of(X509_get_subject_name(loaded.certificate.get())));
  return loaded;
}

TlsResult<void> trust(X509_STORE& store, const std::string& text, const std::string& file) {
  ERR_clear_error();
  const OwnBio bio = reader_of(text);
  int count = 0;
  const std::string name = name_of(file, "trusted certificates");
  if (bio == nullptr) return failed(name);
  while (OwnCertificate next = next_certificate(bio.get())) {
    // If memory ran out while it was parsed, it has no key, and OpenSSL reports no error.
    if (X509_get0_pubkey(next.get()) == nullptr) next.reset(X509_dup(next.get()));
    if (next == nullptr || X509_STORE_add_cert(&store, next.get()) != 1) return failed(name);
    ++count;
  }
  if (!is_at_end()) return failed(name);
  if (count == 0) return refused(name + ": no certificate in PEM");
  ERR_clear_error();
  return {};
}

STACK_OF(X509_NAME) * issuers_in(const std::string& text) {
  const OwnBio bio = reader_of(text);
  STACK_OF(X509_NAME)* names = sk_X509_NAME_new_null();
  if (bio == nullptr || names == nullptr) return names;
  while (const OwnCertificate next = next_certificate(bio.get())) {
    X509_NAME* name = X509_NAME_dup(X509_get_subject_name(next.get()));
    if (name != nullptr && sk_X509_NAME_push(names, name) == 0) X509_NAME_free(name);
  }
  ERR_clear_error();
  return names;
}

}  // namespace spate
