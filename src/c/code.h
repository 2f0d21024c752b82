// Errors as negative numbers: errnos negated, spate's own below those. Inline, because spate::tls
// has C functions, too.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>
#include <system_error>

#include "spate/error.h"
#include "spate/net/resolver.h"

namespace spate::c {

inline constexpr int kOwn = 10'000;
inline constexpr int kNames = 11'000;
inline constexpr int kEnd = 12'000;

// Returns 0, or the negative code.
inline int to_code(std::error_code error) {
  const int base = error.category() == error_category()  ? kOwn
                   : error.category() == name_category() ? kNames
                                                         : 0;
  return error ? -(base + error.value()) : 0;
}

inline std::error_code to_error(int code) {
  const int number = static_cast<int>(-static_cast<long>(code));
  if (number >= kNames && number < kEnd) return {number - kNames, name_category()};
  if (number >= kOwn && number < kNames) return {number - kOwn, error_category()};
  return {number, std::system_category()};
}

// Copies as much as fits, and a NUL; returns `text`.
inline const char* copy_text(std::string_view from, char* text, std::size_t size) {
  if (size == 0) return text;
  const std::size_t length = std::min(from.size(), size - 1);
  std::memcpy(text, from.data(), length);
  text[length] = '\0';
  return text;
}

}  // namespace spate::c
