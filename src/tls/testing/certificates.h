// Certificates for tests, good and bad, made when they are asked for: nothing that expires is kept
// anywhere.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "spate/net/tls.h"

namespace spate::testing {

// What is to be written in a certificate.
struct CertificatePlan {
  std::string subject = "somebody";
  std::vector<std::string> names{};  // "a.example", "IP:127.0.0.1".
  long begins = -3600;               // Seconds from now.
  long ends = 24 * 3600;
  bool is_ca = false;
  std::string usage = "serverAuth,clientAuth";  // Empty: not said.
  std::string key_usage{};                      // Empty: what fits.
  int rsa_bits = 0;                             // 0: a key on a curve.
  bool has_weak_digest = false;                 // Signed by way of SHA-1.
};

// A certificate and its key (PEM).
class Certificate {
 public:
  // Signed by `issuer`, or by itself.
  explicit Certificate(const CertificatePlan& plan, const Certificate* issuer = nullptr);
  ~Certificate();
  Certificate(Certificate&& other) noexcept;

  const std::string& pem() const { return pem_; }
  const std::string& key_pem() const { return key_pem_; }
  // With what comes between it and a root.
  TlsIdentity identity(const std::vector<const Certificate*>& between = {}) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  std::string pem_;
  std::string key_pem_;
};

// A root, and a server's certificate of its for localhost, a.example, *.b.example and 127.0.0.1;
// made once a process.
const Certificate& test_root();
const Certificate& test_server();

// Contexts of those two: "localhost" is whom the client may ask for.
TlsContext test_server_context();
TlsContext test_client_context();

}  // namespace spate::testing
