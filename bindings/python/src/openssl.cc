#include "openssl.h"

#include <dlfcn.h>

#include <cstring>

namespace pyspate {
namespace {

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

// Returns a word of an object, counted from the end of its head.
void* word_of(PyObject* object, std::size_t index) {
  void* word;
  std::memcpy(&word, reinterpret_cast<char*>(object) + sizeof(PyObject) + index * sizeof word,
              sizeof word);
  return word;
}

}  // namespace

void load(OpenSsl& openssl) {
  const ExceptionKeeper exception;
  const Ref module(PyImport_ImportModule("_ssl"));
  const Ref file(module ? PyObject_GetAttrString(module.get(), "__file__") : nullptr);
  const char* const path = file ? PyUnicode_AsUTF8(file.get()) : nullptr;
  PyErr_Clear();  // A Python with a built-in module ssl has no file of it, or there is no module.
  if (path == nullptr) return;
  void* const library = ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return;
  openssl.is_there = find(library, "SSL_read", openssl.read) &&
                     find(library, "SSL_write", openssl.write) &&
                     find(library, "SSL_pending", openssl.pending) &&
                     find(library, "SSL_get_error", openssl.get_error) &&
                     find(library, "SSL_get_rbio", openssl.get_read_bio) &&
                     find(library, "SSL_get_wbio", openssl.get_write_bio) &&
                     find(library, "SSL_get_SSL_CTX", openssl.get_context) &&
                     find(library, "BIO_read", openssl.bio_read) &&
                     find(library, "BIO_write", openssl.bio_write) &&
                     find(library, "BIO_ctrl_pending", openssl.bio_pending);
}

// An _ssl._SSLSocket has a socket, the SSL and its context in this order. An _ssl._SSLContext
// begins with the SSL_CTX. The context is compared first, as only a right SSL may be asked.
void* ssl_of(const OpenSsl& openssl, PyObject* object) {
#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030E0000 || defined(Py_GIL_DISABLED)
  return nullptr;  // Not tried with these.
#else
  const ExceptionKeeper exception;
  if (!openssl.is_there) return nullptr;
  const Ref inner(PyObject_GetAttrString(object, "_sslobj"));
  const Ref context(inner ? PyObject_GetAttrString(inner.get(), "context") : nullptr);
  PyErr_Clear();
  if (!context || word_of(inner.get(), 2) != context.get()) return nullptr;
  void* const ssl = word_of(inner.get(), 1);
  return ssl != nullptr && openssl.get_context(ssl) == word_of(context.get(), 0) ? ssl : nullptr;
#endif
}

}  // namespace pyspate
