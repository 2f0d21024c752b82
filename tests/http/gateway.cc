// Gateway: the forwarding of messages, and the end of either side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "http/client_http2_harness.h"
#include "http/gateway_harness.h"

namespace spate::testing {
namespace {

using http::GatewayOptions;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

TEST_F(GatewayTest, RewritesRequest) {
  EXPECT_EQ(sent_for("GET /a%20b/../c?d=%2f HTTP/1.1\r\nhost: a.example:8080\r\nX-Odd: 1\r\n\r\n"),
            "GET /a%20b/../c?d=%2f HTTP/1.1\r\n"
            "X-Odd: 1\r\n"
            "Host: a.example:8080\r\n"
            "Forwarded: for=unknown;host=\"a.example:8080\";proto=http\r\n"
            "X-Forwarded-For: unknown\r\n"
            "X-Forwarded-Host: a.example:8080\r\n"
            "X-Forwarded-Proto: http\r\n"
            "Via: 1.1 spate\r\n\r\n");
  EXPECT_EQ(opened.back(), "up.example:81");
}

TEST_F(GatewayTest, RewritesResponse) {
  EXPECT_EQ(got_for("HTTP/1.1 404 Oh\r\nX-Odd: 1\r\nDate: old\r\nContent-Length: 2\r\n\r\nno"),
            "HTTP/1.1 404 Not Found\r\n" + std::string(kDateLine) +
                "Content-Length: 2\r\nX-Odd: 1\r\nVia: 1.1 spate\r\n\r\nno");
}

TEST_F(GatewayTest, DropsHopByHopFields) {
  const std::string sent = sent_for(
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Mine, close\r\nx-mine: 1\r\nKeep-Alive: 5\r\n"
      "Proxy-Authorization: s\r\nTE: gzip\r\nUpgrade: h2c\r\nProxy: evil\r\n\r\n");
  for (const char* name : {"onnection", "ine:", "Keep-Alive", "Proxy", "TE:", "Upgrade"})
    EXPECT_THAT(sent, Not(HasSubstr(name)));
  const std::string got = got_for(
      "HTTP/1.1 200 OK\r\nConnection: X-Mine, close\r\nX-Mine: 1\r\nProxy-Authenticate: a\r\n"
      "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  for (const char* name : {"onnection", "Mine", "Proxy"}) EXPECT_THAT(got, Not(HasSubstr(name)));
}

TEST_F(GatewayTest, ForwardsTeTrailers) {
  EXPECT_THAT(sent_for("GET / HTTP/1.1\r\nHost: a\r\nConnection: TE\r\nTE: gzip, trailers\r\n\r\n"),
              HasSubstr("\r\nConnection: TE\r\nTE: trailers\r\n"));
}

TEST_F(GatewayTest, DropsUntrustedForwardedFields) {
  constexpr std::string_view kClaims =
      "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1\r\nx-forwarded-port: 1\r\n"
      "X-Forwarded-For: 2.2.2.2\r\nX-Forwarded-Proto: https\r\nForwarded: for=me\r\n"
      "X-Real-IP: 3.3.3.3\r\n\r\n";
  const std::string sent = sent_for(kClaims);
  for (const char* claim : {"1.1.1.1", "-port", "2.2.2.2", "https", "for=me", "3.3.3.3"})
    EXPECT_THAT(sent, Not(HasSubstr(claim)));
  make_gateway({.clients = http::Clients::proxies});
  const std::string believed = sent_for(kClaims);
  EXPECT_THAT(believed, HasSubstr("X-Forwarded-For: 1.1.1.1, 2.2.2.2, unknown\r\n"));
  EXPECT_THAT(believed, HasSubstr("X-Forwarded-Proto: https\r\n"));
  EXPECT_THAT(believed, HasSubstr("Forwarded: for=me, for=unknown;host=\"a\";proto=http\r\n"));
  EXPECT_THAT(believed, HasSubstr("X-Real-IP: 3.3.3.3\r\n"));
}

// CGI and WSGI treat each of them as the field that the gateway sets.
TEST_F(GatewayTest, DropsRequestFieldsWithUnderscoreUnlessKept) {
  constexpr std::string_view kAmbiguous =
      "POST / HTTP/1.1\r\nHost: a\r\nX-Real_IP: 1.1.1.1\r\nX-Forwarded_Proto: https\r\n"
      "X_Forwarded_For: 2.2.2.2\r\nX_Mine: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
      "0\r\nX_Forwarded_For: 3.3.3.3\r\nX-Real-IP: 4.4.4.4\r\nX-Sum: 5\r\n\r\n";
  const std::string sent = sent_for(kAmbiguous);
  for (const char* claim : {"1.1.1.1", "https", "2.2.2.2", "X_Mine", "3.3.3.3", "4.4.4.4"})
    EXPECT_THAT(sent, Not(HasSubstr(claim)));
  EXPECT_THAT(sent, HasSubstr("X-Sum: 5\r\n"));
  make_gateway({.clients = http::Clients::proxies});
  EXPECT_THAT(sent_for(kAmbiguous), Not(HasSubstr("2.2.2.2")));
  make_gateway({.keep_underscores = true});
  const std::string kept = sent_for(kAmbiguous);
  EXPECT_THAT(kept, HasSubstr("X_Mine: 1\r\n"));
  EXPECT_THAT(kept, HasSubstr("X_Forwarded_For: 3.3.3.3\r\n"));
}

TEST_F(GatewayTest, RespondsToOptionsAndTraceAtMaxForwardsZero) {
  const auto ask_with = [](std::string_view method, std::string_view hops) {
    return std::string(method) + " / HTTP/1.1\r\nHost: a\r\nMax-Forwards: " + std::string(hops) +
           "\r\n\r\n";
  };
  EXPECT_EQ(sent_for(ask_with("OPTIONS", "0")), "nothing");
  EXPECT_THAT(ask(ask_with("OPTIONS", "0"))->received, StartsWith("HTTP/1.1 204 "));
  EXPECT_THAT(ask(ask_with("TRACE", "0"))->received, StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(sent_for(ask_with("OPTIONS", "7")), HasSubstr("\r\nMax-Forwards: 6\r\n"));
  EXPECT_THAT(sent_for(ask_with("GET", "0")), HasSubstr("\r\nMax-Forwards: 0\r\n"));
}

TEST_F(GatewayTest, SendsOptionsAsteriskForTargetWithoutPath) {
  EXPECT_THAT(sent_for("OPTIONS http://b.example HTTP/1.1\r\nHost: a\r\n\r\n"),
              StartsWith("OPTIONS * HTTP/1.1\r\n"));
  EXPECT_THAT(sent_for("OPTIONS http://b.example/ HTTP/1.1\r\nHost: a\r\n\r\n"),
              StartsWith("OPTIONS / HTTP/1.1\r\n"));
  EXPECT_THAT(sent_for("GET http://b.example HTTP/1.1\r\nHost: a\r\n\r\n"),
              StartsWith("GET / HTTP/1.1\r\n"));
}

TEST_F(GatewayTest, DropsFieldsNamedByLongConnectionField) {
  std::string request = "GET / HTTP/1.1\r\nHost: a\r\nX-Kept: 1\r\nx-Dropped: 2\r\nConnection: ";
  for (int i = 0; i < 1000; ++i) request += "b" + std::to_string(i) + ", ";
  const std::string sent = sent_for(request + "X-dropped\r\n\r\n");
  EXPECT_THAT(sent, HasSubstr("X-Kept: 1\r\n"));
  EXPECT_THAT(sent, Not(HasSubstr("ropped")));
}

TEST_F(GatewayTest, ForwardsResponseWithManyFields) {
  std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n";
  for (int i = 0; i < 300; ++i) answer += "X-" + std::to_string(i) + ": y\r\n";
  const std::string got = got_for(answer + "\r\nok");
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(got, HasSubstr("\r\nX-299: y\r\n"));
}

TEST_F(GatewayTest, ForwardsClientAddress) {
  serve_with({.proxy_protocol = http::ProxyProtocol::always});
  EXPECT_THAT(sent_for("PROXY TCP4 10.1.2.3 10.0.0.1 5 80\r\n" + std::string(kGet)),
              HasSubstr("for=10.1.2.3;"));
  const std::string sent = sent_for("PROXY TCP6 fe80::7 ::1 5 80\r\n" + std::string(kGet));
  EXPECT_THAT(sent, HasSubstr("Forwarded: for=\"[fe80::7]\";"));
  EXPECT_THAT(sent, HasSubstr("X-Forwarded-For: fe80::7\r\n"));
}

TEST_F(GatewayTest, TakesHostFromTarget) {
  const std::string sent = sent_for("GET http://b.example/x?y HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_THAT(sent, StartsWith("GET /x?y HTTP/1.1\r\n"));
  EXPECT_THAT(sent, HasSubstr("\r\nHost: b.example\r\n"));
  EXPECT_THAT(sent, Not(HasSubstr("a.example")));
  EXPECT_THAT(sent_for("GET http://b.example?y HTTP/1.1\r\nHost: a\r\n\r\n"),
              StartsWith("GET /?y HTTP/1.1\r\n"));
}

TEST_F(GatewayTest, ForwardsRequestsWithoutPathOrHost) {
  EXPECT_THAT(sent_for("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), StartsWith("OPTIONS * HTTP/1.1"));
  const std::string old = sent_for("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old, HasSubstr("\r\nHost: up.example:81\r\n"));
  EXPECT_THAT(old, HasSubstr("\r\nVia: 1.0 spate\r\n"));
  EXPECT_THAT(sent_for("BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n"), StartsWith("BREW /pot HTTP/1.1"));
}

TEST_F(GatewayTest, RejectsConnect) {
  EXPECT_THAT(talk("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"),
              StartsWith("HTTP/1.1 501 "));
  EXPECT_TRUE(opened.empty());
}

// ---- failures of an upstream

TEST_F(GatewayTest, Responds502Or504IfUpstreamIsUnreachable) {
  unreachable = {"up.example"};
  EXPECT_THAT(talk(kGet), StartsWith("HTTP/1.1 502 "));
  open_error = Error::connect_timeout;
  EXPECT_THAT(talk(kGet), StartsWith("HTTP/1.1 504 "));
  upstream = "nonsense";
  EXPECT_THAT(talk(kGet), StartsWith("HTTP/1.1 502 "));
  EXPECT_EQ(gateway_.metrics().failed, 3u);
  EXPECT_EQ(gateway_.metrics().unreached, 3u);
}

TEST_F(GatewayTest, RetriesAnotherUpstreamWithWholeRequest) {
  unreachable = {"up.example"};
  on_unreached = [&](std::error_code error) -> std::string {
    EXPECT_EQ(error, std::errc::connection_refused);
    return "http://other.example";
  };
  const auto client = ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_THAT(opened, ::testing::ElementsAre("up.example:81", "other.example:80"));
  EXPECT_TRUE(up().received.ends_with("\r\n\r\nhi"));
  up().answer(kOkTwo);
  turns();
  EXPECT_TRUE(client->received.ends_with("\r\n\r\nok"));
}

TEST_F(GatewayTest, Responds502WhenNoOtherUpstreamIsLeft) {
  unreachable = {"up.example"};
  int asked = 0;
  on_unreached = [&](std::error_code) -> std::string {
    return ++asked < 3 ? std::string(kUpstream) : std::string();
  };
  EXPECT_THAT(talk(kGet), StartsWith("HTTP/1.1 502 "));
  EXPECT_EQ(asked, 3);
}

TEST_F(GatewayTest, DoesNotRetryAfterRequestWasSent) {
  on_unreached = [](std::error_code) -> std::string {
    ADD_FAILURE() << "the request may have been done";
    return {};
  };
  const auto client = ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  up().stream().abort();
  turns();
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 502 "));
  EXPECT_EQ(gateway_.metrics().unreached, 0u);
}

TEST_F(GatewayTest, RejectsMalformedResponse) {
  for (const std::string_view answer :
       {"nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-"})
    EXPECT_THAT(got_for(answer), StartsWith("HTTP/1.1 502 ")) << answer;
}

TEST_F(GatewayTest, ResetsClientIfResponseIsTruncated) {
  for (const std::string_view answer :
       {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n"}) {
    const auto client = ask(kGet);
    upstreams.back()->answer(answer.substr(0, answer.find("abc") + 3));
    turns();
    EXPECT_THAT(client->received, StartsWith("HTTP/1.1 200 "));
    upstreams.back()->answer(answer.substr(answer.find("abc") + 3));
    upstreams.back()->stream().end();
    turns();
    EXPECT_EQ(client->error, std::errc::connection_reset) << answer;
  }
  EXPECT_EQ(gateway_.metrics().failed, 3u);
}

TEST_F(GatewayTest, Responds504IfUpstreamTimesOut) {
  const auto client = ask(kGet);
  pass(59s);
  EXPECT_EQ(client->received, "");
  pass(2s);
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 504 "));
  EXPECT_TRUE(up().is_closed);
}

TEST_F(GatewayTest, ResetsClientIfResponseStalls) {
  const auto client = ask(kGet);
  up().answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
  turns();
  pass(50s);
  up().answer("d");
  turns();
  pass(50s);
  EXPECT_FALSE(client->is_closed);
  pass(11s);
  EXPECT_EQ(client->error, std::errc::connection_reset);
}

TEST_F(GatewayTest, OpensNewConnectionAfterSilentHttp2Upstream) {
  GatewayOptions options{.timeout = 10s};
  options.client.http2 = must(http::Http2::create());
  options.client.http2_without_tls = true;
  make_gateway(std::move(options));
  const auto first = ask(kGet);
  up().answer(frame(kSettings, 0, 0) + answer_of(1));
  turns();
  EXPECT_THAT(first->received, HasSubstr("\r\nok\r\n"));
  const auto late = ask(kGet);
  pass(11s);
  EXPECT_THAT(late->received, StartsWith("HTTP/1.1 504 "));
  EXPECT_EQ(opened.size(), 1u);
  const auto next = ask(kGet);
  EXPECT_EQ(opened.size(), 2u);
}

TEST_F(GatewayTest, DoesNotTimeOutUpstreamOfSlowClient) {
  serve_with({.idle_timeout = Nanos{0}, .body_timeout = Nanos{0}, .min_body_rate = 0});
  const auto sender = ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nh");
  pass(200s);
  sender->send("i");
  turns();
  up().answer(kOkTwo);
  turns();
  EXPECT_TRUE(sender->received.ends_with("ok"));

  const auto reader = connect();
  reader->stream().pause();
  reader->send(kGet);
  turns();
  up().answer("HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + std::string(3'000'000, 'x'));
  turns(100);
  pass(200s);
  reader->stream().resume();
  turns(1000);
  EXPECT_TRUE(reader->received.ends_with(std::string(3'000'000, 'x')));
}

// ---- actions of the client

TEST_F(GatewayTest, CancelsWhenClientDisconnects) {
  auto client = ask(kGet);
  client->stream().abort();
  turns();
  EXPECT_TRUE(up(0).is_closed);
  client = ask(kGet);
  client->stream().end();
  turns();
  EXPECT_TRUE(up(1).is_closed);
  EXPECT_EQ(gateway_.metrics().forwarding, 0u);
}

TEST_F(GatewayTest, CancelsWhenClientDisconnectsDuringBody) {
  const auto client = ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello");
  client->stream().end();
  turns();
  EXPECT_TRUE(up().is_closed);
  EXPECT_EQ(gateway_.metrics().forwarding, 0u);
}

TEST_F(GatewayTest, RespondsToHalfClosedClientIfConfigured) {
  make_gateway({.half_closed = http::HalfClosed::is_answered});
  const auto client = ask(kGet);
  client->stream().end();
  turns();
  up().answer(kOkTwo);
  turns();
  EXPECT_TRUE(client->received.ends_with("ok"));
}

TEST_F(GatewayTest, DoesNotForwardRequestsThatServerRejects) {
  EXPECT_EQ(sent_for("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
                     "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            "nothing");
}

TEST_F(GatewayTest, CancelsWhenServerRejectsRestOfBody) {
  const auto client =
      ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\nnonsense");
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 400 "));
  EXPECT_TRUE(up().is_closed);
}

// ---- upgrades

constexpr std::string_view kUpgrade =
    "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Key: k\r\n\r\n";
constexpr std::string_view kSwitching =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n"
    "Sec-WebSocket-Accept: a\r\n\r\n";

TEST_F(GatewayTest, ForwardsUpgradeAsTunnel) {
  const auto client = ask(std::string(kUpgrade) + "early");
  EXPECT_THAT(up().received, HasSubstr("Connection: upgrade\r\nUpgrade: websocket\r\n"));
  EXPECT_THAT(up().received, HasSubstr("Sec-WebSocket-Key: k\r\n"));
  EXPECT_THAT(up().received, Not(HasSubstr("early")));
  up().heard();
  up().answer(std::string(kSwitching) + "hello");
  turns();
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 101 Switching Protocols\r\n"));
  EXPECT_THAT(client->received, HasSubstr("Sec-WebSocket-Accept: a\r\n"));
  EXPECT_TRUE(client->received.ends_with("\r\n\r\nhello"));
  EXPECT_EQ(up().heard(), "early");
  EXPECT_EQ(gateway_.metrics().tunnels, 1u);

  client->send("there");
  turns();
  EXPECT_EQ(up().heard(), "there");
  client->stream().end();
  turns();
  EXPECT_TRUE(up().is_ended);
  up().stream().end();
  turns();
  EXPECT_TRUE(client->is_closed);
  EXPECT_EQ(gateway_.metrics().tunnels, 0u);
}

TEST_F(GatewayTest, ClosesIdleTunnel) {
  make_gateway({.tunnel_timeout = 10s});
  const auto client = ask(kUpgrade);
  up().answer(kSwitching);
  turns();
  for (int i = 0; i < 6; ++i) pass(2500ms);
  EXPECT_TRUE(client->is_closed);
  EXPECT_TRUE(up().is_closed);
}

TEST_F(GatewayTest, ForwardsRefusalOfUpgrade) {
  const auto client = ask(kUpgrade);
  up().answer(kOkTwo);
  turns();
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(GatewayTest, ForwardsOnlyAllowedUpgrades) {
  EXPECT_THAT(sent_for("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade, HTTP2-Settings\r\n"
                       "Upgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n"),
              Not(::testing::AnyOf(HasSubstr("pgrade"), HasSubstr("HTTP2"))));
  EXPECT_THAT(sent_for("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n"),
              Not(HasSubstr("pgrade")));
  make_gateway({.upgrades = {"a/1", "b"}});
  EXPECT_THAT(sent_for("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: c, B\r\n\r\n"),
              HasSubstr("\r\nUpgrade: b\r\n"));
}

// ---- its life

TEST_F(GatewayTest, RespondsOrResetsWhenDestroyed) {
  const auto waiting = ask(kGet);
  const auto begun = ask(kGet);
  const auto tunnel = ask(kUpgrade);
  up(1).answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
  up(2).answer(kSwitching);
  turns();
  up(2).answer("part");
  turns();
  gateway_ = {};
  turns();
  EXPECT_THAT(waiting->received, StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(begun->error, std::errc::connection_reset);
  EXPECT_TRUE(tunnel->received.ends_with("part")) << tunnel->received;
  EXPECT_EQ(tunnel->error, std::errc::connection_reset);
  EXPECT_FALSE(tunnel->is_ended);
  for (const auto& each : upstreams) EXPECT_TRUE(each->is_closed || each->is_ended);
  EXPECT_FALSE(up(2).is_ended);
}

TEST_F(GatewayTest, OutlivesServer) {
  const auto client = ask(kGet);
  server_ = {};
  up().answer(kOkTwo);
  turns();
  EXPECT_EQ(gateway_.metrics().forwarding, 0u);
}

TEST_F(GatewayTest, DropsRequestWhenServerIsDestroyed) {
  const auto client = ask(kGet);
  server_ = {};
  pass(61s);
  EXPECT_EQ(gateway_.metrics().forwarding, 0u);
}

TEST_F(GatewayTest, OutlivesLoopAndServer) {
  const auto client = ask(kGet);
  const auto tunnel = ask(kUpgrade);
  up(1).answer(kSwitching);
  turns();
  owned_.reset();
  server_ = {};
  gateway_ = {};
}

TEST_F(GatewayTest, OutlivesLoop) {
  const auto client = ask(kGet);
  const auto begun = ask(kGet);
  up(1).answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
  turns();
  owned_.reset();
  gateway_ = {};
}

TEST_F(GatewayTest, IgnoresFinishedExchange) {
  gateway_.forward({}, kUpstream);
  EXPECT_EQ(gateway_.metrics().forwarded, 0u);
}

TEST_F(GatewayTest, RejectsInvalidOptions) {
  http::CookieJar jar;
  GatewayOptions with_jar;
  with_jar.client.jar = &jar;
  GatewayOptions no_connections;
  no_connections.client.max_per_origin = 0;
  GatewayOptions bad_name{.name = "two words"};
  GatewayOptions bad_upgrade{.upgrades = {"web socket"}};
  for (GatewayOptions* options : {&with_jar, &no_connections, &bad_name, &bad_upgrade}) {
    const auto gateway = http::Gateway::create(loop_, std::move(*options));
    ASSERT_FALSE(gateway);
    EXPECT_EQ(gateway.error(), std::errc::invalid_argument);
  }
}

// While a request with a body waits in the queue, the gateway does not notice that its client is
// gone.
TEST_F(GatewayTest, SkipsQueuedRequestOfDisconnectedClient) {
  GatewayOptions options;
  options.client.max_per_origin = 1;
  make_gateway(std::move(options));
  const auto first = ask(kGet);
  auto second = ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n");
  EXPECT_EQ(gateway_.metrics().forwarding, 2u);
  second.reset();
  turns();
  up().answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  turns();
  EXPECT_EQ(gateway_.metrics().forwarding, 0u);
  const auto third = ask(kGet);
  EXPECT_EQ(gateway_.metrics().forwarding, 1u);
  EXPECT_TRUE(upstreams.back()->heard().starts_with("GET ")) << upstreams.back()->heard();
}

}  // namespace
}  // namespace spate::testing
