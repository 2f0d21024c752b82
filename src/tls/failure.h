// Converts OpenSSL's errors to an error code with a description.
#pragma once

#include <string>

#include "spate/net/tls.h"
#include "tls/openssl.h"

namespace spate {

// Describes the oldest error in this thread's queue, and clears the queue. `otherwise` is the code
// for errors other than system errors, lack of memory, and certificate errors.
TlsFailure take_failure(Error otherwise);

// Describes the error of the certificate that is being checked.
std::string words_of(X509_STORE_CTX* check);

// Formats a name in one line: "CN = a.example, O = Example".
std::string text_of(const X509_NAME* name);
// Returns the names of a certificate: DNS names and IP addresses.
std::vector<std::string> names_of(const X509* certificate);

}  // namespace spate
