#include "http/codec/base64.h"

#include <gtest/gtest.h>

namespace spate::http {
namespace {

// The vectors of RFC 4648 §10.
TEST(Base64, EncodesTextOfAnyLength) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(Base64, HasTwoSymbolsBesidesLettersAndDigits) {
  EXPECT_EQ(base64("\xfb\xff"), "+/8=");
}

TEST(Base64, DecodesItsOwnOutput) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(decode_base64(base64(text)), text);
    text += static_cast<char>(i * 7);
  }
}

TEST(Base64, RefusesNonCanonicalText) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Zm=v", "=Zm9", "Zm9v====",
                           "Zm 9", "Zm9-", "Zm9v\n"})
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace spate::http
