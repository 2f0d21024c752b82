#include "http/codec/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace spate::http {
namespace {

// A reference decoder. Returns the size of the first character, or 0 if it is not valid.
std::size_t decode(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0;
  if (size == 0 || first >= 0xf8) return 0;
  unsigned value = first & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3f);
  }
  const unsigned least = size == 2 ? 0x80 : size == 3 ? 0x800 : 0x10000;
  const bool is_surrogate = value >= 0xd800 && value <= 0xdfff;
  return value < least || value > 0x10ffff || is_surrogate ? 0 : size;
}

bool is_text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = decode(text);
    if (size == 0 || size > text.size()) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string bytes(std::initializer_list<unsigned> values) {
  std::string text;
  for (const unsigned each : values) text += static_cast<char>(each);
  return text;
}

TEST(Utf8Check, ClassifiesAllTextsUpToTwoBytesAndAllPrefixesOfThree) {
  for (unsigned a = 0; a < 256; ++a) {
    ASSERT_EQ(is_utf8(bytes_of(bytes({a}))), is_text(bytes({a}))) << a;
    for (unsigned b = 0; b < 256; ++b) {
      const std::string two = bytes({a, b});
      ASSERT_EQ(is_utf8(bytes_of(two)), is_text(two)) << a << " " << b;
      for (const unsigned c : {0u, 0x7fu, 0x80u, 0xbfu, 0xc0u, 0xffu}) {
        const std::string three = bytes({a, b, c});
        ASSERT_EQ(is_utf8(bytes_of(three)), is_text(three)) << a << " " << b << " " << c;
        if (a < 0xf0 || b < 0x80) continue;
        const std::string four = bytes({a, b, c, 0x80});
        ASSERT_EQ(is_utf8(bytes_of(four)), is_text(four)) << a << " " << b << " " << c;
      }
    }
  }
}

TEST(Utf8Check, FindsBadByteAtEveryPosition) {
  for (std::size_t size = 1; size < 80; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      for (const char bad : {'\x80', '\xff', '\xc3'}) {
        std::string text(size, 'a');
        text[at] = bad;
        ASSERT_FALSE(is_utf8(bytes_of(text))) << size << " " << at;
      }
    }
    ASSERT_TRUE(is_utf8(bytes_of(std::string(size, 'a'))));
  }
}

TEST(Utf8Check, DoesNotDependOnSplitOfText) {
  const std::string text = "a\u00e9\u4e2d\U0001f600 plain and a long one, \u20ac\U0010ffff";
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); ++second) {
      Utf8Check check;
      ASSERT_TRUE(check.add(bytes_of(text.substr(0, first))));
      ASSERT_EQ(check.is_complete(), is_text(text.substr(0, first)));
      ASSERT_TRUE(check.add(bytes_of(text.substr(first, second - first))));
      ASSERT_TRUE(check.add(bytes_of(text.substr(second))));
      ASSERT_TRUE(check.is_complete());
    }
  }
}

TEST(Utf8Check, FailsAtFirstInvalidByte) {
  Utf8Check check;
  EXPECT_TRUE(check.add(bytes_of("\xf4")));
  EXPECT_FALSE(check.add(bytes_of("\x90")));
  EXPECT_FALSE(check.add(bytes_of("a")));
  EXPECT_FALSE(check.add({}));
  EXPECT_FALSE(check.is_complete());
}

}  // namespace
}  // namespace spate::http
