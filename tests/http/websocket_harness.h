// Shared by the tests of WebSockets: a server that accepts them, our clients, and clients that send
// given bytes.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/harness.h"
#include "spate/http/client.h"
#include "spate/http/websocket.h"
#include "support/websocket_frames.h"

namespace spate::testing {

inline constexpr std::string_view kAskWebSocket =
    "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

// Records its callbacks: "open", "text abc", "part abc...", "pong", "drained", "closed 1000 bye",
// "closed 1006 Connection reset by peer".
class Party final : public http::WebSocketHandler {
 public:
  void on_open() override { tell("open"); }
  void on_message(http::MessageKind kind, Bytes bytes) override {
    tell((kind == http::MessageKind::text ? "text " : "binary ") + std::string(text_of(bytes)));
  }
  void on_part(http::MessageKind, Bytes bytes, bool is_last) override {
    tell("part " + std::string(text_of(bytes)) + (is_last ? "" : "..."));
  }
  void on_pong(Bytes bytes) override { tell("pong " + std::string(text_of(bytes))); }
  void on_drained() override { tell("drained"); }
  void on_closed(http::CloseCode code, std::string_view reason, std::error_code why) override {
    error = why;
    std::string text = "closed " + std::to_string(static_cast<int>(code));
    if (!reason.empty()) text.append(" ").append(reason);
    tell(why ? text + ": " + why.message() : text);
  }

  std::vector<std::string> told;
  std::error_code error;
  std::function<void(const std::string&)> on_told;  // May destroy this.
  http::WebSocket socket;

 private:
  void tell(const std::string& what) {
    told.push_back(what);
    const std::string copy = what;
    if (on_told) on_told(copy);
  }
};

// A frame of the server.
inline std::string from_server(int first, std::string_view payload) {
  return frame({.first = first, .is_masked = false}, payload);
}

class WebSocketTest : public HttpServerTest {
 protected:
  WebSocketTest() {
    on_request = [this](http::Exchange exchange) { accept(std::move(exchange)); };
    http::ClientOptions client_options;
    client_options.open = [this](std::string_view, std::uint16_t) -> Result<Stream> {
      auto [mine, theirs] = must(Stream::memory_pair(loop_));
      server_.add(std::move(theirs));
      return std::move(mine);
    };
    client_ = must(http::Client::create(loop_, std::move(client_options)));
  }

  void accept(http::Exchange exchange) {
    auto socket = http::WebSocket::accept(std::move(exchange), *accepting, options);
    accept_error = socket ? std::error_code() : socket.error();
    if (socket) accepting->socket = std::move(*socket);
  }
  // Returns a client of raw bytes whose handshake is done.
  std::unique_ptr<RawClient> raw(std::string_view fields = {}) {
    auto client = HttpServerTest::connect();
    client->send(std::string(kAskWebSocket).append(fields).append("\r\n"));
    turns();
    answer = std::exchange(client->received, {});
    return client;
  }
  // Returns the server's reply to these bytes.
  std::string exchange(RawClient& client, std::string_view bytes) {
    client.received.clear();
    client.send(bytes);
    turns();
    return client.received;
  }
  // As above, and then ends the client's side: in memory, the server waits for that.
  std::string exchange_last(RawClient& client, std::string_view bytes) {
    exchange(client, bytes);
    client.stream().end();
    turns();
    return client.received;
  }
  // Returns our client, connected with `party`.
  void join(Party& other, const http::WebSocketOptions& its_options = {}) {
    other.socket = must(http::WebSocket::connect(client_, "ws://a/chat", other, its_options, {}));
    turns();
  }

  http::Client client_;
  Party party;
  Party* accepting = &party;  // The server's end.
  http::WebSocketOptions options;
  std::error_code accept_error;
  std::string answer;
};

}  // namespace spate::testing
