// The characters of RFC 3986.
#pragma once

#include <string_view>

#include "compat/libevent/ascii.h"

namespace spate::libevent {

constexpr bool is_one_of(char c, std::string_view set) {
  return set.find(c) != std::string_view::npos;
}

constexpr bool is_unreserved(char c) { return is_digit(c) || is_letter(c) || is_one_of(c, "-._~"); }

// Returns true if the text begins with an encoded character.
constexpr bool begins_encoded(std::string_view text) {
  return text.size() >= 3 && text[0] == '%' && is_hex_digit(text[1]) && is_hex_digit(text[2]);
}

}  // namespace spate::libevent
