#include "http/codec/base64.h"

#include <gtest/gtest.h>

namespace spate::http {
namespace {

// Those of RFC 4648 §10.
TEST(Base64, encodes_text_of_any_length) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(Base64, has_two_digits_that_are_no_letters_or_numbers) {
  EXPECT_EQ(base64("\xfb\xff"), "+/8=");
}

}  // namespace
}  // namespace spate::http
