// The texts of errors.
#include "c/code.h"
#include "spate.h"

namespace spate::c {

static_assert(SPATE_E_TLS_PROTOCOL == -kOwn - static_cast<int>(Error::tls_protocol));
static_assert(SPATE_E_TRUNCATED == -kOwn - static_cast<int>(Error::truncated));
static_assert(SPATE_E_BAD_NAME == -kNames - static_cast<int>(NameError::bad_name));

}  // namespace spate::c

const char* spate_strerror(int error, char* text, size_t size) {
  return spate::c::copy_text(spate::c::to_error(error).message(), text, size);
}
