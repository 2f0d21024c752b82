// The client's requests: header sections and bodies; and the options that it refuses.
#include <string>

#include "http/client_pair_harness.h"

namespace spate::testing {
namespace {

using http::Method;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ClientRequests : public ClientProtocolTest {
 protected:
  std::error_code refused(std::string_view url, http::CallOptions options = {}) {
    const std::error_code error = ClientProtocolTest::refused(url, std::move(options));
    EXPECT_TRUE(opened.empty());
    return error;
  }
};

TEST_P(ClientRequests, RequestContainsMethodTargetAndFields) {
  EXPECT_EQ(sent("http://a.example:8080/x%20y?z=1#part",
                 {.method = Method::del, .fields = fields_of({{"X-A", "1"}})}),
            "DELETE /x%20y?z=1\nhost: a.example:8080\nx-a: 1\n\n");
}

TEST_P(ClientRequests, MethodMayBeAnyToken) {
  EXPECT_THAT(sent(kUrl, {.method = Method::other, .method_name = "PROPFIND"}),
              StartsWith("PROPFIND /\n"));
}

TEST_P(ClientRequests, BodyIsSentWithContentLength) {
  const std::string text = "copied";
  Outcome outcome;
  http::Call call;
  {
    const std::string gone = text;
    call = fetch(outcome, {.method = Method::post, .body = bytes_of(gone)});
  }
  turns();
  EXPECT_THAT(asked(), EndsWith("content-length: 6\n\ncopied"));
  Buffer buffer;
  buffer.append("in a buffer");
  EXPECT_THAT(sent(kUrl, {.method = Method::put, .content = std::move(buffer)}),
              EndsWith("content-length: 11\n\nin a buffer"));
}

TEST_P(ClientRequests, PostWithoutBodySendsZeroContentLength) {
  EXPECT_THAT(sent(kUrl, {.method = Method::post}), EndsWith("content-length: 0\n\n"));
}

TEST_P(ClientRequests, BodyIsSentWhole) {
  for (const std::size_t size : {1u, 2000u, 70'000u, 5'000'000u}) {
    std::string body(size, 'x');
    for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<char>('a' + i % 23);
    Outcome outcome;
    const http::Call call = fetch(outcome, {.method = Method::put, .body = bytes_of(body)});
    turns(3000);
    EXPECT_TRUE(kept_.back()->body == body) << size;
    EXPECT_TRUE(kept_.back()->is_ended) << size;
    answer();
    EXPECT_EQ(outcome.text(), "ok");
  }
  EXPECT_EQ(opened.size(), 1u);
}

TEST_P(ClientRequests, LongHeaderSectionIsSentWhole) {
  const std::string value(20'000, 'v');
  EXPECT_THAT(sent(kUrl, {.fields = fields_of({{"X", value}})}), EndsWith(value + "\n\n"));
}

TEST_P(ClientRequests, CustomHostAndUserAgentTakePrecedence) {
  make_client({.user_agent = "spate"});
  EXPECT_THAT(sent(kUrl), HasSubstr("user-agent: spate\n"));
  const std::string own = sent(kUrl, {.fields = fields_of({{"Host", "b"}, {"User-Agent", "me"}})});
  EXPECT_EQ(own, "GET /\nhost: b\nuser-agent: me\n\n");
}

TEST_P(ClientRequests, TeFieldIsSentIfTrailersAreAccepted) {
  EXPECT_EQ(sent(kUrl), "GET /\nhost: a.example\n\n");
  EXPECT_EQ(sent(kUrl, {.accept_trailers = true}), "GET /\nhost: a.example\nte: trailers\n\n");
}

TEST_P(ClientRequests, CustomTargetIsSentUnchanged) {
  EXPECT_THAT(sent("http://a.example/x?y", {.target = "/a/../b//c?%zz|"}),
              StartsWith("GET /a/../b//c?%zz|\nhost: a.example\n"));
  EXPECT_THAT(sent(kUrl, {.method = Method::options, .target = "*"}), StartsWith("OPTIONS *\n"));
}

// ---- requests that are refused

TEST_P(ClientRequests, InvalidRequestIsReportedByLoop) {
  EXPECT_EQ(refused("no url"), std::errc::invalid_argument);
  EXPECT_EQ(refused("/relative"), std::errc::invalid_argument);
  EXPECT_EQ(refused("http://user:secret@a/"), std::errc::invalid_argument);
  EXPECT_EQ(refused("https://a/"), std::errc::not_supported);
  EXPECT_EQ(refused("ftp://a/"), std::errc::protocol_not_supported);
  EXPECT_EQ(refused(kUrl, {.method = Method::connect}), std::errc::invalid_argument);
  for (const std::string_view name : {"", "BAD METHOD", "X\r\nY", "CONNECT"})
    EXPECT_EQ(refused(kUrl, {.method = Method::other, .method_name = std::string(name)}),
              std::errc::invalid_argument);
  for (const std::string_view name : {"Content-Length", "Transfer-Encoding", "Connection", "TE",
                                      "Keep-Alive", "Upgrade", "Proxy-Connection", "Expect"})
    EXPECT_EQ(refused(kUrl, {.fields = fields_of({{name, "1"}})}), std::errc::invalid_argument);
  EXPECT_EQ(refused(kUrl, {.body = bytes_of("x"), .upload = 1}), std::errc::invalid_argument);
  EXPECT_EQ(refused(kUrl, {.proxy = http::Proxy{.kind = http::ProxyKind::http}}),
            std::errc::invalid_argument);
}

TEST_P(ClientRequests, ErrorsOfUrlsNameRemedy) {
  const std::error_code plain = refused("https://a/");
  EXPECT_EQ(plain, http::HttpError::https_without_tls);
  EXPECT_THAT(plain.message(), HasSubstr("ClientOptions::tls"));
  const std::error_code ftp = refused("ftp://a/");
  EXPECT_EQ(ftp, http::HttpError::unknown_scheme);
  EXPECT_THAT(ftp.message(), HasSubstr("http or https"));
  for (const std::string_view text : {"", "no url", "/relative", "http://", "http://a:x/"}) {
    EXPECT_EQ(refused(text), http::HttpError::invalid_url) << text;
    EXPECT_THAT(refused(text).message(), HasSubstr("http://example.org/"));
  }
}

TEST_P(ClientRequests, InvalidCustomTargetIsRejected) {
  for (const char* wrong : {"x", "http://b/", "/a b", "/a\r\n", "**", "/\x80"})
    EXPECT_EQ(refused(kUrl, {.target = wrong}), std::errc::invalid_argument) << wrong;
}

TEST_P(ClientRequests, ClientOptionsAreValidated) {
  const auto create = [this](http::ClientOptions options) {
    return http::Client::create(loop_, std::move(options)).error();
  };
  EXPECT_EQ(create({.max_per_origin = 0}), std::errc::invalid_argument);
  EXPECT_EQ(create({.max_connections = 0}), std::errc::invalid_argument);
  EXPECT_EQ(create({.max_head = 0}), std::errc::invalid_argument);
  EXPECT_EQ(create({.max_head = 65'536}), std::errc::invalid_argument);
  EXPECT_EQ(create({.user_agent = "a\r\nb"}), std::errc::invalid_argument);
  const http::Proxy nowhere{.kind = http::ProxyKind::socks5};
  const http::Proxy long_user{
      .kind = http::ProxyKind::socks5, .host = "p", .port = 1, .user = std::string(256, 'u')};
  for (const http::Proxy& wrong : {nowhere, long_user}) {
    EXPECT_EQ(create({.proxies = {.proxy = wrong}}), std::errc::invalid_argument);
    EXPECT_EQ(create({.proxies = {.for_https = wrong}}), std::errc::invalid_argument);
  }
}

INSTANTIATE_TEST_SUITE_P(Protocols, ClientRequests, kProtocols, name_of_protocol);

}  // namespace
}  // namespace spate::testing
