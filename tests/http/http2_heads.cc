// Header sections and trailers that HTTP/2 does not allow, or that others could interpret
// differently: either the session rejects them with a reset, or we do with a response.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "http/http2_frames.h"
#include "http/http2_harness.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Status;

class Http2Heads : public Http2ServerTest {
 protected:
  using Fields = Http2Client::Fields;

  // Returns the status of the response; 0 if the stream was reset as malformed.
  int status_of(const Fields& head, std::string_view body = {}) {
    const auto client = connect2();
    const auto id = client->begin(head, !body.empty());
    turns();
    if (!body.empty() && !client->answers[id].is_closed) client->write(id, body, true);
    turns();
    const Http2Client::Answer& answer = client->answers[id];
    EXPECT_TRUE(answer.is_closed);
    if (answer.status == 0) EXPECT_EQ(answer.code, std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
    EXPECT_EQ(server_.metrics().exchanges, 0u);
    return answer.status;
  }
  struct Case {
    Fields head;
    int status;
  };
  void expect_statuses(std::span<const Case> cases, std::string_view body = {}) {
    for (const Case& each : cases) {
      SCOPED_TRACE(&each - cases.data());
      EXPECT_EQ(status_of(each.head, body), each.status);
    }
  }
  static Fields get(const Fields& more) { return Http2Client::request("GET", "/", more); }
  static Fields head(std::string method, std::string scheme, std::string authority,
                     std::string path) {
    return {{":method", std::move(method)},
            {":scheme", std::move(scheme)},
            {":authority", std::move(authority)},
            {":path", std::move(path)}};
  }
  static Fields extended(std::string protocol, const Fields& more = {}) {
    Fields fields = head("CONNECT", "http", "a", "/");
    fields.emplace_back(":protocol", std::move(protocol));
    fields.insert(fields.end(), more.begin(), more.end());
    return fields;
  }
};

TEST_F(Http2Heads, AreParsedUnambiguously) {
  const Case cases[] = {
      {head("GET", "http", "a", "/"), 200},
      {head("", "http", "a", "/"), 0},
      {head("G@T", "http", "a", "/"), 0},
      {head("get", "http", "a", "/"), 200},  // Another method.
      {head("GET", "", "a", "/"), 0},
      {head("GET", "http", "", "/"), 0},
      {head("GET", "http", "u@a", "/"), 400},
      {head("GET", "http", "a b", "/"), 0},
      {head("GET", "http", "a", ""), 0},
      {head("GET", "http", "a", "b"), 0},
      {head("GET", "http", "a", "/#b"), 400},
      {head("GET", "http", "a", "/ b"), 0},
      {head("GET", "http", "a", "*"), 0},
      {head("OPTIONS", "http", "a", "*"), 200},
      {head("GET", "http", "a", "http://b/"), 0},
      // Other schemes allow any path.
      {head("GET", "x", "a", "http://b/"), 400},
      {head("GET", "x", "a", "http://a/"), 400},
      {head("GET", "x", "a", "a:80"), 400},
      {head("GET", "x", "a", "*"), 400},
      {head("GET", "x", "a", "b"), 400},
      {head("GET", "x", "a", ""), 0},
      {head("GET", "x", "a", "/"), 200},
  };
  expect_statuses(cases);
}

TEST_F(Http2Heads, AuthorityIsParsedUnambiguously) {
  const Case cases[] = {
      {{{":method", "GET"}, {":scheme", "http"}, {":path", "/"}}, 0},
      {{{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {"host", ""}}, 0},
      {{{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {"host", "a"}}, 200},
      {{{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {"host", "a"}, {"host", "a"}}, 0},
      {get({{"host", "a"}, {"host", "a"}}), 0},
      {get({{"host", "A"}}), 200},
      {get({{"host", "a:80"}}), 400},
      {get({{":authority", "a"}}), 0},
      {get({{"x", "y"}, {":authority", "a"}}), 0},
      {get({{":status", "200"}}), 0},
      {get({{":x", "y"}}), 0},
  };
  expect_statuses(cases);
}

TEST_F(Http2Heads, FieldsAreParsedUnambiguously) {
  const Case cases[] = {
      {get({{"x", ""}}), 200},
      {get({{"x", "\xff"}}), 200},
      {get({{"x", " y"}}), 0},
      {get({{"x", "y "}}), 0},
      {get({{"x", "a\nb"}}), 0},
      {get({{"x", "a\rb"}}), 0},
      {get({{"x", std::string(1, '\0')}}), 0},
      {get({{"x y", "z"}}), 0},
      {get({{"x:y", "z"}}), 0},
      {get({{"", "z"}}), 0},
      {get({{"connection", "close"}}), 0},
      {get({{"keep-alive", "x"}}), 0},
      {get({{"proxy-connection", "x"}}), 0},
      {get({{"transfer-encoding", "chunked"}}), 0},
      {get({{"upgrade", "websocket"}}), 0},
      {get({{"te", "gzip"}}), 0},
      {get({{"te", "trailers"}}), 200},
      {get({{"content-length", "0"}}), 200},
      {get({{"content-length", "5"}}), 0},
      {get({{"content-length", ""}}), 0},
      {get({{"content-length", "+0"}}), 0},
      {get({{"content-length", "0, 0"}}), 0},
      {get({{"content-length", "0"}, {"content-length", "0"}}), 0},
  };
  expect_statuses(cases);
}

TEST_F(Http2Heads, ConnectIsParsedUnambiguously) {
  on_request = [](Exchange exchange) { exchange.respond(Status::forbidden); };
  const Fields connect = {{":method", "CONNECT"}, {":authority", "a:80"}};
  const auto with = [&](const Fields& more) {
    Fields fields = connect;
    fields.insert(fields.end(), more.begin(), more.end());
    return fields;
  };
  const Case cases[] = {
      {connect, 403},
      {{{":method", "CONNECT"}, {":authority", "a"}}, 400},
      {{{":method", "CONNECT"}, {"host", "a:80"}}, 0},
      {with({{":path", "/"}}), 0},
      {with({{":scheme", "http"}}), 0},
      {with({{"host", "b:80"}}), 400},
      {with({{"content-length", "0"}}), 403},
      {with({{"content-length", "5"}}), 400},
      {extended("talk"), 403},
      {extended("talk/1"), 403},
      {extended(""), 0},
      {extended("talk, other"), 400},
      {extended("talk other"), 400},
      {extended("talk", {{"host", "b"}}), 400},
      {extended("talk", {{"content-length", "0"}}), 403},
      {extended("talk", {{"content-length", "5"}}), 400},
      {{{":method", "CONNECT"}, {":protocol", "talk"}, {":scheme", "http"}, {":authority", "a"}},
       0},
      {{{":method", "CONNECT"}, {":protocol", "talk"}, {":scheme", "http"}, {":path", "/"}}, 0},
      {{{":method", "CONNECT"},
        {":protocol", "talk"},
        {":scheme", "x"},
        {":authority", "a"},
        {":path", "http://b/"}},
       400},
      {get({{":protocol", "talk"}}), 0},
  };
  expect_statuses(cases, "0123456789");
}

// A client may wait for 100 before it ends the empty body.
TEST_F(Http2Heads, WithEmptyBodyReceive100Continue) {
  on_request = [](Exchange exchange) {
    read_body(std::move(exchange), 10, [](Exchange whole, Bytes) { whole.respond("whole"); });
  };
  const auto client = connect2();
  const auto id = client->begin(
      Http2Client::request("POST", "/", {{"content-length", "0"}, {"expect", "100-continue"}}),
      true);
  turns();
  EXPECT_THAT(client->answers[id].informed, ::testing::ElementsAre(100));
  client->write(id, "", true);
  turns();
  EXPECT_EQ(client->answers[id].body, "whole");
}

// ---- trailers

class Http2RequestTrailers : public Http2ServerTest {
 protected:
  // Sends trailers after a body of two bytes, whose handler reads it.
  Http2Client::Answer ask_with(Http2Client::Fields trailers, Http2Client::Fields head = {}) {
    on_request = [this](Exchange exchange) { kept_ = std::make_unique<Kept>(std::move(exchange)); };
    const auto client = connect2();
    const auto id = client->open_post("/", std::move(head));
    turns();
    client->write(id, "ok", true, std::move(trailers));
    turns();
    if (kept_ != nullptr && kept_->is_ended) kept_->exchange.respond(kept_->trailer);
    turns();
    EXPECT_EQ(server_.metrics().exchanges, 0u);
    return client->answers[id];
  }
  std::unique_ptr<Kept> kept_;
};

TEST_F(Http2RequestTrailers, DropFieldsForbiddenInTrailers) {
  EXPECT_EQ(ask_with({{"x", "y"}}).body, "x=y");
  EXPECT_EQ(ask_with({{"content-length", "2"}, {"x", "y"}}).body, "x=y");
  EXPECT_EQ(ask_with({{"authorization", "z"}, {"cookie", "z"}, {"x", "y"}}).body, "x=y");
  EXPECT_EQ(ask_with({{"host", "z"}, {"x", "y"}}).body, "x=y");
  EXPECT_EQ(ask_with({{"content-length", "3"}}).code, std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
  EXPECT_EQ(ask_with({{":path", "/"}}).code, std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
  EXPECT_EQ(ask_with({{"connection", "x"}}).code, std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
}

TEST_F(Http2RequestTrailers, AreLimitedLikeHeaderSection) {
  http::ServerOptions options;
  options.max_head = 1000;
  options.max_fields = 3;
  serve2(std::move(options));
  EXPECT_EQ(ask_with({{"x", std::string(999, 'y')}}).status, 200);
  EXPECT_EQ(ask_with({{"x", std::string(1000, 'y')}}).status, 431);
  EXPECT_EQ(ask_with({{"cookie", std::string(1000, 'y')}}).status, 431);
  EXPECT_EQ(ask_with({{"a", ""}, {"b", ""}, {"c", ""}}).status, 200);
  EXPECT_EQ(ask_with({{"a", ""}, {"b", ""}, {"c", ""}, {"d", ""}}).status, 431);
  EXPECT_EQ(server_.metrics().refused, 3u);
}

TEST_F(Http2RequestTrailers, ExceedingLimitsResetStartedResponse) {
  on_request = [this](Exchange exchange) {
    kept_ = std::make_unique<Kept>(std::move(exchange));
    kept_->exchange.begin(Status::ok);
    kept_->exchange.write("part");
  };
  const auto client = connect2();
  const auto id = client->open_post("/");
  turns();
  client->write(id, "ok", true, {{"x", std::string(20'000, 'y')}});
  turns();
  EXPECT_TRUE(kept_->is_closed && !kept_->is_ended);
  EXPECT_TRUE(client->answers[id].is_closed && !client->answers[id].is_ended);
}

TEST_F(Http2RequestTrailers, BeforeEndOfStreamAreRejected) {
  on_request = [this](Exchange exchange) { kept_ = std::make_unique<Kept>(std::move(exchange)); };
  const auto client = connect();
  client->send(std::string(kPreface) + frame(kSettings, 0, 0) +
               frame(kHeaders, kEndHeaders, 1, "\x83\x86\x84\x41\x01\x61") +
               frame(kHeaders, kEndHeaders, 1, std::string_view("\0\1x\1y", 5)) +
               frame(kData, kEndStream, 1, "ok"));
  turns();
  EXPECT_EQ(Heard(client->received).last_reset, NGHTTP2_PROTOCOL_ERROR);
  EXPECT_TRUE(kept_->is_closed && kept_->body.empty());
}

}  // namespace
}  // namespace spate::testing
