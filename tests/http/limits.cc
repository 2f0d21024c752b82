// Limits, deadlines, and the end of a server.
#include <vector>

#include "http/harness.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Status;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Limits : public HttpServerTest {
 protected:
  // Second by second, as the loop would.
  void pass_seconds(int count) {
    for (int i = 0; i < count; ++i) pass(kSecond);
  }
};

TEST_F(Limits, RejectMalformedRequestsAndCloseConnection) {
  for (const char* text :
       {"GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n",
        "G@T / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
    const auto client = connect();
    client->send(kGet);
    turns();
    client->received.clear();
    client->send(std::string(text) + std::string(kGet));
    turns();
    EXPECT_THAT(client->received, StartsWith("HTTP/1.1 400 Bad Request\r\n")) << text;
    EXPECT_THAT(client->received, HasSubstr("Connection: close\r\n")) << text;
    EXPECT_TRUE(client->is_ended) << text;
  }
  EXPECT_EQ(server_.metrics().requests, 6u);
  EXPECT_EQ(server_.metrics().refused, 6u);
}

TEST_F(Limits, RejectMalformedHeadRequestWithoutBody) {
  const std::string response = talk("HEAD / HTTP/1.1\r\nHost : a\r\n\r\n");
  EXPECT_THAT(response, StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_THAT(response, EndsWith("\r\n\r\n"));
}

TEST_F(Limits, MapEachViolationToItsStatus) {
  serve_with({.max_head = 300, .max_request_line = 100, .max_fields = 3});
  const std::string line = "GET /" + std::string(100, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_THAT(talk(line), StartsWith("HTTP/1.1 414 URI Too Long\r\n"));
  EXPECT_THAT(talk("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(300, 'a')),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(talk("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(talk("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\n\r\n"), EndsWith("hello\n"));
  EXPECT_THAT(talk("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 505 "));
  EXPECT_THAT(talk("GET / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\n\r\n"),
              StartsWith("HTTP/1.1 417 "));
  EXPECT_THAT(talk("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
              StartsWith("HTTP/1.1 501 "));
}

TEST_F(Limits, AreValidated) {
  for (const http::ServerOptions& options :
       {http::ServerOptions{.max_head = 0}, http::ServerOptions{.max_head = 65'536},
        http::ServerOptions{.max_request_line = 0}, http::ServerOptions{.max_fields = 0},
        http::ServerOptions{.max_fields = 101}, http::ServerOptions{.max_requests = 0}}) {
    auto copy = http::ServerOptions{.max_head = options.max_head,
                                    .max_request_line = options.max_request_line,
                                    .max_fields = options.max_fields,
                                    .max_requests = options.max_requests};
    const auto server = http::Server::create(loop_, [](Exchange) {}, std::move(copy));
    ASSERT_FALSE(server.has_value());
    EXPECT_EQ(server.error(), std::errc::invalid_argument);
  }
}

TEST_F(Limits, RequestLimitClosesConnectionAfterLast) {
  serve_with({.max_requests = 2});
  const auto client = connect();
  client->send(std::string(kGet) + std::string(kGet) + std::string(kGet));
  turns();
  EXPECT_EQ(server_.metrics().requests, 2u);
  EXPECT_TRUE(client->is_ended);
}

TEST_F(Limits, GiveHeaderSectionTenSeconds) {
  const auto client = connect();
  client->send("GET / HTTP/1.1\r\n");
  for (int i = 0; i < 8; ++i) {
    pass_seconds(1);
    client->send("X: y\r\n");  // Some bytes arrive, but that must not postpone the deadline.
  }
  EXPECT_EQ(client->received, "");
  pass_seconds(3);
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 408 Request Timeout\r\n"));
  EXPECT_THAT(client->received, EndsWith("\r\n\r\n"));  // It may have been HEAD.
  EXPECT_TRUE(client->is_ended);
}

TEST_F(Limits, EndIdleConnection) {
  const auto client = connect();
  client->send(kGet);
  turns();
  pass(59 * kSecond);
  EXPECT_FALSE(client->is_closed || client->is_ended);
  pass(2 * kSecond);
  EXPECT_TRUE(client->is_closed || client->is_ended);
  EXPECT_EQ(server_.metrics().connections, 0u);
}

TEST_F(Limits, DoNotApplyToSlowHandler) {
  Exchange kept;
  on_request = [&](Exchange exchange) { kept = std::move(exchange); };
  const auto client = connect();
  client->send(kGet);
  pass_seconds(600);
  EXPECT_TRUE(kept.respond("late\n"));
  turns();
  EXPECT_THAT(client->received, EndsWith("late\n"));
  pass(59 * kSecond);
  EXPECT_FALSE(client->is_closed || client->is_ended);
  pass(2 * kSecond);
  EXPECT_TRUE(client->is_closed || client->is_ended);
}

TEST_F(Limits, DoNotApplyToHandlerAfterSlowHeaderSection) {
  Exchange kept;
  on_request = [&](Exchange exchange) { kept = std::move(exchange); };
  const auto client = connect();
  client->send(kGet.substr(0, 10));
  pass_seconds(2);
  client->send(kGet.substr(10));
  pass_seconds(600);
  EXPECT_TRUE(kept.respond("late\n"));
  turns();
  EXPECT_THAT(client->received, EndsWith("late\n"));
}

TEST_F(Limits, EndStalledBody) {
  on_request = [](Exchange exchange) {
    http::read_body(std::move(exchange), 1'000'000,
                    [](Exchange again, Bytes) { again.respond("x"); });
  };
  serve_with({.min_body_rate = 0});
  const auto client = connect();
  client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234");
  pass_seconds(29);
  EXPECT_EQ(client->received, "");
  pass_seconds(3);
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 408 "));
}

TEST_F(Limits, EndSlowBody) {
  on_request = [](Exchange exchange) {
    http::read_body(std::move(exchange), 1'000'000,
                    [](Exchange again, Bytes) { again.respond("x"); });
  };
  const auto client = connect();
  client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
  for (int i = 0; i < 10; ++i) {
    client->send(std::string(1000, 'a'));  // 1,024 would do.
    pass_seconds(1);
  }
  EXPECT_EQ(client->received, "");
  client->send(std::string(1000, 'a'));
  pass_seconds(2);
  EXPECT_THAT(client->received, StartsWith("HTTP/1.1 408 "));
}

TEST_F(Limits, EndSlowUnreadBodyAfterResponse) {
  const auto client = connect();
  client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
  for (int i = 0; i < 10; ++i) {
    client->send(std::string(1000, 'a'));
    pass_seconds(1);
  }
  EXPECT_THAT(client->received, EndsWith("hello\n"));
  EXPECT_FALSE(client->is_ended);
  client->send(std::string(1000, 'a'));
  pass_seconds(2);
  EXPECT_TRUE(client->is_ended);
}

// A server that was idle does not count the time before the response.
TEST_F(Limits, KeepConnectionWithFastUnreadBody) {
  pass_seconds(1000);
  const auto client = connect();
  client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n");
  for (int i = 0; i < 15; ++i) {
    client->send(std::string(2000, 'a'));
    pass_seconds(1);
  }
  client->send(kGet);
  turns();
  EXPECT_EQ(server_.metrics().requests, 2u);
  EXPECT_FALSE(client->is_ended);
}

TEST_F(Limits, DoNotApplyWhileBodyIsNotRead) {
  Exchange kept;
  on_request = [&](Exchange exchange) { kept = std::move(exchange); };
  const auto client = connect();
  client->send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234");
  pass_seconds(120);
  EXPECT_TRUE(kept.is_open());
}

TEST_F(Limits, EndResponseThatClientDoesNotRead) {
  on_request = [](Exchange exchange) {
    exchange.respond(Status::ok, std::string(1'000'000, 'a'), "text/plain");
  };
  auto [mine, theirs] = must(Stream::memory_pair(loop_));
  server_.add(std::move(theirs));
  mine.write(kGet);
  turns();
  EXPECT_EQ(server_.metrics().connections, 1u);
  pass(59 * kSecond);
  EXPECT_EQ(server_.metrics().connections, 1u);
  pass(2 * kSecond);
  EXPECT_EQ(server_.metrics().connections, 0u);
}

TEST_F(Limits, EndStreamedResponseThatClientDoesNotRead) {
  Exchange kept;
  on_request = [&](Exchange exchange) {
    exchange.begin(Status::ok);
    exchange.write(std::string(1'000'000, 'a'));
    kept = std::move(exchange);
  };
  auto [mine, theirs] = must(Stream::memory_pair(loop_));
  server_.add(std::move(theirs));
  mine.write(kGet);
  turns();
  EXPECT_TRUE(kept.is_full());
  pass_seconds(59);
  EXPECT_TRUE(kept.is_open());
  pass_seconds(3);
  EXPECT_FALSE(kept.is_open());
}

// Each piece has more framing than contents.
TEST_F(Limits, EndResponseOfManySmallPiecesThatClientDoesNotRead) {
  Exchange kept;
  on_request = [&](Exchange exchange) {
    exchange.begin(Status::ok);
    exchange.write(std::string(1'000'000, 'a'));
    kept = std::move(exchange);
  };
  auto [mine, theirs] = must(Stream::memory_pair(loop_));
  server_.add(std::move(theirs));
  mine.write(kGet);
  turns();
  for (int second = 0; second < 59; ++second) {
    pass_seconds(1);
    ASSERT_TRUE(kept.write("a"));
  }
  EXPECT_TRUE(kept.is_open());
  pass_seconds(3);
  EXPECT_FALSE(kept.is_open());
}

TEST_F(Limits, KeepResponseThatClientReadsSlowly) {
  Exchange kept;
  on_request = [&](Exchange exchange) {
    exchange.begin(Status::ok, {}, 100'000'000);
    exchange.write(std::string(1'000'000, 'a'));
    kept = std::move(exchange);
  };
  auto [mine, theirs] = must(Stream::memory_pair(loop_));
  server_.add(std::move(theirs));
  mine.write(kGet);
  turns();
  StreamCallbacks callbacks;
  std::size_t received = 0;
  callbacks.on_data = [&](Bytes bytes) {
    received += bytes.size();
    mine.pause();
    return bytes.size();
  };
  ASSERT_FALSE(mine.start(std::move(callbacks)));
  for (int i = 0; i < 10; ++i) {
    pass_seconds(40);
    mine.resume();
    turns();
  }
  EXPECT_TRUE(kept.is_open());
  EXPECT_GT(received, 0u);
}

// While responses wait for the client, the next request does not end earlier.
TEST_F(Limits, EndRequestAfterUnreadResponseInTime) {
  pass_seconds(1000);
  std::vector<Exchange> kept;
  on_request = [&](Exchange exchange) {
    if (exchange.request().path() != "/queued") return kept.push_back(std::move(exchange));
    exchange.respond(Status::ok, std::string(200'000, 'a'), "text/plain");
  };
  auto [mine, theirs] = must(Stream::memory_pair(loop_));
  server_.add(std::move(theirs));
  mine.write("GET /queued HTTP/1.1\r\nHost: a\r\n\r\n");
  turns();
  const auto other = connect();
  other->send(kGet);
  turns();
  mine.write(kGet);
  turns();
  ASSERT_EQ(kept.size(), 2u);
  pass_seconds(59);
  EXPECT_TRUE(kept.back().is_open());
  pass_seconds(3);
  EXPECT_FALSE(kept.back().is_open());
}

TEST_F(Limits, BoundMemoryOfClientThatPipelinesWithoutReading) {
  auto [mine, theirs] = must(Stream::memory_pair(loop_));
  server_.add(std::move(theirs));
  constexpr int kRequests = 20'000;
  for (int i = 0; i < kRequests; ++i) mine.write(kGet);
  turns(500);
  EXPECT_LT(server_.metrics().requests, 5'000u);
  RawClient client(std::move(mine));
  turns(3'000);
  EXPECT_EQ(server_.metrics().requests, static_cast<std::uint64_t>(kRequests));
}

TEST_F(Limits, LimitsOfOneExchangeDoNotAffectOthers) {
  Exchange kept;
  on_request = [&](Exchange exchange) {
    exchange.set_deadline(5 * kSecond);
    kept = std::move(exchange);
  };
  auto client = connect();
  client->send(kGet);
  pass_seconds(6);
  EXPECT_TRUE(client->is_ended);
  EXPECT_FALSE(kept.is_open());
  client = connect();
  client->send(kGet);
  turns();
  kept.respond("in time\n");
  pass_seconds(30);
  EXPECT_FALSE(client->is_closed || client->is_ended);
}

// ---- drain

TEST_F(Limits, DrainWaitsForOpenExchanges) {
  Exchange kept;
  on_request = [&](Exchange exchange) { kept = std::move(exchange); };
  const auto busy = connect();
  busy->send(kGet);
  const auto idle = connect();
  const auto late = connect();
  turns();
  bool is_done = false;
  server_.drain(30 * kSecond, [&] { is_done = true; });
  turns();
  EXPECT_FALSE(idle->is_ended);
  Exchange other = std::move(kept);
  late->send(kGet);
  turns();
  kept.respond("last\n");
  turns();
  EXPECT_THAT(late->received, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(late->received, EndsWith("last\n"));
  pass_seconds(1);
  EXPECT_TRUE(idle->is_ended);
  late->stream().end();
  idle->stream().end();
  turns();
  EXPECT_FALSE(is_done);
  other.respond("done\n");
  busy->stream().end();
  turns();
  EXPECT_THAT(busy->received, EndsWith("done\n"));
  EXPECT_TRUE(is_done);
}

TEST_F(Limits, EndDrainAfterGrace) {
  Exchange kept;
  on_request = [&](Exchange exchange) { kept = std::move(exchange); };
  const auto client = connect();
  client->send(kGet);
  turns();
  bool is_done = false;
  server_.drain(5 * kSecond, [&] { is_done = true; });
  pass_seconds(4);
  EXPECT_TRUE(kept.is_open());
  pass_seconds(2);
  EXPECT_FALSE(kept.is_open());
  EXPECT_TRUE(client->is_closed);
  EXPECT_TRUE(is_done);
}

TEST_F(Limits, DrainOfIdleServerEndsAtOnce) {
  bool is_done = false;
  server_.drain(5 * kSecond, [&] { is_done = true; });
  EXPECT_FALSE(is_done);
  turns();
  EXPECT_TRUE(is_done);
}

// ---- log

TEST_F(Limits, AccessLogContainsServedRequests) {
  std::string log;
  http::ServerOptions options;
  options.log = [&](const http::AccessRecord& record) {
    log += std::string(record.request.method_name()) + " " + std::string(record.request.target()) +
           " " + std::to_string(code_of(record.status)) + " " + std::to_string(record.sent) + " " +
           record.error.message() + "\n";
  };
  serve_with(std::move(options));
  talk("GET /a HTTP/1.1\r\nHost: a\r\n\r\nHEAD /b HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(log, "GET /a 200 6 Success\nHEAD /b 200 0 Success\n");
}

}  // namespace
}  // namespace spate::testing
