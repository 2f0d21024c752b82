// Owning pointers to OpenSSL's objects.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

namespace spate {

template <auto release>
struct OpenSslEnd {
  template <class T>
  void operator()(T* object) const {
    release(object);
  }
};

using OwnBio = std::unique_ptr<BIO, OpenSslEnd<&BIO_free>>;
using OwnKey = std::unique_ptr<EVP_PKEY, OpenSslEnd<&EVP_PKEY_free>>;
using OwnCertificate = std::unique_ptr<X509, OpenSslEnd<&X509_free>>;
using OwnStore = std::unique_ptr<X509_STORE, OpenSslEnd<&X509_STORE_free>>;
using OwnContext = std::unique_ptr<SSL_CTX, OpenSslEnd<&SSL_CTX_free>>;
using OwnSsl = std::unique_ptr<SSL, OpenSslEnd<&SSL_free>>;
using OwnSession = std::unique_ptr<SSL_SESSION, OpenSslEnd<&SSL_SESSION_free>>;

struct ChainEnd {
  void operator()(STACK_OF(X509) * chain) const { sk_X509_pop_free(chain, &X509_free); }
};
using OwnChain = std::unique_ptr<STACK_OF(X509), ChainEnd>;

}  // namespace spate
