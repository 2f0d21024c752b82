// The functions of the OpenSSL that Python's own module ssl has loaded.
#pragma once

#include <cstddef>

#include "python.h"

namespace pyspate {

struct OpenSsl {
  int (*read)(void* ssl, void* to, int size);
  int (*write)(void* ssl, const void* from, int size);
  int (*pending)(const void* ssl);
  int (*get_error)(const void* ssl, int result);
  void* (*get_read_bio)(const void* ssl);
  void* (*get_write_bio)(const void* ssl);
  void* (*get_context)(const void* ssl);
  int (*bio_read)(void* bio, void* to, int size);
  int (*bio_write)(void* bio, const void* from, int size);
  std::size_t (*bio_pending)(void* bio);
  bool is_there;
};

inline constexpr int kWantsRead = 2;  // SSL_ERROR_WANT_READ

// Finds the functions. Where that fails, `is_there` stays false.
void load(OpenSsl& openssl);
// Returns the SSL of an ssl.SSLObject; null if Python's structs are not as expected.
void* ssl_of(const OpenSsl& openssl, PyObject* object);

}  // namespace pyspate
