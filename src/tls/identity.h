// Reads certificates and keys from PEM.
#pragma once

#include <string>

#include "spate/net/tls.h"
#include "tls/openssl.h"

namespace spate {

// A certificate, its key, and the certificates between it and a root.
struct Identity {
  OwnCertificate certificate;
  OwnKey key;
  OwnChain chain;
};

// Reads the files into `chain` and `key`, which are used from then on. The names of the files are
// kept for texts of errors.
TlsResult<TlsIdentity> read_files(const TlsIdentity& identity);
// Parses the result of read_files().
TlsResult<Identity> load(const TlsIdentity& identity);

// Returns the contents of a file.
TlsResult<std::string> read_text(const std::string& path);
// Adds the certificates in a text to the trusted ones. At least one. An error names `file`, unless
// it is empty.
TlsResult<void> trust(X509_STORE& store, const std::string& text, const std::string& file);
// Returns their names, which a server sends as its accepted issuers. nullptr when memory runs out.
STACK_OF(X509_NAME) * issuers_in(const std::string& text);

}  // namespace spate
