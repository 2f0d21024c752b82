// The ready middleware: BasicAuth, Cors, RateLimit, ConcurrencyLimit and the others.
#include "spate/http/middleware.h"

#include <chrono>

#include "http/harness.h"
#include "spate/http/files.h"
#include "spate/http/router.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Fields;
using http::Request;
using http::Status;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

// The innermost Service: the test's on_request.
class Inner final : public http::Service {
 public:
  explicit Inner(std::function<void(Exchange)>& function) : function_(function) {}
  void on_request(Exchange exchange) override { function_(std::move(exchange)); }

 private:
  std::function<void(Exchange)>& function_;
};

class Middleware : public HttpServerTest {
 protected:
  template <class Service>
  void serve_through(Service& service) {
    server_ = must(http::Server::create(loop_, service));
  }
  std::string get(std::string_view fields, std::string_view method = "GET") {
    return talk(std::string(method) + " / HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n");
  }
  static std::string status_of(const std::string& response) { return response.substr(9, 3); }

  Inner inner_{on_request};
};

// ---- fields

TEST_F(Middleware, AddedFieldsAreInEveryResponse) {
  Fields fields;
  ASSERT_TRUE(fields.add("X-One", "1"));
  ASSERT_TRUE(fields.add("X-Two", "2"));
  http::Router router;
  router.get("/", [](Exchange exchange) { exchange.respond("a"); });
  http::AddedFields added(router, std::move(fields));
  serve_through(added);
  for (const char* method : {"GET", "POST", "OPTIONS"}) {
    const std::string response = get("", method);
    EXPECT_THAT(response, HasSubstr("X-One: 1\r\nX-Two: 2\r\n")) << method;
  }
}

TEST_F(Middleware, SecurityFieldsAreWithoutHstsOverPlainTcp) {
  http::SecurityFields secure(inner_, {.permissions_policy = "camera=()"});
  serve_through(secure);
  const std::string response = get("");
  EXPECT_THAT(response, HasSubstr("Content-Security-Policy: default-src 'self';"));
  EXPECT_THAT(response, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(response, HasSubstr("Permissions-Policy: camera=()\r\n"));
  EXPECT_THAT(response, Not(HasSubstr("Strict-Transport-Security")));
}

TEST_F(Middleware, SecurityFieldIsLeftOutIfEmpty) {
  http::SecurityFields secure(inner_, {.content_security_policy = "", .nosniff = false});
  serve_through(secure);
  EXPECT_THAT(get(""), Not(HasSubstr("Content-Security-Policy")));
  EXPECT_THAT(get(""), Not(HasSubstr("X-Content-Type-Options")));
}

// ---- authentication

TEST(EqualInConstantTime, ComparesAllBytes) {
  using http::equal_in_constant_time;
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_TRUE(equal_in_constant_time("secret", "secret"));
  EXPECT_FALSE(equal_in_constant_time("secret", "Secret"));
  EXPECT_FALSE(equal_in_constant_time("secret", "secrev"));
  EXPECT_FALSE(equal_in_constant_time("secret", "secre"));
  EXPECT_FALSE(equal_in_constant_time(std::string_view("a\0b", 3), std::string_view("a\0c", 3)));
}

class BasicAuthentication : public Middleware {
 protected:
  BasicAuthentication() { serve_through(auth_); }

  http::BasicAuth auth_{inner_,
                        [this](Exchange&, std::string_view user, std::string_view password) {
                          asked_ = std::string(user) + "|" + std::string(password);
                          return user == "ada" && http::equal_in_constant_time(password, "a:b");
                        },
                        "the \"vault\""};
  std::string asked_;
};

TEST_F(BasicAuthentication, AcceptsCorrectPassword) {
  EXPECT_THAT(get("Authorization: Basic YWRhOmE6Yg==\r\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(asked_, "ada|a:b");
  EXPECT_THAT(get("Authorization: bAsIc   YWRhOmE6Yg==\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(BasicAuthentication, RejectsMissingCredentialsWithChallenge) {
  const std::string response = get("");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(response, HasSubstr("WWW-Authenticate: Basic realm=\"the \\\"vault\\\"\", "
                                  "charset=\"UTF-8\"\r\n"));
}

TEST_F(BasicAuthentication, RejectsInvalidCredentials) {
  for (const char* credentials : {
           "Basic YWRhOmE6Yw==",                    // a wrong password
           "Basic YWRhOmE6Yg",                      // without padding
           "Basic YWRhOmE6Yh==",                    // with bits that are not used
           "Basic YWRh",                            // without a colon
           "Basic !!!!",                            //
           "Basic",                                 //
           "Basic ",                                //
           "Bearer YWRhOmE6Yg==",                   //
           "BasicYWRhOmE6Yg==",                     //
           "Basic YWRhOmE6Yg== x",                  //
           "Basic YWRhOmE6Yg==\r\nAuthorization: Basic YWRhOmE6Yg==",
       }) {
    EXPECT_EQ(status_of(get("Authorization: " + std::string(credentials) + "\r\n")), "401")
        << credentials;
  }
}

TEST_F(Middleware, BearerAuthDistinguishesMissingFromInvalidTokens) {
  http::BearerAuth auth(inner_, [](Exchange&, std::string_view token) {
    return http::equal_in_constant_time(token, "abc.def");
  });
  serve_through(auth);
  EXPECT_EQ(status_of(get("Authorization: Bearer abc.def\r\n")), "200");
  const std::string missing = get("");
  EXPECT_THAT(missing, HasSubstr("WWW-Authenticate: Bearer realm=\"restricted\"\r\n"));
  const std::string invalid = get("Authorization: Bearer abc\r\n");
  EXPECT_THAT(invalid, HasSubstr("realm=\"restricted\", error=\"invalid_token\"\r\n"));
  EXPECT_EQ(status_of(get("Authorization: Basic abc.def\r\n")), "401");
}

// ---- CORS

TEST_F(Middleware, CorsAllowsListedOriginsOnly) {
  http::Cors cors(inner_, {.origins = {"https://a.example", "https://b.example"},
                           .response_fields = {"X-Total"},
                           .credentials = true});
  serve_through(cors);
  const std::string allowed = get("Origin: https://b.example\r\n");
  EXPECT_THAT(allowed, HasSubstr("Access-Control-Allow-Origin: https://b.example\r\n"));
  EXPECT_THAT(allowed, HasSubstr("Access-Control-Allow-Credentials: true\r\n"));
  EXPECT_THAT(allowed, HasSubstr("Access-Control-Expose-Headers: X-Total\r\n"));
  EXPECT_THAT(allowed, HasSubstr("Vary: Origin\r\n"));
  for (const char* other : {"https://c.example", "http://b.example", "https://b.example.evil",
                            "null", "HTTPS://B.EXAMPLE", "*", ""}) {
    const std::string response = get("Origin: " + std::string(other) + "\r\n");
    EXPECT_EQ(status_of(response), "200") << other;
    EXPECT_THAT(response, Not(HasSubstr("Access-Control"))) << other;
    EXPECT_THAT(response, HasSubstr("Vary: Origin\r\n")) << other;
  }
  EXPECT_THAT(get(""), HasSubstr("Vary: Origin\r\n"));
}

TEST_F(Middleware, CorsOfAllOriginsDoesNotVary) {
  http::Cors cors(inner_, {.origins = {"*"}});
  serve_through(cors);
  const std::string response = get("Origin: https://x.example\r\n");
  EXPECT_THAT(response, HasSubstr("Access-Control-Allow-Origin: *\r\n"));
  EXPECT_THAT(response, Not(HasSubstr("Vary")));
  EXPECT_THAT(response, Not(HasSubstr("Credentials")));
}

TEST_F(Middleware, CorsRespondsToPreflightRequests) {
  int requests = 0;
  on_request = [&](Exchange exchange) {
    ++requests;
    exchange.respond("a");
  };
  http::Cors cors(inner_, {.origins = {"https://a.example"},
                           .methods = {http::Method::put, http::Method::del},
                           .request_fields = {"Content-Type", "X-Token"},
                           .max_age = seconds(90)});
  serve_through(cors);
  const std::string allowed = get(
      "Origin: https://a.example\r\nAccess-Control-Request-Method: PUT\r\n"
      "Access-Control-Request-Headers: x-token\r\n",
      "OPTIONS");
  EXPECT_THAT(allowed, StartsWith("HTTP/1.1 204 "));
  EXPECT_THAT(allowed, HasSubstr("Access-Control-Allow-Origin: https://a.example\r\n"));
  EXPECT_THAT(allowed, HasSubstr("Access-Control-Allow-Methods: PUT, DELETE\r\n"));
  EXPECT_THAT(allowed, HasSubstr("Access-Control-Allow-Headers: Content-Type, X-Token\r\n"));
  EXPECT_THAT(allowed, HasSubstr("Access-Control-Max-Age: 90\r\n"));
  const std::string refused =
      get("Origin: https://b.example\r\nAccess-Control-Request-Method: PUT\r\n", "OPTIONS");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 204 "));
  EXPECT_THAT(refused, Not(HasSubstr("Access-Control-Allow")));
  EXPECT_EQ(requests, 0);
  get("Origin: https://a.example\r\n", "OPTIONS");  // Without a method that it asks for.
  EXPECT_EQ(requests, 1);
}

TEST_F(Middleware, CorsAllowsAllRequestedFields) {
  http::Cors cors(inner_, {.origins = {"*"}, .request_fields = {"*"}});
  serve_through(cors);
  EXPECT_THAT(get("Origin: x\r\nAccess-Control-Request-Method: PUT\r\n"
                  "Access-Control-Request-Headers: x-a, x-b\r\n",
                  "OPTIONS"),
              HasSubstr("Access-Control-Allow-Headers: x-a, x-b\r\n"));
}

// ---- rate limit

class RateLimited : public Middleware {
 protected:
  static std::string key(const Request& request) { return std::string(request["X-Key"]); }
  std::string ask(const std::string& client) { return get("X-Key: " + client + "\r\n"); }
};

TEST_F(RateLimited, BurstIsAllowedThenRate) {
  http::RateLimit limit(inner_, {.rate = 2, .burst = 3, .key = key});
  serve_through(limit);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_of(ask("a")), "200") << i;
  const std::string refused = ask("a");
  EXPECT_EQ(status_of(refused), "429");
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_EQ(limit.refused(), 1U);
  pass(Nanos{499'000'000});
  EXPECT_EQ(status_of(ask("a")), "429");
  pass(Nanos{2'000'000});
  EXPECT_EQ(status_of(ask("a")), "200");
  EXPECT_EQ(status_of(ask("a")), "429");
  pass(seconds(10));  // The burst is not larger after a longer pause.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_of(ask("a")), "200") << i;
  EXPECT_EQ(status_of(ask("a")), "429");
}

TEST_F(RateLimited, RetryAfterIsRoundedUp) {
  http::RateLimit limit(inner_, {.rate = 0.1, .burst = 1, .key = key});
  serve_through(limit);
  ask("a");
  EXPECT_THAT(ask("a"), HasSubstr("Retry-After: 10\r\n"));
  pass(Nanos{100'000'000});
  EXPECT_THAT(ask("a"), HasSubstr("Retry-After: 10\r\n"));
}

TEST_F(RateLimited, ClientsAreIndependent) {
  http::RateLimit limit(inner_, {.rate = 1, .burst = 1, .key = key});
  serve_through(limit);
  EXPECT_EQ(status_of(ask("a")), "200");
  EXPECT_EQ(status_of(ask("b")), "200");
  EXPECT_EQ(status_of(ask("a")), "429");
  EXPECT_EQ(limit.clients(), 2U);
}

TEST_F(RateLimited, LeastRecentClientIsEvicted) {
  http::RateLimit limit(inner_, {.rate = 1, .burst = 1, .max_clients = 2, .key = key});
  serve_through(limit);
  for (const char* client : {"a", "b", "a", "c"}) ask(client);  // "b" is forgotten.
  EXPECT_EQ(limit.clients(), 2U);
  EXPECT_EQ(status_of(ask("a")), "429");
  EXPECT_EQ(status_of(ask("b")), "200");
}

TEST_F(RateLimited, LongKeysAreTruncated) {
  http::RateLimit limit(inner_, {.rate = 1, .burst = 1, .key = key});
  serve_through(limit);
  const std::string same(256, 'k');
  EXPECT_EQ(status_of(ask(same + "1")), "200");
  EXPECT_EQ(status_of(ask(same + "2")), "429");
}

// ---- concurrency limit, timeouts, bodies

class Limited : public Middleware {
 protected:
  Limited() {
    on_request = [this](Exchange exchange) { kept_.push_back(std::move(exchange)); };
  }
  std::unique_ptr<RawClient> ask() {
    auto client = connect();
    client->send(kGet);
    turns();
    return client;
  }

  std::vector<Exchange> kept_;
};

TEST_F(Limited, RequestsAreQueuedThenRefused) {
  http::ConcurrencyLimit limit(inner_, {.max = 2, .max_waiting = 1});
  serve_through(limit);
  const auto first = ask();
  const auto second = ask();
  const auto third = ask();
  EXPECT_EQ(kept_.size(), 2U);
  EXPECT_EQ(limit.waiting(), 1U);
  const auto fourth = ask();
  EXPECT_THAT(fourth->received, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(fourth->received, HasSubstr("Retry-After: 1\r\n"));
  kept_[0].respond("a");
  turns();
  EXPECT_EQ(kept_.size(), 3U);
  EXPECT_EQ(limit.active(), 2U);
  EXPECT_EQ(limit.waiting(), 0U);
  kept_[2].respond("c");
  turns();
  EXPECT_THAT(third->received, StartsWith("HTTP/1.1 200 "));
}

TEST_F(Limited, WaitingRequestIsRefusedAfterTimeout) {
  http::ConcurrencyLimit limit(inner_, {.max = 1, .max_wait = seconds(5)});
  serve_through(limit);
  const auto first = ask();
  const auto second = ask();
  pass(seconds(3));
  const auto third = ask();
  pass(seconds(2));
  EXPECT_THAT(second->received, StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(third->received, "");
  pass(seconds(3));
  EXPECT_THAT(third->received, StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(limit.active(), 1U);
}

TEST_F(Limited, WaitingRequestOfDisconnectedClientIsSkipped) {
  http::ConcurrencyLimit limit(inner_, {.max = 1, .max_waiting = 1});
  serve_through(limit);
  const auto first = ask();
  auto second = ask();
  second->stream().abort();
  turns();
  const auto third = ask();  // In the place of the second.
  EXPECT_EQ(limit.waiting(), 1U);
  kept_[0].respond("a");
  turns();
  ASSERT_EQ(kept_.size(), 2U);
  kept_[1].respond("c");
  turns();
  EXPECT_THAT(third->received, StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(limit.active(), 0U);
}

TEST_F(Limited, SlotIsFreedByAbortAndDisconnect) {
  http::ConcurrencyLimit limit(inner_, {.max = 1});
  serve_through(limit);
  const auto first = ask();
  kept_[0].abort();
  turns();
  EXPECT_EQ(limit.active(), 0U);
  const auto second = ask();
  second->stream().abort();
  turns();
  EXPECT_EQ(limit.active(), 0U);
}

TEST_F(Limited, ExchangesMayOutliveLimit) {
  {
    http::ConcurrencyLimit limit(inner_, {.max = 1});
    serve_through(limit);
    const auto first = ask();
    const auto second = ask();
    server_ = {};
  }
  turns();
  kept_.clear();
}

TEST_F(Limited, ResponseTimeoutResponds503) {
  http::ResponseTimeout timeout(inner_, seconds(2));
  serve_through(timeout);
  const auto late = ask();
  pass(seconds(1));
  EXPECT_EQ(late->received, "");
  pass(seconds(1));
  EXPECT_THAT(late->received, StartsWith("HTTP/1.1 503 "));
  EXPECT_FALSE(kept_[0].respond("a"));
  late->send(kGet);  // The connection persists.
  turns();
  ASSERT_EQ(kept_.size(), 2U);
  kept_[1].respond("in time");
  pass(seconds(5));
  EXPECT_THAT(late->received, ::testing::EndsWith("in time"));
}

TEST_F(Limited, ResponseTimeoutEndsWhenResponseBegins) {
  http::ResponseTimeout timeout(inner_, seconds(2));
  serve_through(timeout);
  const auto client = ask();
  kept_[0].begin(Status::ok);
  pass(seconds(5));
  kept_[0].write("a");
  kept_[0].end();
  turns();
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 200 "));
}

TEST_F(Middleware, BodyLimitRefusesLongerBodies) {
  on_request = [](Exchange exchange) {
    read_body(std::move(exchange), 1000, [](Exchange whole, Bytes) { whole.respond("a"); });
  };
  http::BodyLimit limit(inner_, 4);
  serve_through(limit);
  const auto post = [&](std::string_view body) {
    return status_of(talk("POST / HTTP/1.1\r\nHost: a\r\n" + std::string(body)));
  };
  EXPECT_EQ(post("Content-Length: 4\r\n\r\nabcd"), "200");
  EXPECT_EQ(post("Content-Length: 5\r\n\r\nabcde"), "413");
  EXPECT_EQ(post("Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n"), "200");
  EXPECT_EQ(post("Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"), "413");
}

// ---- request ids

TEST_F(Middleware, RequestIdIsRandomAndSent) {
  std::vector<std::string> ids;
  on_request = [&](Exchange exchange) {
    ids.emplace_back(http::RequestId::of(exchange.request()));
    exchange.respond("a");
  };
  http::RequestId id(inner_);
  serve_through(id);
  const std::string response = get("X-Request-Id: from-client\r\n");
  get("");
  ASSERT_EQ(ids.size(), 2U);
  EXPECT_THAT(ids[0], MatchesRegex("[0-9a-f]{32}"));
  EXPECT_THAT(response, HasSubstr("X-Request-Id: " + ids[0] + "\r\n"));
  EXPECT_NE(ids[0], ids[1]);
}

TEST_F(Middleware, ClientRequestIdIsKeptIfEnabledAndValid) {
  std::string seen;
  on_request = [&](Exchange exchange) {
    seen = http::RequestId::of(exchange.request());
    exchange.respond("a");
  };
  http::RequestId id(inner_, {.field = "X-Trace", .keep = true});
  serve_through(id);
  EXPECT_THAT(get("X-Trace: a-B.1_2\r\n"), HasSubstr("X-Trace: a-B.1_2\r\n"));
  EXPECT_EQ(seen, "a-B.1_2");
  for (const std::string& bad : {std::string("a b"), std::string(129, 'a'), std::string("<a>")}) {
    get("X-Trace: " + bad + "\r\n");
    EXPECT_EQ(seen.size(), 32U) << bad;
  }
}

}  // namespace
}  // namespace spate::testing
