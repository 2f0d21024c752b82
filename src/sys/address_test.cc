// Texts for the C library: with a terminator, within the copy's bounds.
#include "sys/address.h"

#include <gtest/gtest.h>

#include <string_view>

namespace spate::sys {
namespace {

TEST(SysAddress, TerminatesTextThatFits) {
  struct {
    char copy[4];
    char behind = '!';
  } memory;
  EXPECT_TRUE(terminate("abc", memory.copy));
  EXPECT_STREQ(memory.copy, "abc");
  EXPECT_TRUE(terminate("", memory.copy));
  EXPECT_STREQ(memory.copy, "");
  for (const std::string_view text :
       {std::string_view("abcd"), std::string_view("abcde"), std::string_view("a\0b", 3)})
    EXPECT_FALSE(terminate(text, memory.copy)) << text;
  EXPECT_EQ(memory.behind, '!');
}

}  // namespace
}  // namespace spate::sys
