// Bytes as hexadecimal digits.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace spate {

inline constexpr std::string_view kHexDigits = "0123456789abcdef";
inline constexpr std::string_view kUpperHexDigits = "0123456789ABCDEF";

// Appends the two digits of a byte.
inline void append_hex(std::string& text, unsigned char byte,
                       std::string_view digits = kHexDigits) {
  text += digits[byte >> 4];
  text += digits[byte & 15];
}

// Returns the digits in lower case.
inline std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) append_hex(text, std::to_integer<unsigned char>(byte));
  return text;
}

}  // namespace spate
