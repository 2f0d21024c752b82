// Certificates for tests, valid and invalid ones, generated on demand, so that no stored
// certificate can expire.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "spate/net/tls.h"

namespace spate::testing {

// The contents of a certificate.
struct CertificatePlan {
  std::string subject = "somebody";
  std::vector<std::string> names{};  // "a.example", "IP:127.0.0.1".
  long begins = -3600;               // Seconds from now.
  long ends = 24 * 3600;
  bool is_ca = false;
  std::string usage = "serverAuth,clientAuth";  // Empty: no extension.
  std::string key_usage{};                      // Empty: the default.
  int rsa_bits = 0;                             // 0: an elliptic-curve key.
  bool has_weak_digest = false;                 // Signed with SHA-1.
};

// A certificate and its key (PEM).
class Certificate {
 public:
  // Signed by `issuer`, or self-signed.
  explicit Certificate(const CertificatePlan& plan, const Certificate* issuer = nullptr);
  ~Certificate();
  Certificate(Certificate&& other) noexcept;

  const std::string& pem() const { return pem_; }
  const std::string& key_pem() const { return key_pem_; }
  // Returns it with the certificates between it and a root.
  TlsIdentity identity(const std::vector<const Certificate*>& between = {}) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  std::string pem_;
  std::string key_pem_;
};

// Returns a root, and a server's certificate issued by it for localhost, a.example, *.b.example and
// 127.0.0.1; made once per process.
const Certificate& test_root();
const Certificate& test_server();

// Contexts of these two; the client may connect to "localhost".
TlsContext test_server_context();
TlsContext test_client_context();

}  // namespace spate::testing
