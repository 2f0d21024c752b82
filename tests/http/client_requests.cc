// The client's requests: header sections, bodies, uploads, redirects, cookies.
#include <chrono>
#include <string>

#include "http/client_harness.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::HttpError;
using http::Method;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class ClientRequests : public HttpClientTest {
 protected:
  std::error_code refused(std::string_view url, http::CallOptions options = {}) {
    const std::error_code error = HttpClientTest::refused(url, std::move(options));
    EXPECT_TRUE(peers.empty());
    return error;
  }
};

TEST_F(ClientRequests, RequestContainsMethodTargetAndFields) {
  EXPECT_EQ(sent("http://a.example:8080/x%20y?z=1#part",
                 {.method = Method::del, .fields = fields_of({{"X-A", "1"}})}),
            "DELETE /x%20y?z=1 HTTP/1.1\r\nHost: a.example:8080\r\nX-A: 1\r\n\r\n");
}

TEST_F(ClientRequests, MethodMayBeAnyToken) {
  EXPECT_THAT(sent(kUrl, {.method = Method::other, .method_name = "PROPFIND"}),
              StartsWith("PROPFIND / HTTP/1.1\r\n"));
}

TEST_F(ClientRequests, BodyIsSentWithContentLength) {
  const std::string text = "copied";
  Outcome outcome;
  http::Call call;
  {
    const std::string gone = text;
    call = fetch(outcome, {.method = Method::post, .body = bytes_of(gone)});
  }
  turns();
  EXPECT_THAT(peer().heard(), EndsWith("Content-Length: 6\r\n\r\ncopied"));
  Buffer buffer;
  buffer.append("in a buffer");
  EXPECT_THAT(sent(kUrl, {.method = Method::put, .content = std::move(buffer)}),
              EndsWith("Content-Length: 11\r\n\r\nin a buffer"));
}

TEST_F(ClientRequests, TeFieldIsSentIfTrailersAreAccepted) {
  EXPECT_EQ(sent(kUrl, {.accept_trailers = true}),
            "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: TE\r\nTE: trailers\r\n\r\n");
}

TEST_F(ClientRequests, PostWithoutBodySendsZeroContentLength) {
  EXPECT_THAT(sent(kUrl, {.method = Method::post}), HasSubstr("Content-Length: 0\r\n"));
}

TEST_F(ClientRequests, LongBodyIsSentWhole) {
  std::string body(5'000'000, 'x');
  body += "end";
  const std::string text = sent(kUrl, {.method = Method::put, .body = bytes_of(body)});
  EXPECT_THAT(text.substr(text.size() - 4), "xend");
  EXPECT_EQ(text.size() - text.find("\r\n\r\n") - 4, body.size());
}

TEST_F(ClientRequests, LongHeaderSectionIsSentWhole) {
  const std::string value(20'000, 'v');
  EXPECT_THAT(sent(kUrl, {.fields = fields_of({{"X", value}})}), EndsWith(value + "\r\n\r\n"));
}

TEST_F(ClientRequests, CustomHostAndUserAgentTakePrecedence) {
  make_client({.user_agent = "spate"});
  EXPECT_THAT(sent(kUrl), HasSubstr("User-Agent: spate\r\n"));
  const std::string own = sent(kUrl, {.fields = fields_of({{"Host", "b"}, {"User-Agent", "me"}})});
  EXPECT_EQ(own, "GET / HTTP/1.1\r\nHost: b\r\nUser-Agent: me\r\n\r\n");
}

TEST_F(ClientRequests, InvalidRequestIsReportedByLoop) {
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

TEST_F(ClientRequests, ErrorsOfUrlsNameRemedy) {
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

TEST_F(ClientRequests, ClientOptionsAreValidated) {
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

TEST_F(ClientRequests, CustomTargetIsSentUnchanged) {
  EXPECT_THAT(sent("http://a.example/x?y", {.target = "/a/../b//c?%zz|"}),
              StartsWith("GET /a/../b//c?%zz| HTTP/1.1\r\nHost: a.example\r\n"));
  EXPECT_THAT(sent(kUrl, {.method = Method::options, .target = "*"}), StartsWith("OPTIONS * HTTP"));
}

TEST_F(ClientRequests, InvalidCustomTargetIsRejected) {
  for (const char* wrong : {"x", "http://b/", "/a b", "/a\r\n", "**", "/\x80"})
    EXPECT_EQ(refused(kUrl, {.target = wrong}), std::errc::invalid_argument) << wrong;
}

TEST_F(ClientRequests, ProxyReceivesAbsoluteFormOfCustomTarget) {
  const http::Proxy proxy = must(http::Proxy::parse("http://proxy.example:3128"));
  EXPECT_THAT(sent(kUrl, {.target = "/a/../b", .proxy = proxy}),
              StartsWith("GET http://a.example/a/../b HTTP/1.1\r\n"));
  EXPECT_THAT(sent(kUrl, {.method = Method::options, .target = "*", .proxy = proxy}),
              StartsWith("OPTIONS http://a.example HTTP/1.1\r\n"));
}

// ---- uploads

class ClientUploads : public ClientRequests {
 protected:
  http::Call upload(std::uint64_t size, http::CallOptions options = {}) {
    options.method = Method::post;
    options.upload = size;
    return client_.send(kUrl, hearer_, std::move(options));
  }
  Hearer hearer_;
};

TEST_F(ClientUploads, UploadOfKnownSizeIsSentWithContentLength) {
  http::Call call = upload(6);
  EXPECT_TRUE(call.write("abc"));  // Waits for the connection.
  turns();
  EXPECT_THAT(peer().heard(), EndsWith("Content-Length: 6\r\n\r\nabc"));
  Buffer rest;
  rest.append("def");
  EXPECT_TRUE(call.write(std::move(rest)));
  EXPECT_TRUE(call.end());
  turns();
  EXPECT_EQ(peer().heard(), "def");
  EXPECT_FALSE(call.end());
  peer().answer(kOk);
  turns();
  EXPECT_THAT(hearer_.told, ElementsAre("upload", "200", "body", "end", "closed"));
  EXPECT_FALSE(hearer_.error);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientUploads, UploadOfUnknownSizeIsSentInChunks) {
  http::Call call = upload(http::kUnknownSize);
  turns();
  EXPECT_THAT(peer().heard(), EndsWith("Transfer-Encoding: chunked\r\n\r\n"));
  EXPECT_TRUE(call.write("abc"));
  turns();
  EXPECT_EQ(peer().heard(), "3\r\nabc\r\n");
  EXPECT_TRUE(call.write(""));
  EXPECT_TRUE(call.end());
  turns();
  EXPECT_EQ(peer().heard(), "0\r\n\r\n");
  EXPECT_FALSE(call.write("more"));
  peer().answer(kOk);
  turns();
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientUploads, BeyondDeclaredSizeAreRefused) {
  http::Call call = upload(3);
  EXPECT_FALSE(call.write("abcd"));
  Buffer buffer;
  buffer.append("abcd");
  EXPECT_FALSE(call.write(std::move(buffer)));
  EXPECT_EQ(buffer.size(), 4u);
  EXPECT_TRUE(call.write("abc"));
  EXPECT_FALSE(call.write("d"));
}

TEST_F(ClientUploads, ShorterThanDeclaredSizeFailCall) {
  http::Call call = upload(3);
  turns();
  EXPECT_TRUE(call.write("ab"));
  EXPECT_TRUE(call.end());
  EXPECT_THAT(hearer_.told, ElementsAre("upload"));
  turns();
  EXPECT_EQ(hearer_.error, std::errc::invalid_argument);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientUploads, WriteFailsWithoutUpload) {
  http::Call call = client_.send(kUrl, hearer_, {.body = bytes_of("x")});
  EXPECT_FALSE(call.write("y"));
  EXPECT_FALSE(call.end());
  http::Call none;
  EXPECT_FALSE(none.write("y"));
  EXPECT_FALSE(none.end());
  EXPECT_FALSE(none.is_full());
  EXPECT_FALSE(none.is_open());
  none.pause();
  none.resume();
}

TEST_F(ClientUploads, FullUploadReceivesOnDrained) {
  http::Call call = upload(http::kUnknownSize);
  const std::string piece(100'000, 'x');
  int written = 0;
  while (!call.is_full()) {
    ASSERT_TRUE(call.write(piece));
    ++written;
  }
  EXPECT_EQ(written, 3);  // More than 256 KiB.
  EXPECT_TRUE(hearer_.told.empty());
  turns();
  EXPECT_FALSE(call.is_full());
  EXPECT_THAT(hearer_.told, ElementsAre("upload", "drained"));
  peer().stream().pause();
  while (!call.is_full()) ASSERT_TRUE(call.write(piece));
  turns();
  EXPECT_THAT(hearer_.told, ElementsAre("upload", "drained"));
  peer().stream().resume();
  turns();
  EXPECT_THAT(hearer_.told, ElementsAre("upload", "drained", "drained"));
}

TEST_F(ClientUploads, EarlyResponseClosesConnection) {
  http::Call call = upload(10);
  call.write("abc");
  turns();
  peer().answer("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
  turns();
  EXPECT_THAT(hearer_.told, ElementsAre("upload", "413", "closed"));
  EXPECT_FALSE(hearer_.error);
  EXPECT_FALSE(call.write("def"));
  EXPECT_EQ(client_.metrics().connections, 0u);
}

// ---- Expect

TEST_F(ClientUploads, BodyWaitsFor100Continue) {
  Outcome outcome;
  const http::Call call =
      fetch(outcome, {.method = Method::post, .body = bytes_of("body"), .expect_continue = 1s});
  turns();
  EXPECT_THAT(peer().received, HasSubstr("Expect: 100-continue\r\n"));
  EXPECT_THAT(peer().heard(), EndsWith("\r\n\r\n"));
  peer().answer("HTTP/1.1 100 Continue\r\n\r\n");
  turns();
  EXPECT_EQ(peer().heard(), "body");
  peer().answer(kOk);
  turns();
  EXPECT_EQ(outcome.status(), 200);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientUploads, BodyIsSentAfterContinueTimeout) {
  http::Call call = upload(4, {.expect_continue = 1s});
  call.write("body");
  turns();
  peer().heard();
  pass(900ms);
  EXPECT_THAT(peer().heard(), IsEmpty());
  pass(200ms);
  EXPECT_EQ(peer().heard(), "body");
}

TEST_F(ClientUploads, BodyIsNotSentIfServerRefusesIt) {
  Outcome outcome;
  const http::Call call =
      fetch(outcome, {.method = Method::post, .body = bytes_of("body"), .expect_continue = 1s});
  turns();
  peer().heard();
  peer().answer("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
  turns();
  EXPECT_EQ(outcome.status(), 401);
  EXPECT_THAT(peer().heard(), IsEmpty());
  // The server cannot know whether the body follows, so the connection cannot be used again.
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientUploads, ExpectIsOmittedWithoutBody) {
  EXPECT_THAT(sent(kUrl, {.expect_continue = 1s}), Not(HasSubstr("Expect")));
  EXPECT_THAT(sent(kUrl, {.method = Method::post, .upload = 0, .expect_continue = 1s}),
              Not(HasSubstr("Expect")));
}

TEST_F(ClientUploads, BeginWhenConnected) {
  open_error = std::make_error_code(std::errc::connection_refused);
  http::Call call = upload(3);
  turns();
  EXPECT_THAT(hearer_.told, ElementsAre("closed"));
  EXPECT_FALSE(call.was_sent());
  open_error = {};
  hearer_.told.clear();
  call = upload(3);
  EXPECT_THAT(hearer_.told, IsEmpty());
  turns();
  EXPECT_THAT(hearer_.told, ElementsAre("upload"));
  EXPECT_TRUE(call.was_sent());
}

TEST_F(ClientUploads, BeginAfter100Continue) {
  const http::Call first = upload(3, {.expect_continue = 1s});
  turns();
  EXPECT_THAT(hearer_.told, IsEmpty());
  peer().answer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
  turns();
  EXPECT_THAT(hearer_.told, ElementsAre("upload"));
  pass(2s);
  EXPECT_THAT(hearer_.told, ElementsAre("upload"));
}

TEST_F(ClientUploads, BeginAfterContinueTimeout) {
  const http::Call call = upload(3, {.expect_continue = 1s});
  turns();
  pass(999ms);
  EXPECT_THAT(hearer_.told, IsEmpty());
  pass(1ms);
  EXPECT_THAT(hearer_.told, ElementsAre("upload"));
}

TEST_F(ClientUploads, InChunksEndWithTrailers) {
  http::Call call = upload(http::kUnknownSize);
  turns();
  peer().heard();
  EXPECT_TRUE(call.write("abc"));
  EXPECT_TRUE(call.end(fields_of({{"X-Sum", "6"}})));
  turns();
  EXPECT_EQ(peer().heard(), "3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n");
  call = upload(3);
  call.write("abc");
  EXPECT_TRUE(call.end(fields_of({{"X-Sum", "6"}})));
  turns();
  EXPECT_THAT(peer(1).heard(), EndsWith("\r\n\r\nabc"));
}

// ---- redirects

class ClientRedirects : public ClientRequests {
 protected:
  static std::string redirect(std::string_view status, std::string_view location,
                              std::string_view body = "") {
    return "HTTP/1.1 " + std::string(status) + " Gone\r\nLocation: " + std::string(location) +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
  }
  Outcome outcome_;
};

TEST_F(ClientRedirects, AreReturnedUnlessFollowingIsEnabled) {
  ask_and_answer(outcome_, redirect("302", "/b"));
  EXPECT_EQ(outcome_.status(), 302);
  EXPECT_EQ(peers.size(), 1u);
}

TEST_F(ClientRedirects, AreFollowedOnSameConnection) {
  const http::Call call = fetch(outcome_, {.max_redirects = 1});
  turns();
  peer().heard();
  peer().answer(redirect("301", "b/c?d#e", "moved"));
  turns();
  EXPECT_EQ(peer().heard(), "GET /b/c?d HTTP/1.1\r\nHost: a.example\r\n\r\n");
  peer().answer(kOk);
  turns();
  EXPECT_EQ(outcome_.text(), "ok");
  EXPECT_EQ((*outcome_.result)->url().to_string(), "http://a.example/b/c?d#e");
  EXPECT_EQ(peers.size(), 1u);
  EXPECT_EQ(client_.metrics().redirected, 1u);
}

TEST_F(ClientRedirects, WithoutFragmentKeepFragmentOfUrl) {
  const http::Call call =
      client_.fetch("http://a.example/#x", outcome_.note(), {.max_redirects = 1});
  turns();
  peer().answer(redirect("302", "/b"));
  turns();
  peer().answer(kOk);
  turns();
  EXPECT_EQ((*outcome_.result)->url().to_string(), "http://a.example/b#x");
}

TEST_F(ClientRedirects, LoopFailsAfterLimit) {
  const http::Call call = fetch(outcome_, {.max_redirects = 5});
  turns();
  for (int i = 0; i < 6; ++i) {
    EXPECT_FALSE(outcome_.is_there());
    peer().answer(redirect("302", "/"));
    turns();
  }
  EXPECT_EQ(outcome_.error(), HttpError::too_many_redirects);
  EXPECT_EQ(client_.metrics().requests, 6u);
}

TEST_F(ClientRedirects, ToUnsupportedUrlsAreErrors) {
  for (const std::string_view location : {"ftp://a/", "https://a/", "http://", "http://u@a/"}) {
    Outcome outcome;
    ask_and_answer(outcome, redirect("302", location), {.max_redirects = 1});
    EXPECT_EQ(outcome.error(), HttpError::bad_redirect) << location;
  }
}

TEST_F(ClientRedirects, WithoutLocationAreReturned) {
  ask_and_answer(outcome_, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", {.max_redirects = 1});
  EXPECT_EQ(outcome_.status(), 302);
}

TEST_F(ClientRedirects, WithOtherStatusCodesAreReturned) {
  for (const std::string_view status : {"300", "304", "305", "201"}) {
    Outcome outcome;
    client_.close_idle();
    ask_and_answer(outcome, redirect(status, "/b"), {.max_redirects = 1});
    EXPECT_EQ(std::to_string(outcome.status()), status);
  }
}

TEST_F(ClientRedirects, PostBecomesGetWithoutBody) {
  for (const std::string_view status : {"301", "302", "303"}) {
    client_.close_idle();
    Outcome outcome;
    const http::Call call =
        fetch(outcome, {.method = Method::post,
                        .fields = fields_of({{"Content-Type", "text/plain"}, {"X", "1"}}),
                        .body = bytes_of("body"),
                        .max_redirects = 1});
    turns();
    peers.back()->heard();
    peers.back()->answer(redirect(status, "/b"));
    turns();
    EXPECT_EQ(peers.back()->heard(), "GET /b HTTP/1.1\r\nHost: a.example\r\nX: 1\r\n\r\n");
  }
}

TEST_F(ClientRedirects, KeepMethodAndBodyFor307And308) {
  for (const std::string_view status : {"307", "308"}) {
    client_.close_idle();
    Outcome outcome;
    const http::Call call =
        fetch(outcome, {.method = Method::post, .body = bytes_of("body"), .max_redirects = 1});
    turns();
    peers.back()->heard();
    peers.back()->answer(redirect(status, "/b"));
    turns();
    EXPECT_EQ(peers.back()->heard(),
              "POST /b HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\n\r\nbody");
  }
}

TEST_F(ClientRedirects, PutKeepsItsMethodExceptFor303) {
  for (const std::string_view status : {"301", "302", "303"}) {
    client_.close_idle();
    Outcome outcome;
    const http::Call call =
        fetch(outcome, {.method = Method::put, .body = bytes_of("x"), .max_redirects = 1});
    turns();
    peers.back()->heard();
    peers.back()->answer(redirect(status, "/b"));
    turns();
    EXPECT_THAT(peers.back()->heard(), StartsWith(status == "303" ? "GET" : "PUT"));
  }
}

TEST_F(ClientRedirects, HeadKeepsItsMethod) {
  const http::Call call = fetch(outcome_, {.method = Method::head, .max_redirects = 1});
  turns();
  peer().heard();
  peer().answer("HTTP/1.1 303 See Other\r\nLocation: /b\r\n\r\n");
  turns();
  EXPECT_THAT(peer().heard(), StartsWith("HEAD /b "));
}

TEST_F(ClientRedirects, RequiringAnotherUploadAreReturned) {
  Hearer hearer;
  http::Call call =
      client_.send(kUrl, hearer, {.method = Method::post, .upload = 2, .max_redirects = 1});
  call.write("ab");
  turns();
  peer().answer(redirect("307", "/b"));
  turns();
  EXPECT_THAT(hearer.told, ElementsAre("upload", "307", "closed"));
}

TEST_F(ClientRedirects, ToAnotherOriginDropCredentials) {
  for (const std::string_view location :
       {"http://b.example/", "//a.example:81/", "http://a.example.b.example/"}) {
    client_.close_idle();
    Outcome outcome;
    const http::Call call = fetch(outcome, {.fields = fields_of({{"Authorization", "Basic eDp5"},
                                                                 {"Cookie", "a=b"},
                                                                 {"Host", "a.example"},
                                                                 {"X", "1"}}),
                                            .max_redirects = 1});
    turns();
    EXPECT_THAT(peers.back()->heard(), HasSubstr("Authorization: Basic"));
    peers.back()->answer(redirect("302", location));
    turns();
    const std::string heard = peers.back()->heard();
    EXPECT_THAT(heard, StartsWith("GET / HTTP/1.1\r\n"));
    EXPECT_THAT(heard, HasSubstr("X: 1\r\n"));
    EXPECT_THAT(heard, Not(HasSubstr("Authorization")));
    EXPECT_THAT(heard, Not(HasSubstr("Cookie")));
    EXPECT_THAT(heard, Not(HasSubstr("Host: a.example\r\n")));
  }
}

TEST_F(ClientRedirects, ToSameOriginKeepCredentials) {
  const http::Call call =
      fetch(outcome_, {.fields = fields_of({{"Authorization", "Basic eDp5"}}), .max_redirects = 1});
  turns();
  peer().heard();
  peer().answer(redirect("302", "http://A.EXAMPLE:80/b"));
  turns();
  EXPECT_THAT(peer().heard(), HasSubstr("Authorization: Basic eDp5\r\n"));
}

TEST_F(ClientRedirects, WithLongBodyUseAnotherConnection) {
  const http::Call call = fetch(outcome_, {.max_redirects = 1});
  turns();
  peer().answer("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 1000000\r\n\r\n");
  turns();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_THAT(peer(1).heard(), StartsWith("GET /b "));
}

TEST_F(ClientRedirects, WithUnboundedBodyUseAnotherConnection) {
  const http::Call call = fetch(outcome_, {.max_redirects = 1});
  turns();
  peer().answer("HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n");
  const std::string piece(40'000, 'x');
  peer().answer(piece);
  turns();
  EXPECT_EQ(peers.size(), 1u);
  peer().answer(piece);
  turns();
  EXPECT_EQ(peers.size(), 2u);
}

// ---- cookies

TEST_F(ClientRequests, CookiesAreStoredAndSentWithJar) {
  make_client({.jar = &jar_});
  Outcome outcome;
  const http::Call call = fetch(outcome, {.max_redirects = 1});
  turns();
  EXPECT_THAT(peer().heard(), Not(HasSubstr("Cookie")));
  peer().answer(
      "HTTP/1.1 302 Found\r\nLocation: /b\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2; Max-Age=10\r\n"
      "Content-Length: 0\r\n\r\n");
  turns();
  EXPECT_THAT(peer().heard(), HasSubstr("Cookie: a=1; b=2\r\n"));
  peer().answer("HTTP/1.1 200 OK\r\nSet-Cookie: c=3\r\nContent-Length: 0\r\n\r\n");
  turns();
  EXPECT_EQ(jar_.size(), 3u);
  clock_.advance(11s);
  EXPECT_THAT(sent(kUrl), HasSubstr("Cookie: a=1; c=3\r\n"));
  EXPECT_THAT(sent(kUrl, {.fields = fields_of({{"Cookie", "own=1"}})}),
              AllOf(HasSubstr("Cookie: own=1\r\n"), Not(HasSubstr("a=1"))));
  EXPECT_THAT(sent("http://b.example/"), Not(HasSubstr("Cookie")));
}

}  // namespace
}  // namespace spate::testing
