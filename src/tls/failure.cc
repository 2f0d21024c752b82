#include "tls/failure.h"

#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <string_view>

#include "spate/net/address.h"

namespace spate {

namespace {

std::error_code error_code(int error) { return {error, std::system_category()}; }

std::string text_in(BIO* bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : std::string();
}

std::string text_of(const ASN1_TIME* time) {
  const OwnBio bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || ASN1_TIME_print(bio.get(), time) != 1) return "?";
  return text_in(bio.get());
}

std::string address_text(std::string_view bytes) {
  const Result<Address> address = Address::ip(bytes_of(bytes), 0);
  return address ? address->host() : "?";
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all.empty() ? "no name at all" : all;
}

// Returns the name or address that was expected.
std::string expected_name(X509_STORE_CTX* check) {
  X509_VERIFY_PARAM* expected = X509_STORE_CTX_get0_param(check);
  if (const char* host = X509_VERIFY_PARAM_get0_host(expected, 0)) return host;
  char* address = X509_VERIFY_PARAM_get1_ip_asc(expected);
  std::string text = address == nullptr ? "?" : address;
  OPENSSL_free(address);
  return text;
}

bool is_about_certificates(int alert) {
  return (alert >= SSL_AD_BAD_CERTIFICATE && alert <= SSL_AD_CERTIFICATE_UNKNOWN) ||
         alert == SSL_AD_UNKNOWN_CA || alert == SSL_AD_CERTIFICATE_REQUIRED;
}

// Returns the alert that the peer has sent, or -1.
int alert_of(int reason) {
  const int alert = reason - SSL_AD_REASON_OFFSET;
  return alert >= 0 && alert < 256 ? alert : -1;
}

std::string_view words_for(int reason) {
  switch (reason) {
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
      return "the peer speaks HTTP, not TLS";
    case SSL_R_WRONG_VERSION_NUMBER:
      return "the peer does not speak TLS, or an unknown version of it";
    case SSL_R_UNSUPPORTED_PROTOCOL:
      return "no version of TLS in common";
    case SSL_R_NO_SHARED_CIPHER:
      return "no cipher in common";
    case SSL_R_NO_APPLICATION_PROTOCOL:
      return "no protocol in common (ALPN)";
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "the client has shown no certificate";
    default:
      return {};
  }
}

TlsFailure failure_of_tls(unsigned long error, Error otherwise) {
  const int reason = ERR_GET_REASON(error);
  if (const int alert = alert_of(reason); alert >= 0) {
    return {is_about_certificates(alert) ? Error::tls_certificate : otherwise,
            std::string("the peer refuses: ") + SSL_alert_desc_string_long(alert)};
  }
  const bool has_none = reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE;
  std::string text(words_for(reason));
  if (text.empty()) {
    const char* words = ERR_reason_error_string(error);
    text = words == nullptr ? "OpenSSL does not say why" : words;
  }
  return {has_none ? Error::tls_certificate : otherwise, std::move(text)};
}

}  // namespace

TlsFailure take_failure(Error otherwise) {
  const unsigned long error = ERR_peek_error();
  ERR_clear_error();
  if (error == 0) return {otherwise, "OpenSSL does not say why"};
  if (ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE)
    return {error_code(ENOMEM), error_code(ENOMEM).message()};
  if (ERR_SYSTEM_ERROR(error)) {
    const std::error_code code = error_code(ERR_GET_REASON(error));
    return {code, code.message()};
  }
  return failure_of_tls(error, otherwise);
}

std::string words_of(X509_STORE_CTX* check) {
  const int error = X509_STORE_CTX_get_error(check);
  const X509* certificate = X509_STORE_CTX_get_current_cert(check);
  if (certificate == nullptr) return X509_verify_cert_error_string(error);
  const std::string subject = text_of(X509_get_subject_name(certificate));
  switch (error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "the certificate is for " + joined(names_of(certificate)) + ", not for " +
             expected_name(check);
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "the certificate has expired (" + text_of(X509_get0_notAfter(certificate)) +
             "): " + subject;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "the certificate is not yet valid (" + text_of(X509_get0_notBefore(certificate)) +
             "): " + subject;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return "the certificate is signed by itself: " + subject;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return "the root of the chain is not trusted: " + subject;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return "the issuer of the certificate is not trusted, or missing in the chain: " +
             text_of(X509_get_issuer_name(certificate));
    case X509_V_ERR_INVALID_PURPOSE:
      return "the certificate is not for this purpose: " + subject;
    case X509_V_ERR_INVALID_CA:
    case X509_V_ERR_INVALID_NON_CA:
    case X509_V_ERR_KEYUSAGE_NO_CERTSIGN:
    case X509_V_ERR_PATH_LENGTH_EXCEEDED:
      return "an issuer in the chain is no CA, or may not issue certificates: " + subject;
    case X509_V_ERR_CERT_CHAIN_TOO_LONG:
      return "the chain is too long: " + subject;
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL:
      return "the key of the certificate is too weak: " + subject;
    case X509_V_ERR_CA_MD_TOO_WEAK:
      return "a signature in the chain is too weak: " + subject;
    default:
      return std::string(X509_verify_cert_error_string(error)) + ": " + subject;
  }
}

std::string text_of(const X509_NAME* name) {
  const OwnBio bio(BIO_new(BIO_s_mem()));
  constexpr unsigned long kStyle = XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB;
  if (bio == nullptr || X509_NAME_print_ex(bio.get(), name, 0, kStyle) < 0) return "?";
  return text_in(bio.get());
}

std::vector<std::string> names_of(const X509* certificate) {
  std::vector<std::string> names;
  auto* all = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all, i);
    if (name->type != GEN_DNS && name->type != GEN_IPADD) continue;
    const bool is_name = name->type == GEN_DNS;
    const ASN1_STRING* text = is_name ? name->d.dNSName : name->d.iPAddress;
    const auto* data = reinterpret_cast<const char*>(ASN1_STRING_get0_data(text));
    const std::string_view bytes(data, static_cast<std::size_t>(ASN1_STRING_length(text)));
    names.push_back(is_name ? std::string(bytes) : address_text(bytes));
  }
  GENERAL_NAMES_free(all);
  return names;
}

}  // namespace spate
