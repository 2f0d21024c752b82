// Errors as negative numbers: errnos as they are, our own below those.
#include <algorithm>
#include <cstring>
#include <string>

#include "c/loop.h"
#include "spate/net/resolver.h"

namespace spate::c {

namespace {

constexpr int kOwn = 10'000;
constexpr int kNames = 11'000;
constexpr int kEnd = 12'000;

static_assert(SPATE_E_TLS_PROTOCOL == -kOwn - static_cast<int>(Error::tls_protocol));
static_assert(SPATE_E_BAD_NAME == -kNames - static_cast<int>(NameError::bad_name));

std::error_code to_error(int code) {
  const int number = static_cast<int>(-static_cast<long>(code));
  if (number >= kNames && number < kEnd) return {number - kNames, name_category()};
  if (number >= kOwn && number < kNames) return {number - kOwn, error_category()};
  return {number, std::system_category()};
}

}  // namespace

int to_code(std::error_code error) {
  const int base = error.category() == error_category()  ? kOwn
                   : error.category() == name_category() ? kNames
                                                         : 0;
  return error ? -(base + error.value()) : 0;
}

const char* copy_text(std::string_view from, char* text, std::size_t size) {
  if (size == 0) return text;
  const std::size_t length = std::min(from.size(), size - 1);
  std::memcpy(text, from.data(), length);
  text[length] = '\0';
  return text;
}

}  // namespace spate::c

const char* spate_strerror(int error, char* text, size_t size) {
  return spate::c::copy_text(spate::c::to_error(error).message(), text, size);
}
