// The characters of a URI, by the component in which they are allowed (RFC 3986 §2, §3).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spate::http {

enum UriClass : std::uint8_t {
  kUnreserved = 1,    // Letters, digits, - . _ ~
  kSubDelims = 2,     // ! $ & ' ( ) * + , ; =
  kUriHex = 4,        // 0-9 a-f A-F
  kUriDigit = 8,      // 0-9
  kUriAlpha = 16,     // a-z A-Z
  kPathByte = 32,     // In a path as sent: pchar except escapes, /, and from browsers []|^
  kQueryByte = 64,    // In a query as sent: the above, ?, %, and \ ` { }
  kSchemeByte = 128,  // Letters, digits, + - .
};

consteval std::array<std::uint8_t, 256> make_uri_classes() {
  std::array<std::uint8_t, 256> classes{};
  const auto add = [&classes](std::string_view bytes, int bits) {
    for (const char c : bytes)
      classes[static_cast<unsigned char>(c)] |= static_cast<std::uint8_t>(bits);
  };
  constexpr int kSent = kPathByte | kQueryByte;
  add("0123456789", kUnreserved | kUriHex | kUriDigit | kSchemeByte | kSent);
  add("abcdefABCDEF", kUriHex);
  add("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
      kUnreserved | kUriAlpha | kSchemeByte | kSent);
  add("-._~", kUnreserved | kSent);
  add("!$&'()*+,;=", kSubDelims | kSent);
  add("+-.", kSchemeByte);
  add(":@/[]|^", kSent);
  add("?%\\`{}", kQueryByte);
  return classes;
}
inline constexpr std::array<std::uint8_t, 256> kUriClasses = make_uri_classes();

constexpr bool is_of(char c, int classes) {
  return (kUriClasses[static_cast<unsigned char>(c)] & classes) != 0;
}

// Returns how many bytes at the front are of the classes.
constexpr std::size_t span_of(std::string_view text, int classes) {
  std::size_t count = 0;
  while (count < text.size() && is_of(text[count], classes)) ++count;
  return count;
}
constexpr bool is_all_of(std::string_view text, int classes) {
  return span_of(text, classes) == text.size();
}

// Returns whether the '%' at `at` begins an escape.
constexpr bool is_escape(std::string_view text, std::size_t at) {
  return text.size() - at >= 3 && is_of(text[at + 1], kUriHex) && is_of(text[at + 2], kUriHex);
}
constexpr int value_of_hex(char c) { return is_of(c, kUriDigit) ? c - '0' : (c | 0x20) - 'a' + 10; }
constexpr char escaped_byte(std::string_view text, std::size_t at) {
  return static_cast<char>(value_of_hex(text[at + 1]) << 4 | value_of_hex(text[at + 2]));
}

// Returns how many bytes at the front are of the classes, which do not include '%', or in an
// escape.
constexpr std::size_t escaped_span_of(std::string_view text, int classes) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (is_of(text[at], classes)) continue;
    if (text[at] != '%' || !is_escape(text, at)) break;
    at += 2;
  }
  return at;
}

}  // namespace spate::http
