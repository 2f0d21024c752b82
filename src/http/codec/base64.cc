#include "http/codec/base64.h"

#include <algorithm>
#include <cstdint>

namespace spate::http {

namespace {

constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64(std::string_view text) {
  std::string encoded;
  encoded.reserve((text.size() + 2) / 3 * 4);
  while (!text.empty()) {
    const std::size_t count = std::min<std::size_t>(text.size(), 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < count ? static_cast<std::uint8_t>(text[i]) : 0);
    for (std::size_t i = 0; i < 4; ++i)
      encoded += i <= count ? kBase64Digits[bits >> (18 - 6 * i) & 63] : '=';
    text.remove_prefix(count);
  }
  return encoded;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return {};
  std::string decoded;
  decoded.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  std::size_t count = 0;
  while (count < text.size() && text[count] != '=') {
    const std::size_t digit = kBase64Digits.find(text[count]);
    if (digit == std::string_view::npos) return {};
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if (++count % 4 != 1) decoded += static_cast<char>(bits >> (6 - 2 * ((count - 1) % 4)));
  }
  // Only the canonical form is accepted, so that a secret has one spelling.
  if (base64(decoded) != text) return {};
  return decoded;
}

}  // namespace spate::http
