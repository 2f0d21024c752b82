// A server that speaks TLS.
#include <gtest/gtest.h>

#include <string>

#include "http/harness.h"
#include "http/websocket_harness.h"
#include "spate/net/tls.h"
#include "streams/harness.h"
#include "tls/testing/certificates.h"

namespace spate::testing {
namespace {

using http::Exchange;

class SecureServer : public ::testing::Test {
 protected:
  SecureServer() {
    http::ServerOptions options;
    options.tls =
        must(TlsContext::server({.identities = {test_server().identity()}, .alpn = {"http/1.1"}}));
    server_ = must(http::serve(
        *loop_, Address::loopback_ipv4(0),
        [this](Exchange exchange) {
          if (on_request) return on_request(std::move(exchange));
          const auto info = exchange.request().tls();
          is_secure_ = exchange.request().is_secure();
          if (info) alpn_ = info->alpn;
          exchange.respond("secret\n");
        },
        std::move(options)));
  }

  std::unique_ptr<Loop> loop_ = must(Loop::create());
  http::Server server_;
  std::function<void(Exchange)> on_request;
  bool is_secure_ = false;
  std::string alpn_;
};

TEST_F(SecureServer, AnswersWhoShakesHands) {
  const TlsContext context = must(
      TlsContext::client({.system_cas = false, .ca = test_root().pem(), .alpn = {"http/1.1"}}));
  std::unique_ptr<RawClient> client;
  const Connecting connecting = connect(*loop_, "localhost", server_.address().port(), context,
                                        [&](TlsResult<Stream> stream) {
                                          ASSERT_TRUE(stream) << stream.error().text;
                                          client = std::make_unique<RawClient>(std::move(*stream));
                                          client->send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
                                        });
  run_until(*loop_, [&] { return client != nullptr && client->received.ends_with("secret\n"); });
  EXPECT_TRUE(is_secure_);
  EXPECT_EQ(alpn_, "http/1.1");
}

TEST_F(SecureServer, GoesOnAsAWebSocket) {
  Party here;
  on_request = [&](Exchange exchange) {
    here.socket = must(http::WebSocket::accept(std::move(exchange), here));
    here.socket.send("hello");
  };
  http::Client client = must(http::Client::create(*loop_, {.tls = test_client_context()}));
  Party there;
  const std::string url = "wss://localhost:" + std::to_string(server_.address().port()) + "/";
  there.socket = must(http::WebSocket::connect(client, url, there));
  there.on_told = [&](const std::string& what) {
    if (what == "text hello") there.socket.close();
  };
  run_until(*loop_, [&] { return !here.socket.is_open() && !there.socket.is_open(); });
  EXPECT_THAT(there.told, ::testing::ElementsAre("open", "text hello", "closed 1000"));
  EXPECT_THAT(here.told, ::testing::ElementsAre("closed 1000"));
}

TEST_F(SecureServer, AnswersNobodyElse) {
  std::unique_ptr<RawClient> client;
  const Connecting connecting = connect(*loop_, server_.address(), [&](Result<Stream> stream) {
    client = std::make_unique<RawClient>(std::move(*stream));
    client->send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  });
  run_until(*loop_, [&] { return client != nullptr && (client->is_closed || client->is_ended); });
  EXPECT_THAT(client->received, ::testing::Not(::testing::HasSubstr("HTTP/1.1")));
  EXPECT_EQ(server_.metrics().requests, 0u);
}

TEST_F(SecureServer, MayGoWhileHandsAreShaken) {
  std::unique_ptr<RawClient> client;
  const Connecting connecting = connect(*loop_, server_.address(), [&](Result<Stream> stream) {
    client = std::make_unique<RawClient>(std::move(*stream));
  });
  run_until(*loop_, [&] { return client != nullptr; });
  run_turns(*loop_, 20);
  server_ = {};
  run_turns(*loop_, 20);
}

TEST(Options, HaveNoTlsBehindTheProxyProtocol) {
  const auto loop = must(Loop::create());
  http::ServerOptions options;
  options.tls = must(TlsContext::server({.identities = {test_server().identity()}}));
  options.proxy_protocol = http::ProxyProtocol::always;
  const auto server = http::Server::create(*loop, [](Exchange) {}, std::move(options));
  EXPECT_EQ(server.error(), std::errc::invalid_argument);
}

}  // namespace
}  // namespace spate::testing
