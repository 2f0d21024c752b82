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

}  // namespace spate::http
