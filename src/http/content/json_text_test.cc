#include "http/content/json_text.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace spate::http {
namespace {

std::string json_of(std::string_view text) {
  std::string json;
  append_json_text(json, text);
  return json;
}

TEST(JsonText, IsEscaped) {
  EXPECT_EQ(json_of("a\"\\/\n\t\x7f</script>"), "\"a\\\"\\\\/\\n\\u0009\\u007f\\u003c/script>\"");
  EXPECT_EQ(json_of(std::string_view("\0\x1f", 2)), "\"\\u0000\\u001f\"");
  EXPECT_EQ(json_of(""), "\"\"");
}

TEST(JsonText, KeepsUtf8AndReplacesInvalidBytes) {
  for (const char* good : {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf",
                           "\xf4\x8f\xbf\xbf", "\xee\x80\x80"})
    EXPECT_EQ(json_of(good), "\"" + std::string(good) + "\"");
  for (const auto& [bad, count] : std::vector<std::pair<std::string, int>>{{"\x80", 1},
                                                                           {"\xc3", 1},
                                                                           {"\xc0\x80", 2},
                                                                           {"\xc1\xbf", 2},
                                                                           {"\xe0\x80\x80", 3},
                                                                           {"\xed\xa0\x80", 3},
                                                                           {"\xf0\x80\x80\x80", 4},
                                                                           {"\xf4\x90\x80\x80", 4},
                                                                           {"\xf5\x80\x80\x80", 4},
                                                                           {"\xff", 1},
                                                                           {"\xe2\x82", 2}}) {
    std::string wanted = "\"";
    for (int i = 0; i < count; ++i) wanted += "\\ufffd";
    EXPECT_EQ(json_of(bad), wanted + "\"") << bad;
  }
  EXPECT_EQ(json_of("\xc3"
                    "a"),
            "\"\\ufffda\"");
}

}  // namespace
}  // namespace spate::http
