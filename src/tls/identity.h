// Certificates and keys, read from PEM.
#pragma once

#include <string>

#include "spate/net/tls.h"
#include "tls/openssl.h"

namespace spate {

// A certificate, its key, and what comes between it and a root.
struct Identity {
  OwnCertificate certificate;
  OwnKey key;
  OwnChain chain;
};

// The same with the files read: `chain` and `key` are what counts from then on.
TlsResult<TlsIdentity> read_files(const TlsIdentity& identity);
// Of what read_files() has returned.
TlsResult<Identity> load(const TlsIdentity& identity);

// The text of a file.
TlsResult<std::string> read_text(const std::string& path);
// Certificates in a text, each added to those that are trusted. At least one.
TlsResult<void> trust(X509_STORE& store, const std::string& text);
// Their names, for a server to say whom it trusts. nullptr when memory runs out.
STACK_OF(X509_NAME) * issuers_in(const std::string& text);

}  // namespace spate
