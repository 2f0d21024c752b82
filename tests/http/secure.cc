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
  SecureServer() { serve({}); }

  // Replaces the server.
  void serve(OnTlsFailure on_tls_failure) {
    http::ServerOptions options;
    options.on_tls_failure = std::move(on_tls_failure);
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

TEST_F(SecureServer, RespondsAfterHandshake) {
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

TEST_F(SecureServer, FailedHandshakeIsExplainedOnBothSides) {
  TlsFailure failure;
  Address peer;
  serve([&](const TlsFailure& why, const Address& from) {
    failure = why;
    peer = from;
  });
  // This client does not trust the server's root.
  http::Client client = must(http::Client::create(*loop_, {.tls = must(TlsContext::client())}));
  EXPECT_EQ(client.last_failure(), "");
  std::error_code error;
  const std::string url = "https://localhost:" + std::to_string(server_.address().port()) + "/";
  const http::Call call = client.fetch(
      url, [&](Result<http::Response> response) { error = response.error(); });
  EXPECT_EQ(call.last_failure(), "");
  run_until(*loop_, [&] { return error && failure.code; });
  EXPECT_EQ(error, Error::tls_certificate);
  EXPECT_THAT(std::string(call.last_failure()), ::testing::HasSubstr("CN = Test Root"));
  EXPECT_EQ(client.last_failure(), call.last_failure());
  EXPECT_THAT(failure.text, ::testing::Not(::testing::IsEmpty()));
  EXPECT_TRUE(peer.is_ip());
  EXPECT_FALSE(http::Call().is_open());
  EXPECT_EQ(http::Call().last_failure(), "");
}

TEST_F(SecureServer, FailedCallWithoutTlsHasMessageOfItsError) {
  http::Client client = must(http::Client::create(*loop_));
  std::error_code error;
  const http::Call call = client.fetch(
      "https://a/", [&](Result<http::Response> response) { error = response.error(); });
  run_until(*loop_, [&] { return static_cast<bool>(error); });
  EXPECT_EQ(call.last_failure(), error.message());
  EXPECT_EQ(client.last_failure(), error.message());
}

TEST_F(SecureServer, MayBeDestroyedByReportOfHandshake) {
  bool is_reported = false;
  serve([&](const TlsFailure&, const Address&) {
    is_reported = true;
    server_ = http::Server();
  });
  std::unique_ptr<RawClient> client;
  const Connecting connecting = connect(*loop_, server_.address(), [&](Result<Stream> stream) {
    client = std::make_unique<RawClient>(std::move(*stream));
    client->send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  });
  run_until(*loop_, [&] { return is_reported; });
  run_turns(*loop_, 20);
}

TEST_F(SecureServer, UpgradesToWebSocket) {
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

TEST_F(SecureServer, DrainWaitsForHandshakes) {
  Stream client;
  bool is_connected = false;
  const Connecting connecting =
      connect(*loop_, server_.address(), [&](Result<Stream> stream) {
        client = must(std::move(stream));
        is_connected = true;
      });
  run_until(*loop_, [&] { return is_connected; });
  for (int i = 0; i < 5; ++i) loop_->run(Run::no_wait);
  bool is_done = false;
  server_.drain(Nanos{60'000'000'000}, [&] { is_done = true; });
  for (int i = 0; i < 20; ++i) loop_->run(Run::no_wait);
  EXPECT_FALSE(is_done);
  client.abort();
  run_until(*loop_, [&] { return is_done; });
}

TEST_F(SecureServer, DoesNotRespondToPlaintext) {
  std::unique_ptr<RawClient> client;
  const Connecting connecting = connect(*loop_, server_.address(), [&](Result<Stream> stream) {
    client = std::make_unique<RawClient>(std::move(*stream));
    client->send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  });
  run_until(*loop_, [&] { return client != nullptr && (client->is_closed || client->is_ended); });
  EXPECT_THAT(client->received, ::testing::Not(::testing::HasSubstr("HTTP/1.1")));
  EXPECT_EQ(server_.metrics().requests, 0u);
}

TEST_F(SecureServer, MayBeDestroyedDuringHandshake) {
  std::unique_ptr<RawClient> client;
  const Connecting connecting = connect(*loop_, server_.address(), [&](Result<Stream> stream) {
    client = std::make_unique<RawClient>(std::move(*stream));
  });
  run_until(*loop_, [&] { return client != nullptr; });
  run_turns(*loop_, 20);
  server_ = {};
  run_turns(*loop_, 20);
}

}  // namespace
}  // namespace spate::testing
