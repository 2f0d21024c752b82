// Router: the handler that gets a request.
#include "http/harness.h"
#include "spate/http/router.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Method;
using http::Router;
using http::Status;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Routes : public HttpServerTest {
 protected:
  Routes() { server_ = must(http::Server::create(loop_, router_)); }

  // Returns a handler that responds with its name, and with the named parameters.
  static http::OnRequest says(std::string name, std::vector<std::string> params = {}) {
    return [name = std::move(name), params = std::move(params)](Exchange exchange) {
      std::string text = name;
      for (const std::string& param : params) text += "|" + exchange.request().param(param);
      exchange.respond(text);
    };
  }
  std::string ask(std::string_view method, std::string_view target) {
    const std::string answer = talk(std::string(method) + " " + std::string(target) +
                                    " HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    const std::size_t head = answer.find("\r\n\r\n");
    return answer.substr(9, 3) + " " + (head == std::string::npos ? "" : answer.substr(head + 4));
  }
  std::string get(std::string_view target) { return ask("GET", target); }

  Router router_;
};

TEST_F(Routes, MatchPathsExactly) {
  router_.get("/", says("root"));
  router_.get("/a", says("a"));
  router_.get("/a/", says("a slash"));
  router_.get("/a/b", says("a b"));
  EXPECT_EQ(get("/"), "200 root");
  EXPECT_EQ(get("/?x=/a"), "200 root");
  EXPECT_EQ(get("/a"), "200 a");
  EXPECT_EQ(get("/a/"), "200 a slash");
  EXPECT_EQ(get("/a/b"), "200 a b");
  EXPECT_EQ(get("http://other/a/b?c"), "200 a b");
  for (const char* path : {"/b", "/a/b/", "/a/b/c", "//", "/A"})
    EXPECT_THAT(get(path), StartsWith("404 ")) << path;
}

TEST_F(Routes, HaveParameters) {
  router_.get("/users/:id", says("user", {"id"}));
  router_.get("/users/:id/posts/:post", says("post", {"id", "post", "none"}));
  EXPECT_EQ(get("/users/7"), "200 user|7");
  EXPECT_EQ(get("/users/a%20b%2Fc"), "200 user|a b/c");
  EXPECT_EQ(get("/users/7/posts/9"), "200 post|7|9|");
  EXPECT_THAT(get("/users/"), StartsWith("404 "));
  EXPECT_THAT(get("/users/7/posts"), StartsWith("404 "));
}

TEST_F(Routes, MayMatchRestOfPath) {
  router_.get("/static/*path", says("file", {"path"}));
  EXPECT_EQ(get("/static/a/b.css"), "200 file|a/b.css");
  EXPECT_EQ(get("/static/"), "200 file|");
  EXPECT_THAT(get("/static"), StartsWith("404 "));
}

TEST_F(Routes, PreferLiteralsRegardlessOfOrder) {
  router_.get("/*rest", says("rest", {"rest"}));
  router_.get("/a/:x", says("x", {"x"}));
  router_.get("/a/b", says("literal"));
  router_.get("/a/b/c", says("deep"));
  EXPECT_EQ(get("/a/b"), "200 literal");
  EXPECT_EQ(get("/a/%62"), "200 literal");
  EXPECT_EQ(get("/a/c"), "200 x|c");
  EXPECT_EQ(get("/a/b/c"), "200 deep");
  EXPECT_EQ(get("/a/b/d"), "200 rest|a/b/d");
  EXPECT_EQ(get("/z"), "200 rest|z");
}

TEST_F(Routes, BacktrackWhenLiteralSegmentDoesNotMatch) {
  router_.get("/a/b/c", says("abc"));
  router_.get("/:x/b/d", says("xbd", {"x"}));
  EXPECT_EQ(get("/a/b/d"), "200 xbd|a");
}

TEST_F(Routes, MatchMethods) {
  router_.get("/a", says("get"));
  router_.post("/a", says("post"));
  EXPECT_EQ(ask("POST", "/a"), "200 post");
  EXPECT_THAT(talk("PUT /a HTTP/1.1\r\nHost: a\r\n\r\n"),
              ::testing::AllOf(StartsWith("HTTP/1.1 405 "),
                               HasSubstr("\r\nAllow: GET, HEAD, POST, OPTIONS\r\n")));
  EXPECT_THAT(talk("OPTIONS /a HTTP/1.1\r\nHost: a\r\n\r\n"),
              ::testing::AllOf(StartsWith("HTTP/1.1 204 "),
                               HasSubstr("\r\nAllow: GET, HEAD, POST, OPTIONS\r\n")));
  EXPECT_THAT(talk("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 204 "));
  EXPECT_THAT(talk("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n"),
              ::testing::AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("\r\n\r\n")));
  EXPECT_THAT(ask("PROPFIND", "/a"), StartsWith("405 "));
}

TEST_F(Routes, MayMatchAnyMethod) {
  router_.any("/a", says("any"));
  router_.del("/a", says("delete"));
  EXPECT_EQ(ask("PROPFIND", "/a"), "200 any");
  EXPECT_EQ(ask("PATCH", "/a"), "200 any");
  EXPECT_EQ(ask("DELETE", "/a"), "200 delete");
}

TEST_F(Routes, HaveTheirOwnLimits) {
  router_.post("/a",
               [](Exchange exchange) {
                 http::read_body(std::move(exchange), 100,
                                 [](Exchange again, Bytes) { again.respond("read"); });
               },
               {.max_body = 3});
  const auto post = [&](std::string_view rest) {
    return talk("POST /a HTTP/1.1\r\nHost: a\r\n" + std::string(rest));
  };
  EXPECT_THAT(post("Content-Length: 3\r\n\r\nabc"), EndsWith("read"));
  EXPECT_THAT(post("Content-Length: 4\r\n\r\nabcd"), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(post("Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n"),
              StartsWith("HTTP/1.1 413 "));
}

TEST_F(Routes, HaveTheirOwnDeadlines) {
  Exchange kept;
  router_.get("/a", [&](Exchange exchange) { kept = std::move(exchange); },
              {.deadline = Nanos{5'000'000'000}});
  const auto client = connect();
  client->send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
  turns();
  EXPECT_TRUE(kept.is_open());
  pass(Nanos{6'000'000'000});
  EXPECT_FALSE(kept.is_open());
}

TEST_F(Routes, MayHaveFallback) {
  router_.otherwise(says("otherwise"));
  EXPECT_EQ(get("/a"), "200 otherwise");
}

TEST_F(Routes, KeepParametersAfterCallback) {
  Exchange kept;
  router_.get("/users/:id", [&](Exchange exchange) { kept = std::move(exchange); });
  const auto client = connect();
  client->send("GET /users/seven HTTP/1.1\r\nHost: a\r\n\r\n");
  turns();
  EXPECT_EQ(kept.request().param("id"), "seven");
}

TEST_F(Routes, MayBeReplacedWhileExchangesAreOpen) {
  Exchange kept;
  router_.get("/users/:name_of_the_user", [&](Exchange exchange) { kept = std::move(exchange); });
  const auto client = connect();
  client->send("GET /users/7 HTTP/1.1\r\nHost: a\r\n\r\n");
  turns();
  router_ = Router();
  router_.get("/users/:id", says("new", {"id"}));
  EXPECT_EQ(kept.request().route(), "/users/:name_of_the_user");
  EXPECT_EQ(kept.request().param("name_of_the_user"), "7");
  kept.respond("old");
  EXPECT_EQ(get("/users/8"), "200 new|8");
}

using RoutesDeathTest = Routes;

TEST_F(RoutesDeathTest, AreValidatedAtRegistration) {
  router_.get("/a/:x", says("x"));
  EXPECT_DEATH(router_.get("a", says("")), "begins with '/'");
  EXPECT_DEATH(router_.get("/a/:x", says("")), "a second handler");
  EXPECT_DEATH(router_.get("/a/:y/b", says("")), "two names");
  EXPECT_DEATH(router_.get("/*rest/b", says("")), "the last segment");
}

}  // namespace
}  // namespace spate::testing
