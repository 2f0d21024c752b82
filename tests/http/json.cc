// JSON bodies without a JSON library: their types and limits, and the descriptions of errors.
#include "spate/http/json.h"

#include "http/harness.h"
#include "http/json_request.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::JsonLimits;
using http::Status;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class JsonBodies : public HttpServerTest {
 protected:
  JsonBodies() {
    on_request = [this](Exchange exchange) {
      read_json_text(std::move(exchange), limits, [this](Exchange whole, std::string_view json) {
        received = json;
        http::respond_json_text(whole, Status::ok, json);
      });
    };
  }

  JsonLimits limits;
  std::string received = "nothing";
};

TEST(JsonTypes, AreRecognisedByTypeAndSuffix) {
  for (const char* type :
       {"application/json", "APPLICATION/JSON", "application/json; charset=utf-8",
        "application/problem+json", "application/vnd.api+JSON", "model/gltf+json"})
    EXPECT_TRUE(http::is_json_type(type)) << type;
  for (const char* type : {"", "text/json", "application/jsonx", "application/x-json", "json",
                           "application/+json", "text/plain", "application/json, text/plain"})
    EXPECT_FALSE(http::is_json_type(type)) << type;
}

TEST(JsonDepth, CountsBracketsOutsideOfStrings) {
  EXPECT_FALSE(http::is_json_deeper("", 0));
  EXPECT_FALSE(http::is_json_deeper("1", 0));
  EXPECT_TRUE(http::is_json_deeper("[]", 0));
  EXPECT_FALSE(http::is_json_deeper("[]", 1));
  EXPECT_TRUE(http::is_json_deeper(R"({"a":[{}]})", 2));
  EXPECT_FALSE(http::is_json_deeper(R"({"a":[{}]})", 3));
  EXPECT_FALSE(http::is_json_deeper("[][][]", 1));
  EXPECT_FALSE(http::is_json_deeper(R"(["[[["])", 1));
  EXPECT_FALSE(http::is_json_deeper(R"(["\"[[["])", 1));
  EXPECT_TRUE(http::is_json_deeper(R"(["\\",[["")", 2));
  EXPECT_FALSE(http::is_json_deeper("]]]][", 1));
  EXPECT_FALSE(http::is_json_deeper("\"\\", 0));
}

TEST_F(JsonBodies, TextIsPassedToFunction) {
  EXPECT_THAT(
      talk(json_request(R"({"a":1})")),
      AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Type: application/json\r\n"),
            EndsWith("\r\n\r\n{\"a\":1}")));
  EXPECT_EQ(received, R"({"a":1})");
}

TEST_F(JsonBodies, OtherTypesGet415) {
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "nonsense"}) {
    EXPECT_THAT(talk(json_request("{}", type)),
                AllOf(StartsWith("HTTP/1.1 415 Unsupported Media Type\r\n"),
                      HasSubstr("Content-Type: application/problem+json\r\n"),
                      HasSubstr("\"status\":415"), HasSubstr("must be application/json")))
        << type;
  }
  EXPECT_THAT(talk("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"),
              StartsWith("HTTP/1.1 415 "));
  EXPECT_EQ(received, "nothing");
  limits.any_type = true;
  EXPECT_THAT(talk(json_request("{}", "text/plain")), StartsWith("HTTP/1.1 200 "));
}

TEST_F(JsonBodies, LongBodiesGet413) {
  limits.max_size = 10;
  EXPECT_THAT(talk(json_request("[1,2,3,45]")), StartsWith("HTTP/1.1 200 "));
  received = "nothing";
  EXPECT_THAT(talk(json_request("[1,2,3,456]")), StartsWith("HTTP/1.1 413 "));
  EXPECT_EQ(received, "nothing");
}

TEST_F(JsonBodies, DeepBodiesGet400) {
  limits.max_depth = 3;
  EXPECT_THAT(talk(json_request("[[[]]]")), StartsWith("HTTP/1.1 200 "));
  received = "nothing";
  EXPECT_THAT(talk(json_request("[[[[]]]]")),
              AllOf(StartsWith("HTTP/1.1 400 Bad Request\r\n"), HasSubstr("more than 3 deep")));
  EXPECT_EQ(received, "nothing");
}

TEST_F(JsonBodies, ConnectionContinuesAfterEachRefusal) {
  limits.max_depth = 1;
  const auto client = connect();
  for (const std::string& text :
       {json_request("{}", "text/plain"), json_request("[[]]"), json_request("[]")}) {
    client->received.clear();
    client->send(text);
    turns();
  }
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 200 "));
}

TEST_F(JsonBodies, ProblemIsValidJsonForAnyText) {
  on_request = [](Exchange exchange) {
    http::respond_problem(exchange, Status::conflict, "\"\\\n\xff<");
  };
  EXPECT_THAT(talk(kGet), EndsWith("{\"status\":409,\"title\":\"Conflict\","
                                   "\"detail\":\"\\\"\\\\\\n\\ufffd\\u003c\"}\n"));
}

TEST_F(JsonBodies, ErrorHasLineAndColumn) {
  std::size_t offset = 0;
  on_request = [&](Exchange exchange) {
    http::respond_bad_json(exchange, "{\n \"a\": x\n", offset);
  };
  EXPECT_THAT(talk(kGet), HasSubstr("not valid JSON: line 1, column 1\""));
  offset = 8;
  EXPECT_THAT(talk(kGet), HasSubstr("not valid JSON: line 2, column 7\""));
  offset = 1000;
  EXPECT_THAT(talk(kGet), HasSubstr("line 3, column 1\""));
}

}  // namespace
}  // namespace spate::testing
