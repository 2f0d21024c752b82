#include "tls/testing/certificates.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <utility>

namespace spate::testing {

namespace {

std::string text_in(BIO* bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  std::string copy(text, static_cast<std::size_t>(size));
  BIO_free(bio);
  return copy;
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  if (value.empty()) return;
  X509V3_CTX context{};  // X509V3_set_ctx() leaves the database unset.
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

std::string alternative_names(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) {
    if (!all.empty()) all += ",";
    all += name.starts_with("IP:") ? name : "DNS:" + name;
  }
  return all;
}

}  // namespace

struct Certificate::Parts {
  explicit Parts(const CertificatePlan& plan)
      : key(plan.rsa_bits == 0 ? EVP_EC_gen("P-256")
                               : EVP_RSA_gen(static_cast<unsigned>(plan.rsa_bits))) {}
  ~Parts() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  X509* certificate = X509_new();
  EVP_PKEY* key;
};

Certificate::Certificate(Certificate&& other) noexcept = default;
Certificate::~Certificate() = default;

Certificate::Certificate(const CertificatePlan& plan, const Certificate* issuer)
    : parts_(std::make_unique<Parts>(plan)) {
  X509* certificate = parts_->certificate;
  X509* signer = issuer == nullptr ? certificate : issuer->parts_->certificate;
  std::uint64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), 7);
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), plan.begins);
  X509_gmtime_adj(X509_getm_notAfter(certificate), plan.ends);
  X509_set_pubkey(certificate, parts_->key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(plan.subject.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(certificate, X509_get_subject_name(signer));
  add_extension(certificate, signer, NID_basic_constraints,
                plan.is_ca ? "critical,CA:TRUE" : "CA:FALSE");
  const std::string fitting = plan.is_ca ? "critical,keyCertSign,cRLSign" : "digitalSignature";
  add_extension(certificate, signer, NID_key_usage,
                plan.key_usage.empty() ? fitting : plan.key_usage);
  add_extension(certificate, signer, NID_subject_key_identifier, "hash");
  if (issuer != nullptr)
    add_extension(certificate, signer, NID_authority_key_identifier, "keyid:always");
  if (!plan.is_ca) add_extension(certificate, signer, NID_ext_key_usage, plan.usage);
  add_extension(certificate, signer, NID_subject_alt_name, alternative_names(plan.names));
  X509_sign(certificate, issuer == nullptr ? parts_->key : issuer->parts_->key,
            plan.has_weak_digest ? EVP_sha1() : EVP_sha256());

  BIO* text = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(text, certificate);
  pem_ = text_in(text);
  text = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(text, parts_->key, nullptr, nullptr, 0, nullptr, nullptr);
  key_pem_ = text_in(text);
}

TlsIdentity Certificate::identity(const std::vector<const Certificate*>& between) const {
  TlsIdentity identity{.chain = pem_, .key = key_pem_};
  for (const Certificate* certificate : between) identity.chain += certificate->pem();
  return identity;
}

const Certificate& test_root() {
  static const Certificate root({.subject = "Test Root", .is_ca = true});
  return root;
}

const Certificate& test_server() {
  static const Certificate server(
      {.subject = "server", .names = {"localhost", "a.example", "*.b.example", "IP:127.0.0.1"}},
      &test_root());
  return server;
}

TlsContext test_server_context() {
  static const TlsContext context = *TlsContext::server({.identities = {test_server().identity()}});
  return context;
}

TlsContext test_client_context() {
  static const TlsContext context =
      *TlsContext::client({.system_cas = false, .ca = test_root().pem()});
  return context;
}

}  // namespace spate::testing
