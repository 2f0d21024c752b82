// JSON bodies with nlohmann's library.
#include "http/harness.h"
#include "http/json_request.h"
#include "spate/http/nlohmann_json.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Status;
using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class NlohmannJson : public HttpServerTest {
 protected:
  NlohmannJson() {
    on_request = [this](Exchange exchange) {
      read_json(std::move(exchange), [this](Exchange whole, json value) {
        ++calls;
        http::respond_json(whole, {{"sum", value.value("a", 0) + value.value("b", 0)}});
      });
    };
  }

  int calls = 0;
};

TEST_F(NlohmannJson, ValueIsReadAndSent) {
  EXPECT_THAT(talk(json_request(R"({"a":1,"b":2})")),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Content-Type: application/json\r\n"),
                    EndsWith("\r\n\r\n{\"sum\":3}")));
}

TEST_F(NlohmannJson, InvalidTextsGet400WithPlace) {
  const std::pair<std::string, std::string> texts[] = {
      {"", "line 1, column 1"},         {"{", "line 1, column 2"},
      {"{\"a\":}", "line 1, column 6"}, {"[1,\n2,,3]", "line 2, column 3"},
      {"[1] 2", "line 1, column 5"},    {"[\"\xff\"]", "line 1, column 3"}};
  for (const auto& [text, place] : texts) {
    EXPECT_THAT(talk(json_request(text)),
                AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("not valid JSON: " + place + "\"")))
        << text;
  }
  EXPECT_EQ(calls, 0);
}

TEST_F(NlohmannJson, DeepTextsNeitherRecurseNorReachHandler) {
  EXPECT_THAT(talk(json_request(std::string(500'000, '['))), HasSubstr("more than 64 deep"));
  EXPECT_FALSE(http::parse_json(std::string(500'000, '[')));
  EXPECT_EQ(calls, 0);
}

TEST_F(NlohmannJson, InvalidStringsAreSentAsReplacementCharacters) {
  on_request = [](Exchange exchange) {
    http::respond_json(exchange, Status::created, {{"name", "\xff"}});
  };
  EXPECT_THAT(talk(kGet),
              AllOf(StartsWith("HTTP/1.1 201 "), EndsWith("{\"name\":\"\xef\xbf\xbd\"}")));
}

TEST_F(NlohmannJson, TextIsParsedWithinLimits) {
  EXPECT_EQ(http::parse_json("[1,{\"a\":null}]"), json({1, {{"a", nullptr}}}));
  EXPECT_EQ(http::parse_json("[1,"), std::nullopt);
  EXPECT_EQ(http::parse_json("[[]]", 1), std::nullopt);
  EXPECT_EQ(http::parse_json("null"), json());
}

}  // namespace
}  // namespace spate::testing
