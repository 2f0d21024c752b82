// WebSockets of a client over HTTP/2, to our server, and through a gateway.
#include <chrono>
#include <string>
#include <vector>

#include "http/client_http2_harness.h"
#include "http/gateway_harness.h"
#include "http/websocket_harness.h"
#include "spate/http/gateway.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::CloseCode;
using http::Exchange;
using http::HttpError;
using ::testing::ElementsAre;

class ClientHttp2WebSockets : public Http2PairTest {
 protected:
  ClientHttp2WebSockets() {
    on_request = [this](Exchange exchange) { serve(std::move(exchange)); };
  }
  void serve(Exchange exchange) {
    if (exchange.request()[http::FieldId::upgrade].empty()) {
      exchange.respond("hello\n");
      return;
    }
    EXPECT_EQ(exchange.request().version(), http::Version::http_2);
    EXPECT_EQ(exchange.request()[http::FieldId::sec_websocket_key], "");
    auto socket = http::WebSocket::accept(std::move(exchange), there_, of_server_);
    if (socket) there_.socket = std::move(*socket);
  }
  void connect(const http::WebSocketOptions& options = {}, http::CallOptions call = {}) {
    here_.socket = must(
        http::WebSocket::connect(client_, "ws://a.example/chat", here_, options, std::move(call)));
    turns();
  }
  void pass(Nanos time) {
    clock_.advance(time);
    turns(20);
  }

  http::WebSocketOptions of_server_;
  Party here_;
  Party there_;
};

TEST_F(ClientHttp2WebSockets, WebSocketWorksAlongsideCalls) {
  connect();
  EXPECT_THAT(here_.told, ElementsAre("open"));
  here_.socket.send("there");
  there_.socket.send(http::MessageKind::binary, bytes_of(std::string_view("back")));
  Outcome outcome;
  const http::Call call = fetch(outcome);
  turns();
  EXPECT_EQ(outcome.text(), "hello\n");
  EXPECT_THAT(there_.told, ElementsAre("text there"));
  EXPECT_THAT(here_.told, ElementsAre("open", "binary back"));
  EXPECT_EQ(opened.size(), 1u);
}

TEST_F(ClientHttp2WebSockets, ClientClosesWebSocket) {
  connect();
  here_.socket.close(CloseCode::normal, "bye");
  turns();
  EXPECT_THAT(here_.told, ElementsAre("open", "closed 1000"));
  EXPECT_THAT(there_.told, ElementsAre("closed 1000 bye"));
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientHttp2WebSockets, ServerClosesWebSocket) {
  connect();
  there_.socket.close(CloseCode::normal, "bye");
  turns();
  EXPECT_THAT(here_.told, ElementsAre("open", "closed 1000 bye"));
  EXPECT_THAT(there_.told, ElementsAre("closed 1000"));
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientHttp2WebSockets, DestroyedWebSocketSendsGoingAway) {
  connect();
  here_.socket.send("last");
  here_.socket = {};
  turns();
  EXPECT_THAT(there_.told, ElementsAre("text last", "closed 1001"));
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientHttp2WebSockets, AbortedWebSocketSendsNoCloseFrame) {
  connect();
  here_.socket.abort();
  turns();
  EXPECT_EQ(there_.error, std::errc::connection_reset);
  EXPECT_EQ(client_.metrics().idle, 1u);
  here_.told.clear();
  connect();
  there_.socket.abort();
  turns();
  EXPECT_EQ(here_.error, std::errc::connection_reset);
  EXPECT_EQ(opened.size(), 1u);
}

TEST_F(ClientHttp2WebSockets, DrainingServerIsReported) {
  connect();
  bool is_drained = false;
  server_.drain(10s, [&] { is_drained = true; });
  turns();
  EXPECT_THAT(here_.told, ElementsAre("open", "closed 1001"));
  turns();
  EXPECT_TRUE(is_drained);
  EXPECT_EQ(client_.metrics().connections, 0u);
}

TEST_F(ClientHttp2WebSockets, WebSocketEndsWithItsClient) {
  connect();
  client_ = {};
  turns();
  EXPECT_EQ(here_.error, std::errc::connection_reset);
  EXPECT_EQ(there_.error, std::errc::connection_reset);
}

TEST_F(ClientHttp2WebSockets, ConnectingWebSocketEndsWithItsClient) {
  for (const bool is_asked : {false, true}) {
    begin({}, {});
    std::vector<Exchange> kept;
    on_request = [&](Exchange exchange) { kept.push_back(std::move(exchange)); };
    here_.told.clear();
    here_.socket = must(http::WebSocket::connect(client_, "ws://a.example/chat", here_));
    if (is_asked) turns();
    EXPECT_EQ(kept.size(), is_asked ? 1u : 0u);
    client_ = {};
    EXPECT_TRUE(here_.socket.is_open());
    EXPECT_THAT(here_.told, ElementsAre());  // Never from inside a call.
    turns();
    EXPECT_EQ(here_.error, std::errc::operation_canceled);
    EXPECT_THAT(here_.told, ElementsAre("closed 1006: Operation canceled"));
    EXPECT_FALSE(here_.socket.is_open());
  }
}

TEST_F(ClientHttp2WebSockets, ProtocolAndCompressionAreNegotiated) {
  of_server_ = {.protocols = {"chat"},
                .compression = http::WebSocketCompression::each_message,
                .compress_from = 10};
  connect({.protocols = {"other", "chat"},
           .compression = http::WebSocketCompression::each_message,
           .compress_from = 10});
  EXPECT_EQ(here_.socket.protocol(), "chat");
  const std::string text(10'000, 'x');
  here_.socket.send(text);
  EXPECT_LT(here_.socket.queued(), 1000u);
  turns();
  EXPECT_THAT(there_.told, ElementsAre("text " + text));
}

TEST_F(ClientHttp2WebSockets, LongMessagesReachSlowReader) {
  connect();
  there_.socket.pause();
  const std::string text(900'000, 'z');
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(here_.socket.send(text));
  turns(300);
  EXPECT_TRUE(here_.socket.is_full());
  EXPECT_THAT(there_.told, ElementsAre());
  there_.socket.resume();
  turns(2000);
  EXPECT_THAT(there_.told, ElementsAre("text " + text, "text " + text, "text " + text));
  EXPECT_THAT(here_.told, ElementsAre("open", "drained"));
}

TEST_F(ClientHttp2WebSockets, PingsAreSentAndReceivePongs) {
  connect({.ping_after = 10s});
  for (int i = 0; i < 100; ++i) pass(1s);
  EXPECT_THAT(here_.told, ::testing::Contains("pong "));
  EXPECT_TRUE(here_.socket.is_open());
}

TEST_F(ClientHttp2WebSockets, SilentWebSocketIsClosed) {
  of_server_.ping_after = 0s;
  connect({.ping_after = 10s});
  there_.socket.pause();
  for (int i = 0; i < 100; ++i) pass(1s);
  EXPECT_EQ(here_.error, Error::idle_timeout);
  there_.socket.resume();  // A paused reader does not notice the reset before.
  turns();
  EXPECT_EQ(there_.error, std::errc::connection_reset);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientHttp2WebSockets, RefusedUpgradeIsError) {
  on_request = [](Exchange exchange) { exchange.respond(http::Status::not_found); };
  connect();
  EXPECT_EQ(here_.error, HttpError::not_upgraded);
  EXPECT_EQ(client_.metrics().idle, 1u);
}

TEST_F(ClientHttp2WebSockets, ConnectReachesDeadlineOfItsCall) {
  std::vector<Exchange> kept;
  on_request = [&](Exchange exchange) { kept.push_back(std::move(exchange)); };
  connect({}, {.deadline = 3s});
  pass(4s);
  EXPECT_EQ(here_.error, Error::deadline);
}

TEST_F(ClientHttp2WebSockets, SocketMayBeDestroyedWhileConnecting) {
  here_.socket = must(http::WebSocket::connect(client_, "ws://a.example/", here_));
  here_.socket = {};
  turns();
  EXPECT_THAT(here_.told, ElementsAre());
  EXPECT_EQ(client_.metrics().calls, 0u);
}

TEST_F(ClientHttp2WebSockets, SocketAndClientMayBeDestroyedInEveryCallback) {
  for (const char* when : {"open", "text hi", "closed 1000"}) {
    for (const bool is_client : {false, true}) {
      SCOPED_TRACE(when);
      begin({}, {});
      here_.told.clear();
      here_.on_told = [&](const std::string& what) {
        if (what != when) return;
        if (is_client) client_ = {};
        here_.socket = {};
      };
      connect();
      there_.socket.send("hi");
      turns();
      there_.socket.close();
      turns();
      EXPECT_EQ(here_.told.back(), when);
    }
  }
  here_.on_told = nullptr;
}

// ---- through a gateway, to an upstream of HTTP/2

class GatewayHttp2 : public Http2PairTest {
 protected:
  GatewayHttp2() {
    http::GatewayOptions options;
    options.client.http2 = must(http::Http2::create());
    options.client.http2_without_tls = true;
    options.client.open = [this](std::string_view, std::uint16_t) -> Result<Stream> {
      auto [mine, theirs] = must(Stream::memory_pair(loop_));
      upstream_.add(std::move(theirs));
      return std::move(mine);
    };
    gateway_ = must(http::Gateway::create(loop_, std::move(options)));
    http::ServerOptions serving;
    serving.http2 = must(http::Http2::create());
    upstream_ = must(http::Server::create(
        loop_,
        [this](Exchange exchange) {
          versions_.push_back(exchange.request().version());
          auto socket =
              http::WebSocket::accept(std::move(exchange), there_, {.origins = http::Origins::any});
          if (socket) there_.socket = std::move(*socket);
        },
        std::move(serving)));
    on_request = [this](Exchange exchange) {
      gateway_.forward(std::move(exchange), "http://up.example");
    };
  }

  http::Server upstream_;
  http::Gateway gateway_;
  std::vector<http::Version> versions_;
  Party here_;
  Party there_;
};

TEST_F(GatewayHttp2, Http2WebSocketsAreForwarded) {
  here_.socket = must(http::WebSocket::connect(client_, "ws://a.example/chat", here_));
  turns(200);
  EXPECT_THAT(here_.told, ElementsAre("open"));
  here_.socket.send("there");
  there_.socket.send("back");
  turns(200);
  EXPECT_THAT(there_.told, ElementsAre("text there"));
  EXPECT_THAT(versions_, ElementsAre(http::Version::http_2));
  EXPECT_EQ(gateway_.metrics().tunnels, 1u);
  there_.socket.close();
  turns(200);
  EXPECT_THAT(here_.told, ElementsAre("open", "text back", "closed 1000"));
  EXPECT_THAT(there_.told, ElementsAre("text there", "closed 1000"));
  EXPECT_EQ(gateway_.metrics().forwarding, 0u);
}

// The gateway answers the key, which the upstream never sees.
TEST_F(GatewayHttp2, Http1WebSocketsAreForwarded) {
  http::ClientOptions options;
  options.open = [this](std::string_view, std::uint16_t) -> Result<Stream> {
    auto [mine, theirs] = must(Stream::memory_pair(loop_));
    server_.add(std::move(theirs));
    return std::move(mine);
  };
  client_ = must(http::Client::create(loop_, std::move(options)));
  here_.socket = must(http::WebSocket::connect(client_, "ws://a.example/chat", here_));
  turns(200);
  EXPECT_THAT(here_.told, ElementsAre("open"));
  here_.socket.send("there");
  here_.socket.close();
  turns(200);
  EXPECT_THAT(versions_, ElementsAre(http::Version::http_2));
  EXPECT_THAT(there_.told, ElementsAre("text there", "closed 1000"));
  EXPECT_THAT(here_.told, ElementsAre("open", "closed 1000"));
}

TEST_F(GatewayHttp2, InvalidWebSocketKeyIsRefused) {
  auto [mine, theirs] = must(Stream::memory_pair(loop_));
  server_.add(std::move(theirs));
  RawClient client(std::move(mine));
  client.send(
      "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n\r\n");
  turns(200);
  EXPECT_TRUE(client.received.starts_with("HTTP/1.1 400 ")) << client.received;
  EXPECT_EQ(gateway_.metrics().forwarding, 0u);
}

TEST_F(GatewayHttp2, ErrorResponseIsForwarded) {
  auto [mine, theirs] = must(Stream::memory_pair(loop_));
  server_.add(std::move(theirs));
  RawClient client(std::move(mine));
  client.send(
      "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 12\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  turns(200);
  EXPECT_TRUE(client.received.starts_with("HTTP/1.1 426 ")) << client.received;
}

TEST_F(GatewayHttp2, ResetOfOneSideResetsBoth) {
  here_.socket = must(http::WebSocket::connect(client_, "ws://a.example/chat", here_));
  turns(200);
  here_.socket.abort();
  turns(200);
  EXPECT_EQ(there_.error, std::errc::connection_reset);
  EXPECT_EQ(gateway_.metrics().tunnels, 0u);
}

}  // namespace
}  // namespace spate::testing
