#include "certificate.h"

#include <openssl/x509.h>

#include <memory>

namespace spate_server {

PyObject* subject_of(PyObject*, PyObject* certificate) {
  if (!PyBytes_Check(certificate)) {
    PyErr_SetString(PyExc_TypeError, "the certificate must be bytes");
    return nullptr;
  }
  const auto* at = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(certificate));
  const std::unique_ptr<X509, void (*)(X509*)> parsed(
      d2i_X509(nullptr, &at, static_cast<long>(PyBytes_GET_SIZE(certificate))), X509_free);
  const std::unique_ptr<BIO, int (*)(BIO*)> text(BIO_new(BIO_s_mem()), BIO_free);
  // These flags leave UTF-8 as it is.
  constexpr unsigned long kStyle = XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB;
  if (!parsed || !text ||
      X509_NAME_print_ex(text.get(), X509_get_subject_name(parsed.get()), 0, kStyle) < 0) {
    PyErr_SetString(PyExc_ValueError, "the certificate cannot be read");
    return nullptr;
  }
  char* name = nullptr;
  const long size = BIO_get_mem_data(text.get(), &name);
  return PyUnicode_DecodeUTF8(name, size, "replace");
}

}  // namespace spate_server
