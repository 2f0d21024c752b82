// Text: bytes in one direction, each of which is determined by its position.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "spate/net/bytes.h"

namespace spate::testing {

// An endless text, in lines of 16; it repeats itself after 25 of them.
inline constexpr std::size_t kPeriod = 400;
inline constexpr std::size_t kLongest = 400'000;
inline const std::string& tape() {
  static const std::string text = [] {
    std::string made;
    for (std::size_t i = 0; i < kPeriod + kLongest; ++i)
      made += i % 16 == 15 ? '\n' : static_cast<char>('a' + i * 7 % 25);
    return made;
  }();
  return text;
}

// One direction of a connection.
struct Text {
  std::string_view next(std::size_t size) const {
    return std::string_view(tape()).substr(sent % kPeriod, size);
  }
  void check(Bytes bytes) {
    const std::string_view expected = std::string_view(tape()).substr(read % kPeriod, bytes.size());
    EXPECT_TRUE(text_of(bytes) == expected) << "lost, or doubled, at " << read;
    read += bytes.size();
    EXPECT_LE(read, sent);
  }

  std::size_t sent = 0;
  std::size_t read = 0;
};

}  // namespace spate::testing
