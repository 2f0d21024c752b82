// JSON bodies with simdjson.
#include "http/harness.h"
#include "http/json_request.h"
#include "spate/http/simdjson.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Status;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Simdjson : public HttpServerTest {
 protected:
  Simdjson() {
    on_request = [this](Exchange exchange) {
      read_json_document(std::move(exchange), [this](Exchange whole, simdjson::dom::element order) {
        ++calls;
        std::uint64_t count = 0;
        if (order["count"].get(count)) {
          http::respond_problem(whole, Status::bad_request, "no count");
          return;
        }
        http::respond_json_text(whole, Status::ok, "{\"count\":" + std::to_string(count) + "}");
      });
    };
  }

  int calls = 0;
};

TEST_F(Simdjson, DocumentIsRead) {
  EXPECT_THAT(talk(json_request(R"({"other":[1,2],"count":7})")),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("{\"count\":7}")));
  EXPECT_THAT(talk(json_request(R"({"count":-1})")), HasSubstr("no count"));
  EXPECT_EQ(calls, 2);
}

TEST_F(Simdjson, InvalidTextsGet400WithReason) {
  for (const char* text : {"", "{", "{\"a\":}", "[1] 2", "[\"\xff\"]"})
    EXPECT_THAT(talk(json_request(text)),
                AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("\"detail\":\"")))
        << text;
  EXPECT_THAT(talk(json_request(std::string(500'000, '['))), HasSubstr("more than 64 deep"));
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace spate::testing
