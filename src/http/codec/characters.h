// Characters: the classes of RFC 9110 §5.5 and §5.6, and looking for the end of a run of them.
//
// Each search exists twice: by a table, byte after byte, and by vectors. They find the same.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/vector16.h"

namespace spate::http {

enum CharClass : std::uint8_t {
  kToken = 1,    // What names are made of.
  kVisible = 2,  // 0x21 ... 0x7e.
  kValue = 4,    // What a field's value may contain: all but controls, and the tab.
};

consteval std::array<std::uint8_t, 256> make_char_classes() {
  std::array<std::uint8_t, 256> table = {};
  for (int c = 0; c < 256; ++c) {
    const bool is_digit = c >= '0' && c <= '9';
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool is_sign =
        c < 0x7f && std::string_view("!#$%&'*+-.^_`|~").contains(static_cast<char>(c));
    const bool is_visible = c > 0x20 && c < 0x7f;
    const bool is_value = c == '\t' || (c >= 0x20 && c != 0x7f);
    table[static_cast<std::size_t>(c)] =
        static_cast<std::uint8_t>((is_digit || is_letter || is_sign ? kToken : 0) |
                                  (is_visible ? kVisible : 0) | (is_value ? kValue : 0));
  }
  return table;
}
inline constexpr std::array<std::uint8_t, 256> kCharClasses = make_char_classes();

inline bool is_in(char c, CharClass wanted) {
  return (kCharClasses[static_cast<unsigned char>(c)] & wanted) != 0;
}
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

// The first byte that is not in a class; `end` if all are.
inline const char* skip(const char* at, const char* end, CharClass wanted) {
  while (at != end && is_in(*at, wanted)) ++at;
  return at;
}
inline bool consists_of(std::string_view text, CharClass wanted) {
  return skip(text.data(), text.data() + text.size(), wanted) == text.data() + text.size();
}
inline bool is_token(std::string_view text) { return !text.empty() && consists_of(text, kToken); }

std::string_view trimmed(std::string_view text);
// Of ASCII, whatever the locale.
bool equal_ignoring_case(std::string_view a, std::string_view b);
inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

struct TableScan {
  static const char* line_feed(const char* at, const char* end) {
    while (at != end && *at != '\n') ++at;
    return at;
  }
  static const char* value_end(const char* at, const char* end) { return skip(at, end, kValue); }
  static const char* visible_end(const char* at, const char* end) {
    return skip(at, end, kVisible);
  }
};

struct VectorScan {
  static const char* line_feed(const char* at, const char* end) {
    for (; end - at >= Vector16::kSize; at += Vector16::kSize)
      if (const std::uint32_t found = Vector16(at).equal('\n')) return at + std::countr_zero(found);
    return TableScan::line_feed(at, end);
  }
  static const char* value_end(const char* at, const char* end) {
    for (; end - at >= Vector16::kSize; at += Vector16::kSize)
      if (const std::uint32_t found = Vector16(at).controls()) return at + std::countr_zero(found);
    return TableScan::value_end(at, end);
  }
  static const char* visible_end(const char* at, const char* end) {
    for (; end - at >= Vector16::kSize; at += Vector16::kSize)
      if (const std::uint32_t found = Vector16(at).invisible()) return at + std::countr_zero(found);
    return TableScan::visible_end(at, end);
  }
};

using Scan = std::conditional_t<kVectorsPay, VectorScan, TableScan>;

}  // namespace spate::http
