// Clients of HTTP/2 that are slow, broken or hostile: their cost is bounded, and counted.
#include "http/http2_frames.h"
#include "http/http2_harness.h"
#include "spate/net/tls.h"
#include "streams/harness.h"
#include "tls/testing/certificates.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Status;

// GET / of http://a, from the static table except for the authority.
constexpr std::string_view kHeadOfGet = "\x82\x86\x84\x41\x01\x61";

// A POST in the same way, with Content-Length: 1.
constexpr std::string_view kHeadOfPost = "\x83\x86\x84\x41\x01\x61\x0f\x0d\x01\x31";

std::string get(std::uint32_t stream) {
  return frame(kHeaders, kEndStream | kEndHeaders, stream, kHeadOfGet);
}

class Http2Floods : public Http2ServerTest {
 protected:
  Http2Floods() {
    client_ = connect();
    client_->send(std::string(kPreface) + frame(kSettings, 0, 0));
    turns();
  }

  // Repeats until the server ends the connection, `most` times at most. Returns the number.
  int flood(int most, std::function<std::string(int)> make) {
    for (int i = 0; i < most; ++i) {
      if (client_->is_closed || client_->is_ended) return i;
      client_->send(make(i));
      turns(2);
    }
    return most;
  }
  Heard heard() const { return Heard(client_->received); }
  bool is_cut_off() const { return client_->is_closed || client_->is_ended; }

  std::unique_ptr<RawClient> client_;
};

TEST_F(Http2Floods, ResetFloodClosesConnection) {
  const int borne = flood(2000, [](int i) {
    const std::uint32_t id = static_cast<std::uint32_t>(2 * i + 1);
    return get(id) + frame(kReset, 0, id, number(8));
  });
  EXPECT_GE(borne, 500);
  EXPECT_LE(borne, 510);
  EXPECT_EQ(heard().last_goaway, NGHTTP2_ENHANCE_YOUR_CALM);
  EXPECT_LE(server_.metrics().requests, 510u);
  EXPECT_GE(server_.metrics().refused, 1u);
}

TEST_F(Http2Floods, ResetsInOneSegmentStartNoMoreThanBudget) {
  std::string all;
  for (std::uint32_t id = 1; id < 20'000; id += 2) all += get(id) + frame(kReset, 0, id, number(8));
  client_->send(all);
  turns();
  EXPECT_TRUE(is_cut_off());
  EXPECT_LE(server_.metrics().requests, 510u);
}

// A client may make us reset its streams, so that it seems to have reset none.
TEST_F(Http2Floods, ProvokedResetFloodClosesConnection) {
  std::vector<Exchange> exchanges;
  on_request = [&](Exchange exchange) { exchanges.push_back(std::move(exchange)); };
  const auto overflow = [](std::uint32_t id) {
    return get(id) + frame(kWindow, 0, id, number(INT32_MAX));
  };
  const auto longer_than_said = [](std::uint32_t id) {
    return frame(kHeaders, kEndHeaders, id, kHeadOfPost) + frame(kData, kEndStream, id, "xx");
  };
  for (const auto& bad : {std::function(overflow), std::function(longer_than_said)}) {
    client_ = connect();
    client_->send(std::string(kPreface) + frame(kSettings, 0, 0));
    const int borne =
        flood(2000, [&bad](int i) { return bad(static_cast<std::uint32_t>(2 * i + 1)); });
    EXPECT_GE(borne, 500);
    EXPECT_LE(borne, 510);
    EXPECT_EQ(heard().last_goaway, NGHTTP2_ENHANCE_YOUR_CALM);
  }
  EXPECT_GE(server_.metrics().refused, 1000u);
  EXPECT_EQ(server_.metrics().exchanges, 0u);
}

TEST_F(Http2Floods, UselessFrameFloodClosesConnection) {
  const std::string useless[] = {frame(kPing, 0, 0, "01234567"),
                                 frame(kSettings, 0, 0),
                                 frame(kPriority, 0, 1, std::string_view("\0\0\0\0\20", 5)),
                                 frame(kWindow, 0, 0, number(1)),
                                 frame(kData, 0, 1),
                                 frame(Type{77}, 0, 1, "unknown")};
  std::unique_ptr<Kept> kept;
  on_request = [&](Exchange exchange) { kept = std::make_unique<Kept>(std::move(exchange)); };
  for (const std::string& each : useless) {
    SCOPED_TRACE(static_cast<int>(each[3]));
    client_ = connect();
    client_->send(std::string(kPreface) + frame(kSettings, 0, 0) +
                  frame(kHeaders, kEndHeaders, 1, kHeadOfGet));
    const int borne = flood(3000, [&](int) { return each; });
    EXPECT_GE(borne, 950);
    EXPECT_LE(borne, 1050);
    EXPECT_EQ(heard().last_goaway, NGHTTP2_ENHANCE_YOUR_CALM);
    EXPECT_TRUE(kept->is_closed);
  }
}

TEST_F(Http2Floods, TrafficBelowLimitsIsAccepted) {
  for (int i = 0; i < 100; ++i) {
    for (int ping = 0; ping < 90; ++ping) client_->send(frame(kPing, 0, 0, "01234567"));
    turns(3);
    clock_.advance(Nanos{1'000'000'000});
  }
  client_->send(get(1));
  turns();
  EXPECT_FALSE(is_cut_off());
  EXPECT_EQ(server_.metrics().requests, 1u);
}

TEST_F(Http2Floods, PingFloodFromNonReadingClientClosesConnection) {
  client_->stream().pause();
  std::string pings;
  for (int i = 0; i < 5000; ++i) pings += frame(kPing, 0, 0, "01234567");
  client_->send(pings);
  turns();
  client_->stream().resume();
  turns();
  EXPECT_TRUE(is_cut_off());
}

TEST_F(Http2Floods, ContinuationFloodClosesConnection) {
  client_->send(frame(kHeaders, kEndStream, 1, kHeadOfGet));
  const int borne = flood(1000, [](int) { return frame(kContinuation, 0, 1); });
  EXPECT_LE(borne, 20);
  EXPECT_EQ(server_.metrics().requests, 0u);
  EXPECT_GE(server_.metrics().refused, 1u);
}

TEST_F(Http2Floods, StreamsBeyondLimitAreRefused) {
  std::vector<Exchange> exchanges;
  on_request = [&](Exchange exchange) { exchanges.push_back(std::move(exchange)); };
  for (std::uint32_t i = 0; i < 150; ++i) client_->send(get(2 * i + 1));
  turns();
  EXPECT_EQ(exchanges.size(), 100u);
  EXPECT_EQ(heard().count[kReset], 50);
  EXPECT_EQ(heard().last_reset, NGHTTP2_REFUSED_STREAM);
}

TEST_F(Http2Floods, InvalidFramesCloseConnection) {
  const std::string broken[] = {frame(kSettings, 0, 1),
                                frame(kPing, 0, 0, "short"),
                                frame(kHeaders, kEndHeaders, 2, kHeadOfGet),
                                frame(kData, 0, 1, "x"),
                                frame(kPush, kEndHeaders, 1, kHeadOfGet),
                                frame(kHeaders, kEndHeaders, 1, "\xff\xff\xff\xff\xff\xff"),
                                frame(kData, 0, 0, "x"),
                                std::string(20'000, '\xff'),
                                frame(kWindow, 0, 0, number(0)),
                                frame(kContinuation, 4, 1),
                                frame(kPriority, 0, 0, std::string_view("\0\0\0\0\20", 5))};
  for (const std::string& each : broken) {
    client_ = connect();
    client_->send(std::string(kPreface) + frame(kSettings, 0, 0) + each);
    turns();
    EXPECT_TRUE(is_cut_off()) << ::testing::PrintToString(each.substr(0, 20));
    EXPECT_GT(heard().last_goaway, 0) << ::testing::PrintToString(each.substr(0, 20));
  }
  EXPECT_EQ(server_.metrics().requests, 0u);
  EXPECT_EQ(server_.metrics().refused, std::size(broken));
  EXPECT_EQ(server_.metrics().connections, 0u);
}

TEST_F(Http2Floods, HeadersForStreamClosedByClientAreError) {
  std::vector<Exchange> exchanges;
  on_request = [&](Exchange exchange) {
    if (exchange.request().method() == http::Method::post)
      exchanges.push_back(std::move(exchange));
    else
      exchange.respond("closed");
  };
  const std::string closing[] = {
      get(1),  // By its end,
      get(5),  // by the beginning of another,
      frame(kHeaders, kEndHeaders, 1, kHeadOfPost) + frame(kReset, 0, 1, number(8)),
  };
  for (const std::string& each : closing) {
    client_ = connect();
    client_->send(std::string(kPreface) + frame(kSettings, 0, 0) + each);
    turns();
    EXPECT_FALSE(is_cut_off());
    client_->send(get(each == closing[1] ? 3 : 1));
    turns();
    EXPECT_TRUE(is_cut_off()) << ::testing::PrintToString(each);
    EXPECT_EQ(heard().last_goaway, NGHTTP2_PROTOCOL_ERROR) << ::testing::PrintToString(each);
  }
}

// Frames of the client may cross the server's reset.
TEST_F(Http2Floods, FramesForStreamClosedByServerAreIgnored) {
  std::vector<Exchange> exchanges;
  on_request = [&](Exchange exchange) {
    exchanges.push_back(std::move(exchange));
    if (exchanges.size() == 2) exchanges.clear();
  };
  client_->send(frame(kHeaders, kEndHeaders, 1, kHeadOfGet));
  client_->send(frame(kHeaders, kEndHeaders, 3, kHeadOfGet));
  turns();
  pass(kSecond);
  pass(kSecond);  // The client may use up its window before.
  EXPECT_EQ(heard().count[kReset], 2);
  client_->send(frame(kData, 0, 1, "x") + frame(kData, kEndStream, 3, "x"));
  client_->send(frame(kHeaders, kEndStream | kEndHeaders, 1, kHeadOfGet));
  turns();
  EXPECT_FALSE(is_cut_off());
  // Refuses one whose body is in the same piece as another stream.
  for (std::uint32_t i = 0; i < 100; ++i) {
    on_request = [&](Exchange exchange) { exchanges.push_back(std::move(exchange)); };
    client_->send(frame(kHeaders, kEndHeaders, 5 + 2 * i, kHeadOfGet));
  }
  turns();
  ASSERT_EQ(exchanges.size(), 100u);
  client_->send(frame(kHeaders, kEndHeaders, 301, kHeadOfGet) + frame(kReset, 0, 5, number(8)) +
                get(303) + frame(kData, 0, 301, "x") +
                frame(kHeaders, kEndStream | kEndHeaders, 301, "\x40\x01x\x01y"));
  turns();
  EXPECT_FALSE(is_cut_off());
  EXPECT_EQ(exchanges.size(), 101u);
  EXPECT_EQ(heard().last_goaway, -1);
}

TEST_F(Http2Floods, MalformedRequestsResetTheirStream) {
  const std::string_view bad[] = {
      "\x82\x86\x84",                 // No authority.
      "\x86\x84\x41\x01\x61",         // No method.
      "\x82\x86\x84\x84\x41\x01\x61"  // Two paths.
  };
  std::uint32_t id = 1;
  for (const std::string_view each : bad) {
    client_->send(frame(kHeaders, kEndStream | kEndHeaders, id, each));
    id += 2;
  }
  client_->send(get(id));
  turns();
  EXPECT_EQ(heard().count[kReset], 3);
  EXPECT_EQ(heard().last_reset, NGHTTP2_PROTOCOL_ERROR);
  EXPECT_EQ(server_.metrics().requests, 1u);
  EXPECT_EQ(server_.metrics().refused, 3u);
}

// ---- time

// More than the connection's window; the stream's own is as large.
TEST_F(Http2Floods, UnreadBodiesDoNotBlockOthers) {
  constexpr std::size_t kMiB = 1024 * 1024;
  serve2({}, {.stream_window = 16 * kMiB});
  std::unique_ptr<Kept> kept;
  on_request = [&](Exchange exchange) {
    if (exchange.request().path() != "/paused")
      return read_body(std::move(exchange), 10,
                       [](Exchange whole, Bytes body) { whole.respond(text_of(body)); });
    kept = std::make_unique<Kept>(std::move(exchange));
    kept->exchange.pause();
  };
  const auto client = connect2();
  const auto paused = client->open_post("/paused");
  const std::string piece(kMiB, 'x');
  for (int i = 0; i < 17; ++i) {
    client->write(paused, piece, i == 16);
    turns();
  }
  EXPECT_EQ(client->answers[paused].unsent.size(), kMiB);
  const auto read = client->post("/read", "hello");
  turns();
  EXPECT_EQ(client->answers[read].body, "hello");
  kept->exchange.resume();
  turns();
  EXPECT_EQ(kept->body.size(), 17 * kMiB);
  EXPECT_TRUE(kept->is_ended);
}

class Http2Deadlines : public Http2Floods {};

TEST_F(Http2Deadlines, CloseConnectionOnIncompleteHeaderBlock) {
  client_->send(frame(kHeaders, kEndStream, 1, kHeadOfGet));
  turns();
  pass(Nanos{9'000'000'000});
  EXPECT_FALSE(is_cut_off());
  pass(Nanos{2'000'000'000});
  EXPECT_TRUE(is_cut_off());
}

TEST_F(Http2Deadlines, CloseIdleConnection) {
  client_->send(get(1));
  turns();
  pass(Nanos{2'000'000'000});
  pass(Nanos{58'000'000'000});
  EXPECT_FALSE(is_cut_off());
  pass(Nanos{5'000'000'000});
  EXPECT_TRUE(is_cut_off());
}

TEST_F(Http2Deadlines, Respond408ToSlowBody) {
  std::unique_ptr<Kept> kept;
  on_request = [&](Exchange exchange) { kept = std::make_unique<Kept>(std::move(exchange)); };
  const auto client = connect2();
  const auto id = client->open_post("/");
  turns();
  for (int i = 0; i < 32; ++i) pass(Nanos{1'000'000'000});
  EXPECT_EQ(client->answers[id].status, 408);
  EXPECT_EQ(kept->error, std::error_code(Error::read_timeout));
  EXPECT_FALSE(client->is_closed);
}

TEST_F(Http2Deadlines, ResetStreamWithExhaustedWindow) {
  std::unique_ptr<Kept> kept;
  on_request = [&](Exchange exchange) {
    kept = std::make_unique<Kept>(std::move(exchange));
    kept->exchange.begin(Status::ok);
    kept->exchange.write(std::string(100'000, 'x'));
  };
  const auto client = connect2(Windows::by_hand);
  const auto id = client->get("/");
  turns();
  for (int i = 0; i < 59; ++i) pass(Nanos{1'000'000'000});
  EXPECT_FALSE(client->answers[id].is_closed);
  for (int i = 0; i < 3; ++i) pass(Nanos{1'000'000'000});
  EXPECT_EQ(client->answers[id].code, std::uint32_t{NGHTTP2_CANCEL});
  EXPECT_EQ(kept->error, std::error_code(Error::write_timeout));
}

// ---- over TLS

TEST(Http2OverTls, IsNegotiatedByAlpn) {
  const auto loop = must(Loop::create());
  http::ServerOptions options;
  options.http2 = must(http::Http2::create());
  options.tls = must(
      TlsContext::server({.identities = {test_server().identity()}, .alpn = {"h2", "http/1.1"}}));
  http::Server server = must(http::serve(
      *loop, Address::loopback_ipv4(0),
      [](Exchange exchange) {
        EXPECT_EQ(exchange.request().tls()->alpn, "h2");
        exchange.respond("secret\n");
      },
      std::move(options)));
  const TlsContext context =
      must(TlsContext::client({.system_cas = false, .ca = test_root().pem(), .alpn = {"h2"}}));
  std::unique_ptr<Http2Client> client;
  std::int32_t id = 0;
  const Connecting connecting =
      connect(*loop, "localhost", server.address().port(), context, [&](TlsResult<Stream> stream) {
        ASSERT_TRUE(stream) << stream.error().text;
        client = std::make_unique<Http2Client>(std::move(*stream));
        id = client->get("/");
      });
  run_until(*loop, [&] { return client != nullptr && client->answers[id].is_ended; });
  EXPECT_EQ(client->answers[id].body, "secret\n");
}

}  // namespace
}  // namespace spate::testing
