// The characters of a URI, by the part that they may be in (RFC 3986 §2, §3).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spate::http {

enum UriClass : std::uint8_t {
  kUnreserved = 1,    // Letters, digits, - . _ ~
  kSubDelims = 2,     // ! $ & ' ( ) * + , ; =
  kHex = 4,           // 0-9 a-f A-F
  kDigit = 8,         // 0-9
  kAlpha = 16,        // a-z A-Z
  kPathByte = 32,     // Of a path as it is sent: pchar, /, and what browsers leave as it is: []|^
  kQueryByte = 64,    // Of a query as it is sent: the above, ?, and \ ` { }
  kSchemeByte = 128,  // Letters, digits, + - .
};

consteval std::array<std::uint8_t, 256> make_uri_classes() {
  std::array<std::uint8_t, 256> classes{};
  const auto add = [&classes](std::string_view bytes, int bits) {
    for (const char c : bytes)
      classes[static_cast<unsigned char>(c)] |= static_cast<std::uint8_t>(bits);
  };
  constexpr int kSent = kPathByte | kQueryByte;
  add("0123456789", kUnreserved | kHex | kDigit | kSchemeByte | kSent);
  add("abcdefABCDEF", kHex);
  add("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
      kUnreserved | kAlpha | kSchemeByte | kSent);
  add("-._~", kUnreserved | kSent);
  add("!$&'()*+,;=", kSubDelims | kSent);
  add("+-.", kSchemeByte);
  add(":@/%[]|^", kSent);
  add("?\\`{}", kQueryByte);
  return classes;
}
inline constexpr std::array<std::uint8_t, 256> kUriClasses = make_uri_classes();

constexpr bool is_of(char c, int classes) {
  return (kUriClasses[static_cast<unsigned char>(c)] & classes) != 0;
}

// How many bytes at the front are of the classes.
constexpr std::size_t span_of(std::string_view text, int classes) {
  std::size_t count = 0;
  while (count < text.size() && is_of(text[count], classes)) ++count;
  return count;
}
constexpr bool is_all_of(std::string_view text, int classes) {
  return span_of(text, classes) == text.size();
}

// Whether each % begins an escape: two digits follow.
constexpr bool has_good_escapes(std::string_view text) {
  for (std::size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 3)) {
    if (text.size() - at < 3 || !is_of(text[at + 1], kHex) || !is_of(text[at + 2], kHex))
      return false;
  }
  return true;
}

constexpr char to_lower_ascii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr bool is_same_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (to_lower_ascii(a[i]) != to_lower_ascii(b[i])) return false;
  }
  return true;
}

}  // namespace spate::http
