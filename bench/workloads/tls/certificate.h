// A server's certificate for localhost and its key, ECDSA on P-256, as files.
#ifndef BENCH_WORKLOADS_TLS_CERTIFICATE_H
#define BENCH_WORKLOADS_TLS_CERTIFICATE_H

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <string>
#include <utility>

#include "harness/contestant.h"

class CertificateFiles {
 public:
  // Uses the files that make_in() left in `directory`. If `directory` is empty, makes new ones and
  // deletes them in the destructor.
  explicit CertificateFiles(std::string directory) : is_temporary_(directory.empty()) {
    std::string name = bench_temporary_directory() + std::string("/spate-bench-XXXXXX");
    if (is_temporary_ && mkdtemp(name.data()) == nullptr) bench_die(name.c_str());
    directory_ = is_temporary_ ? name : std::move(directory);
    if (is_temporary_) make_in(directory_);
    FILE* file = fopen(chain().c_str(), "r");
    if (file == nullptr || PEM_read_X509(file, &certificate_, nullptr, nullptr) == nullptr)
      bench_die("the certificate");
    fclose(file);
  }
  ~CertificateFiles() {
    X509_free(certificate_);
    if (!is_temporary_) return;
    unlink(chain().c_str());
    unlink(key().c_str());
    rmdir(directory_.c_str());
  }
  CertificateFiles(const CertificateFiles&) = delete;
  CertificateFiles& operator=(const CertificateFiles&) = delete;

  static void make_in(const std::string& directory) {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = make(key);
    write(directory + kChain, [=](FILE* file) { return PEM_write_X509(file, certificate); });
    write(directory + kKey, [=](FILE* file) {
      return PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
    });
    X509_free(certificate);
    EVP_PKEY_free(key);
  }

  std::string chain() const { return directory_ + kChain; }
  std::string key() const { return directory_ + kKey; }
  const X509* certificate() const { return certificate_; }

 private:
  static constexpr char kChain[] = "/chain.pem", kKey[] = "/key.pem";

  static X509* make(EVP_PKEY* key) {
    X509* made = X509_new();
    X509_set_version(made, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
    X509_gmtime_adj(X509_getm_notBefore(made), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made), 30 * 24 * 3600);
    X509_NAME* name = X509_get_subject_name(made);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(made, name);
    X509_EXTENSION* names =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost");
    X509_add_ext(made, names, -1);
    X509_EXTENSION_free(names);
    X509_set_pubkey(made, key);
    if (X509_sign(made, key, EVP_sha256()) == 0) bench_die("X509_sign");
    return made;
  }

  template <class Put>
  static void write(const std::string& path, Put put) {
    FILE* file = fopen(path.c_str(), "w");
    if (file == nullptr || put(file) != 1 || fclose(file) != 0) bench_die(path.c_str());
  }

  const bool is_temporary_;
  std::string directory_;
  X509* certificate_ = nullptr;
};

#endif
