// ServerOptions::on_refused: it is called for each refused request, and writes the response's body.
#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include "http/http2_harness.h"
#include "spate/http/hosts.h"
#include "spate/http/middleware.h"
#include "spate/http/router.h"

namespace spate::testing {
namespace {

using http::AccessRecord;
using http::Exchange;
using http::RefusalResponse;
using http::RefusedRequest;
using http::Status;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kPost = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n";

class Refusals : public Http2ServerTest {
 protected:
  Refusals() { serve2(json()); }

  // Options whose refusals are JSON.
  http::ServerOptions json() {
    http::ServerOptions options;
    options.max_body = 10;
    options.max_request_line = 100;
    options.on_refused = [this](const RefusedRequest& refused, RefusalResponse& response) {
      paths_.emplace_back(refused.request.path());
      defaults_.push_back(response.body);
      response.fields.set(http::FieldId::content_type, "application/json");
      response.body = "{\"status\":" + std::to_string(static_cast<int>(refused.status)) +
                      ",\"reason\":\"" + std::string(refused.reason) + "\"}";
    };
    options.log = [this](const AccessRecord& record) { reasons_.emplace_back(record.reason); };
    return options;
  }
  void serve_by(http::Service& service) {
    http::ServerOptions options = json();
    options.http2 = must(http::Http2::create());
    server_ = must(http::Server::create(loop_, service, std::move(options)));
  }
  static std::string body_of(const std::string& response) {
    return response.substr(response.find("\r\n\r\n") + 4);
  }

  std::vector<std::string> paths_;
  std::vector<std::string> defaults_;
  std::vector<std::string> reasons_;
};

TEST_F(Refusals, BodyIsWrittenByFunction) {
  const std::string response = talk(kPost);
  EXPECT_THAT(response, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(response, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(response, Not(HasSubstr("text/plain")));
  EXPECT_EQ(body_of(response), R"({"status":413,"reason":"the body is too long"})");
  EXPECT_THAT(defaults_, ElementsAre("the body is too long\n"));
  EXPECT_THAT(paths_, ElementsAre("/"));
}

TEST_F(Refusals, RequestIsEmptyIfItsHeaderSectionCannotBeParsed) {
  const std::string line = "GET /" + std::string(200, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_THAT(talk(line), StartsWith("HTTP/1.1 414 "));
  EXPECT_THAT(body_of(talk("GET / HTTP/1.1\r\n\r\n")), HasSubstr(R"("status":400)"));
  EXPECT_THAT(body_of(talk("nonsense\r\n\r\n")), HasSubstr(R"("status":400)"));
  EXPECT_EQ(paths_.front(), "");
}

TEST_F(Refusals, HttpTwoStreamGetsSameBody) {
  const auto client = connect2();
  const auto id = client->post("/", std::string(20, 'x'), {{"content-length", "20"}});
  turns();
  EXPECT_EQ(client->answers[id].body, R"({"status":413,"reason":"the body is too long"})");
  EXPECT_THAT(reasons_, ElementsAre("the body is too long"));
}

TEST_F(Refusals, ReasonIsLogged) {
  talk(kPost);
  talk("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(reasons_, ElementsAre("the body is too long", ""));
}

TEST_F(Refusals, HeadGetsNoBody) {
  EXPECT_EQ(body_of(talk("HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n")), "");
}

TEST_F(Refusals, UnansweredExchangeIsRefusedWith500) {
  on_request = [](Exchange) {};
  const std::string response = talk(kGet);
  EXPECT_EQ(body_of(response), R"({"status":500,"reason":"the handler did not respond"})");
  EXPECT_THAT(defaults_, ElementsAre(""));
  EXPECT_THAT(reasons_, ElementsAre("the handler did not respond"));
}

TEST_F(Refusals, BodyOfHandlerIsRefusedByItsLimit) {
  http::ServerOptions options = json();
  options.max_body = 1000;
  serve2(std::move(options));
  on_request = [](Exchange exchange) {
    read_body(std::move(exchange), 5, [](Exchange, Bytes) { FAIL() << "called"; });
  };
  EXPECT_THAT(talk(kPost), StartsWith("HTTP/1.1 413 "));
  const std::string chunked =
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n0\r\n\r\n";
  EXPECT_THAT(body_of(talk(chunked)), HasSubstr("the body is too long"));
}

TEST_F(Refusals, RouterHostsAndMiddlewareUseIt) {
  http::Router router;
  router.get("/here", [](Exchange exchange) { exchange.respond("here"); });
  http::RateLimit limited(router, {.rate = 0.001, .burst = 3});
  http::Hosts hosts;
  hosts.add("a", limited);
  serve_by(hosts);
  EXPECT_THAT(body_of(talk("GET /no HTTP/1.1\r\nHost: a\r\n\r\n")), HasSubstr("404"));
  const std::string wrong = talk("PUT /here HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(wrong, HasSubstr("Allow: GET, HEAD, OPTIONS\r\n"));
  EXPECT_THAT(body_of(wrong), HasSubstr("405"));
  EXPECT_EQ(body_of(talk("GET /here HTTP/1.1\r\nHost: a\r\n\r\n")), "here");
  const std::string often = talk("GET /here HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(often, HasSubstr("Retry-After: "));
  EXPECT_THAT(body_of(often), HasSubstr("429"));
  EXPECT_THAT(body_of(talk("GET / HTTP/1.1\r\nHost: b\r\n\r\n")), HasSubstr("421"));
}

TEST_F(Refusals, UnauthorizedKeepsItsChallenge) {
  http::Router router;
  http::BearerAuth checked(router, [](Exchange&, std::string_view) { return false; });
  serve_by(checked);
  const std::string response = talk(kGet);
  EXPECT_THAT(response, HasSubstr("WWW-Authenticate: Bearer realm=\"restricted\"\r\n"));
  EXPECT_THAT(body_of(response), HasSubstr("401"));
}

TEST_F(Refusals, DefaultIsSentIfResponseIsInvalid) {
  http::ServerOptions options = json();
  options.on_refused = [](const RefusedRequest&, RefusalResponse& response) {
    response.fields.add("Content-Length", "3");
    response.body = "mine";
  };
  serve2(std::move(options));
  EXPECT_EQ(body_of(talk(kPost)), "the body is too long\n");
}

}  // namespace
}  // namespace spate::testing
