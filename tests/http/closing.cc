// The closing of a connection after a response: when, and after which waits.
#include "http/harness.h"
#include "spate/net/stream.h"

namespace spate::testing {
namespace {

using ::testing::EndsWith;

constexpr std::string_view kLast = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
constexpr std::string_view kOld = "GET / HTTP/1.0\r\n\r\n";

class HttpClosing : public HttpServerTest {
 protected:
  // A client over a socket, which does not end its side.
  std::unique_ptr<RawClient> connect() {
    auto [mine, theirs] = must(Stream::socket_pair(loop_));
    server_.add(std::move(theirs));
    return std::make_unique<RawClient>(std::move(mine));
  }
  void expect_the_end(RawClient& client, std::size_t connections) {
    turns();
    EXPECT_THAT(client.received, EndsWith("\r\n\r\nhello\n"));
    EXPECT_TRUE(client.is_ended);
    EXPECT_EQ(server_.metrics().connections, connections);
    client.stream().end();
    turns();
    EXPECT_TRUE(client.is_closed);
    EXPECT_FALSE(client.error);
    EXPECT_EQ(server_.metrics().connections, 0u);
  }
};

TEST_F(HttpClosing, DoesNotWaitIfClientRequestedClose) {
  for (const std::string_view request : {kLast, kOld}) {
    const auto client = connect();
    client->send(request);
    expect_the_end(*client, 0);
  }
}

TEST_F(HttpClosing, DoesNotWaitAfterLateResponseToClosingClient) {
  http::Exchange kept;
  on_request = [&](http::Exchange exchange) { kept = std::move(exchange); };
  const auto client = connect();
  client->send(kLast);
  turns();
  kept.respond("hello\n");
  expect_the_end(*client, 0);
}

TEST_F(HttpClosing, DoesNotWaitAfterLateEndOfUnsizedResponse) {
  http::Exchange kept;
  on_request = [&](http::Exchange exchange) {
    exchange.begin(http::Status::ok);
    exchange.write("hello\n");
    kept = std::move(exchange);
  };
  const auto client = connect();
  client->send(kOld);
  turns();
  kept.end();
  expect_the_end(*client, 0);
}

TEST_F(HttpClosing, WaitsForClientThatMaySendMore) {
  serve_with({.max_requests = 1});
  const auto client = connect();
  client->send(kGet);
  expect_the_end(*client, 1);
}

TEST_F(HttpClosing, WaitsForClientThatSendsMoreAfterRequestingClose) {
  const auto client = connect();
  client->send(std::string(kLast) + std::string(kGet));
  turns();
  client->send(kGet);
  expect_the_end(*client, 1);
}

TEST_F(HttpClosing, WaitsForClientThatSendsMoreDuringResponse) {
  const auto client = connect();
  on_request = [&](http::Exchange exchange) {
    client->send(std::string(8'192, 'x'));  // Too long to be held back.
    exchange.respond("hello\n");
  };
  client->send(kLast);
  expect_the_end(*client, 1);
}

TEST_F(HttpClosing, WaitsAfterErrorResponse) {
  const auto client = connect();
  client->send("GET / HTTP/1.1\r\n\r\n");
  turns();
  EXPECT_TRUE(client->is_ended);
  EXPECT_EQ(server_.metrics().connections, 1u);
}

}  // namespace
}  // namespace spate::testing
