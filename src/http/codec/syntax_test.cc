#include "http/codec/syntax.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace spate::http {
namespace {

std::vector<std::string> elements_of(std::string_view list, char separator = ',') {
  std::vector<std::string> elements;
  while (!list.empty()) elements.emplace_back(take_element(list, separator));
  return elements;
}

TEST(Syntax, ParsesElementsOfList) {
  using Elements = std::vector<std::string>;
  EXPECT_EQ(elements_of("a, b ,\tc"), (Elements{"a", "b", "c"}));
  EXPECT_EQ(elements_of(" , ,a,,"), (Elements{"", "", "a", ""}));
  EXPECT_EQ(elements_of("\"a,b\", c"), (Elements{"\"a,b\"", "c"}));
  EXPECT_EQ(elements_of("\"a\\\",b\",c"), (Elements{"\"a\\\",b\"", "c"}));
  EXPECT_EQ(elements_of("\"a, b"), (Elements{"\"a, b"}));
  EXPECT_EQ(elements_of("a; b", ';'), (Elements{"a", "b"}));
  EXPECT_EQ(elements_of(""), Elements());
}

TEST(Syntax, FindsEndOfQuotedString) {
  EXPECT_EQ(size_of_quoted("\"\""), 2u);
  EXPECT_EQ(size_of_quoted("\"a\\\"b\" c"), 6u);
  for (const char* text : {"\"", "\"a", "\"\\\"", "\"\\"})
    EXPECT_EQ(size_of_quoted(text), std::string_view::npos) << text;
}

TEST(Syntax, Unquotes) {
  char room[32];
  EXPECT_EQ(unquote("\"a b\"", room), "a b");
  EXPECT_EQ(unquote("\"a\\\"\\\\b\"", room), "a\"\\b");
  EXPECT_EQ(unquote("token", room), "token");
  EXPECT_EQ(unquote("\"", room), "\"");
  EXPECT_EQ(unquote("\"\"", room), "");
}

std::vector<std::pair<std::string, std::string>> parameters_of(std::string_view& text) {
  std::vector<std::pair<std::string, std::string>> parameters;
  while (const auto parameter = take_parameter(text))
    parameters.emplace_back(parameter->name, parameter->value);
  return parameters;
}

TEST(Syntax, ParsesParameters) {
  using List = std::vector<std::pair<std::string, std::string>>;
  std::string_view text = " ; a=b;c=\"d;e\" ; ;f=1; ";
  EXPECT_EQ(parameters_of(text), (List{{"a", "b"}, {"c", "\"d;e\""}, {"f", "1"}}));
  EXPECT_EQ(text, "");
}

TEST(Syntax, StopsAtBadParameter) {
  for (std::string_view text :
       {";a", ";a=", ";=b", ";a =b", ";a= b", ";a=\"b", ";a=\"b\\\"", "a=b", ";a=(b)", ";a;b=c"}) {
    EXPECT_TRUE(parameters_of(text).empty()) << text;
    EXPECT_FALSE(text.empty());
  }
  std::string_view text = ";a=b c";
  EXPECT_EQ(parameters_of(text).size(), 1u);
  EXPECT_EQ(text, "c");
}

TEST(Syntax, ParsesWeights) {
  for (const auto& [text, weight] : std::vector<std::pair<const char*, int>>{{"0", 0},
                                                                             {"1", 1000},
                                                                             {"0.", 0},
                                                                             {"0.5", 500},
                                                                             {"0.05", 50},
                                                                             {"0.123", 123},
                                                                             {"1.000", 1000}})
    EXPECT_EQ(parse_weight(text), weight) << text;
  for (const char* text :
       {"", "2", ".5", "0.1234", "1.001", "1.1", "-0", "0,5", "0.5 ", "0.x", "00", "0x"})
    EXPECT_EQ(parse_weight(text), std::nullopt) << text;
}

TEST(Syntax, ParsesNumbers) {
  EXPECT_EQ(parse_number("0018446744073709551615", Overflow::is_refused), UINT64_MAX);
  for (const char* text :
       {"18446744073709551616", "99999999999999999999", "184467440737095516150"}) {
    EXPECT_EQ(parse_number(text, Overflow::is_refused), std::nullopt) << text;
    EXPECT_EQ(parse_number(text, Overflow::saturates), UINT64_MAX) << text;
  }
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x1", "1.0"})
    EXPECT_EQ(parse_number(text, Overflow::saturates), std::nullopt) << text;
}

TEST(Syntax, ClassifiesTokensAndControls) {
  EXPECT_TRUE(is_token("aZ09!#$%&'*+-.^_`|~"));
  for (const char* text : {"", "a b", "a(", "a:", "a\"", "a=", "\xc3", "a\x7f"})
    EXPECT_FALSE(is_token(text)) << text;
  EXPECT_TRUE(has_control("a\rb"));
  EXPECT_TRUE(has_control("\x7f"));
  EXPECT_FALSE(has_control("a\tb \xff"));
  EXPECT_TRUE(equal_ignoring_case("Gzip", "gZIP"));
  EXPECT_FALSE(equal_ignoring_case("@", "`"));
  EXPECT_EQ(trimmed(" \ta b\t "), "a b");
  EXPECT_EQ(trimmed(" \t "), "");
}

}  // namespace
}  // namespace spate::http
