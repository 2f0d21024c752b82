// What OpenSSL says of an error, as an error code and in words.
#pragma once

#include <string>

#include "spate/net/tls.h"
#include "tls/openssl.h"

namespace spate {

// Of the oldest error in this thread's queue, which is empty afterwards. `otherwise` is for what is
// neither a system's error nor want of memory, nor about certificates.
TlsFailure take_failure(Error otherwise);

// Of the certificate that a check is at.
std::string words_of(X509_STORE_CTX* check);

// A name in one line: "CN = a.example, O = Example".
std::string text_of(const X509_NAME* name);
// For whom a certificate is: DNS names and IP addresses.
std::vector<std::string> names_of(const X509* certificate);

}  // namespace spate
