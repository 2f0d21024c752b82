// Character classes of RFC 9110 §5.5 and §5.6, and searches for the end of a run of them.
//
// Each search exists twice, with the same results: by a table, byte by byte, and by vectors.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/vector16.h"

namespace spate::http {

enum CharClass : std::uint8_t {
  kToken = 1,    // Bytes of a token.
  kVisible = 2,  // 0x21 ... 0x7e.
  kValue = 4,    // Bytes of a field value: all except controls, but with the tab.
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

// Returns the first byte that is not in the class; `end` if all are.
inline const char* skip(const char* at, const char* end, CharClass wanted) {
  while (at != end && is_in(*at, wanted)) ++at;
  return at;
}
inline bool consists_of(std::string_view text, CharClass wanted) {
  return skip(text.data(), text.data() + text.size(), wanted) == text.data() + text.size();
}
inline bool is_token(std::string_view text) { return !text.empty() && consists_of(text, kToken); }

std::string_view trimmed(std::string_view text);
inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }
// Compares ASCII, independent of the locale.
inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

// `begin` is the start of the readable text, at or before `at`.
struct TableScan {
  static const char* line_feed(const char*, const char* at, const char* end) {
    while (at != end && *at != '\n') ++at;
    return at;
  }
  static const char* value_end(const char*, const char* at, const char* end) {
    return skip(at, end, kValue);
  }
  static const char* visible_end(const char*, const char* at, const char* end) {
    return skip(at, end, kVisible);
  }
  static const char* name_end(const char*, const char* at, const char* end) {
    return skip(at, end, kToken);
  }
};

struct VectorScan {
  static const char* line_feed(const char* begin, const char* at, const char* end) {
    return find(begin, at, end, [](Vector16 bytes) { return bytes.equal('\n'); });
  }
  static const char* value_end(const char* begin, const char* at, const char* end) {
    return find(begin, at, end, [](Vector16 bytes) { return bytes.controls(); });
  }
  static const char* visible_end(const char* begin, const char* at, const char* end) {
    return find(begin, at, end, [](Vector16 bytes) { return bytes.invisible(); });
  }
  // Fast path: most names have only letters and "-", and end with a colon.
  static const char* name_end(const char* begin, const char* at, const char* end) {
    at = find(begin, at, end, [](Vector16 bytes) { return bytes.not_of_names(); });
    return at != end && *at == ':' ? at : skip(at, end, kToken);
  }

 private:
  // Returns the first byte that `mask_of` finds; `end` if none. Usually it is near the beginning.
  template <class MaskOf>
  [[gnu::always_inline]] static const char* find(const char* begin, const char* at, const char* end,
                                                 MaskOf mask_of) {
    if (end - at >= Vector16::kSize) {
      if (const std::uint32_t found = mask_of(Vector16(at))) return at + std::countr_zero(found);
      at += Vector16::kSize;
    }
    return find_further(begin, at, end, mask_of);
  }
  template <class MaskOf>
  [[gnu::noinline]] static const char* find_further(const char* begin, const char* at,
                                                    const char* end, MaskOf mask_of) {
    constexpr std::ptrdiff_t kStep = 2 * Vector16::kSize;
    for (; end - at >= kStep; at += kStep) {
      const std::uint32_t behind = mask_of(Vector16(at + Vector16::kSize));
      if (const std::uint32_t found = mask_of(Vector16(at)) | behind << Vector16::kSize)
        return at + std::countr_zero(found);
    }
    return find_in_rest(begin, at, end, mask_of);
  }
  // Less than two vectors are left. The last vector overlaps bytes in front of them.
  template <class MaskOf>
  static const char* find_in_rest(const char* begin, const char* at, const char* end,
                                  MaskOf mask_of) {
    if (end - at >= Vector16::kSize) {
      if (const std::uint32_t found = mask_of(Vector16(at))) return at + std::countr_zero(found);
      at += Vector16::kSize;
    }
    const auto size = static_cast<std::uint32_t>(end - at);
    std::uint32_t found = 0;
    if (end - begin >= Vector16::kSize) {
      found = mask_of(Vector16(end - Vector16::kSize)) >> (Vector16::kSize - size);
    } else if (size > 0) {
      char copy[Vector16::kSize] = {};
      std::memcpy(copy, at, size);
      found = mask_of(Vector16(copy)) & ((1U << size) - 1);
    }
    return found == 0 ? end : at + std::countr_zero(found);
  }
};

using Scan = std::conditional_t<kVectorsPay, VectorScan, TableScan>;

// Returns whether a field may be sent with this value (RFC 9110 §5.5): no control except the tab.
// All values that are sent are checked here, in both protocols and on both sides.
inline bool is_field_value(std::string_view value) {
  const char* const end = value.data() + value.size();
  return Scan::value_end(value.data(), value.data(), end) == end;
}

}  // namespace spate::http
