// The handshakes of WebSockets, as a server and as a client.
#include <chrono>
#include <string>

#include "http/codec/websocket_handshake.h"
#include "http/websocket_harness.h"

using namespace std::chrono_literals;

namespace spate::testing {
namespace {

using http::CallOptions;
using http::HttpError;
using http::Origins;
using http::WebSocket;
using http::WebSocketOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// ---- the handshake

class WebSocketHandshakes : public WebSocketTest {};

TEST_F(WebSocketHandshakes, RespondAsSpecified) {
  const auto client = raw();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 101 "));
  EXPECT_THAT(answer, HasSubstr("\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nUpgrade: websocket\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("Sec-WebSocket-Extensions")));
  EXPECT_TRUE(party.socket.is_writable());
  EXPECT_THAT(party.told, IsEmpty());
}

TEST_F(WebSocketHandshakes, RejectInvalidRequests) {
  const std::string_view good = kAskWebSocket;
  const auto without = [&](std::string_view line) {
    std::string text(good);
    text.erase(text.find(line), line.size());
    return text + "\r\n";
  };
  const auto with = [&](std::string_view line) { return std::string(good).append(line) + "\r\n"; };
  const auto status_of = [&](const std::string& text) { return talk(text).substr(9, 3); };
  EXPECT_EQ(status_of(without("Upgrade: websocket\r\n")), "400");
  EXPECT_EQ(status_of(without("Connection: Upgrade\r\n")), "400");
  EXPECT_EQ(status_of(without("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")), "400");
  EXPECT_EQ(status_of(with("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")), "400");
  EXPECT_EQ(status_of(with("Content-Length: 1\r\n") + "a"), "400");
  EXPECT_EQ(status_of(without("Sec-WebSocket-Version: 13\r\n")), "426");
  EXPECT_THAT(talk(without("Sec-WebSocket-Version: 13\r\n")),
              HasSubstr("\r\nSec-WebSocket-Version: 13\r\n"));
  // RFC 9110 §15.5.22.
  EXPECT_THAT(talk(without("Sec-WebSocket-Version: 13\r\n")),
              HasSubstr("\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"));
  EXPECT_EQ(status_of("POST" + with("").substr(3)), "405");
  EXPECT_EQ(accept_error, std::errc::protocol_error);
  EXPECT_FALSE(party.socket.is_open());
}

TEST_F(WebSocketHandshakes, RejectOtherOriginsByDefault) {
  raw("Origin: http://evil\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 403 "));
  EXPECT_EQ(accept_error, std::errc::permission_denied);
  raw("Origin: http://a\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 101 "));
  options.origins = Origins::any;
  raw("Origin: http://evil\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 101 "));
}

TEST_F(WebSocketHandshakes, SelectFirstCommonProtocol) {
  options.protocols = {"v2", "v1"};
  raw("Sec-WebSocket-Protocol: v1, v2\r\n");
  EXPECT_THAT(answer, HasSubstr("\r\nSec-WebSocket-Protocol: v2\r\n"));
  EXPECT_EQ(party.socket.protocol(), "v2");
  raw("Sec-WebSocket-Protocol: v3\r\n");
  EXPECT_THAT(answer, Not(HasSubstr("Sec-WebSocket-Protocol")));
  EXPECT_EQ(party.socket.protocol(), "");
  Party other;
  join(other, {.protocols = {"v0", "v1"}});
  EXPECT_EQ(other.socket.protocol(), "v1");
  EXPECT_EQ(party.socket.protocol(), "v1");
}

TEST_F(WebSocketHandshakes, FailForFinishedExchange) {
  on_request = [this](http::Exchange exchange) {
    exchange.respond("no");
    accept(std::move(exchange));
  };
  raw();
  EXPECT_EQ(accept_error, std::errc::broken_pipe);
}

class WebSocketClientHandshakes : public WebSocketTest {
 protected:
  // Connects a client to a server that responds with `text`.
  void answered(std::string_view text, const WebSocketOptions& its_options = {}) {
    on_request = [text](http::Exchange exchange) {
      http::Fields fields;
      std::string_view left = text;
      while (!left.empty()) {
        const std::string_view line = left.substr(0, left.find('\n'));
        fields.add(line.substr(0, line.find(':')), line.substr(line.find(':') + 1));
        left.remove_prefix(std::min(left.size(), line.size() + 1));
      }
      exchange.upgrade("websocket", fields).value();
    };
    join(party, its_options);
  }
};

TEST_F(WebSocketClientHandshakes, FailIfAcceptKeyIsInvalid) {
  for (const char* bad :
       {"", "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "Sec-WebSocket-Accept:"}) {
    party.told.clear();
    answered(bad);
    EXPECT_THAT(party.told, ElementsAre(StartsWith("closed 1006"))) << bad;
    EXPECT_EQ(party.error, HttpError::malformed_response);
    EXPECT_FALSE(party.socket.is_open());
  }
}

TEST_F(WebSocketClientHandshakes, FailIfServerRefuses) {
  on_request = [](http::Exchange exchange) { exchange.respond(http::Status::forbidden); };
  join(party);
  EXPECT_THAT(party.told, ElementsAre(StartsWith("closed 1006")));
  EXPECT_EQ(party.error, HttpError::not_upgraded);
}

TEST_F(WebSocketClientHandshakes, FailIfServerSelectsUnofferedProtocolOrExtension) {
  const std::pair<http::FieldId, std::string> answers[] = {
      {http::FieldId::sec_websocket_protocol, "v2"},
      {http::FieldId::sec_websocket_protocol, ""},
      {http::FieldId::sec_websocket_extensions, std::string(http::kDeflate)},
  };
  for (const auto& [id, value] : answers) {
    on_request = [&](http::Exchange exchange) {
      http::Fields fields;
      const auto key = exchange.request()[http::FieldId::sec_websocket_key];
      fields.set(http::FieldId::sec_websocket_accept, http::websocket_accept(key));
      fields.set(id, value);
      exchange.upgrade("websocket", fields).value();
    };
    party.error = {};
    join(party, {.protocols = {"v1"}});
    EXPECT_EQ(party.error, HttpError::malformed_response) << value;
  }
}

TEST_F(WebSocketClientHandshakes, FailAtDeadlineOfCall) {
  http::Exchange kept;
  on_request = [&](http::Exchange exchange) { kept = std::move(exchange); };
  party.socket =
      must(WebSocket::connect(client_, "ws://a/", party, {}, CallOptions{.deadline = 3s}));
  turns();
  EXPECT_TRUE(party.socket.is_open());
  EXPECT_FALSE(party.socket.is_writable());
  EXPECT_FALSE(party.socket.send("early"));
  pass(4s);
  EXPECT_EQ(party.error, Error::deadline);
}

TEST_F(WebSocketClientHandshakes, RejectInvalidArguments) {
  const auto error_of = [&](std::string_view url, CallOptions call = {},
                            WebSocketOptions its_options = {}) {
    auto socket = WebSocket::connect(client_, url, party, its_options, std::move(call));
    return socket ? std::error_code() : socket.error();
  };
  EXPECT_EQ(error_of("http://a/"), http::HttpError::unknown_scheme);
  EXPECT_EQ(error_of("a"), http::HttpError::invalid_url);
  EXPECT_EQ(error_of("ws://a/", {.method = http::Method::post}), std::errc::invalid_argument);
  EXPECT_EQ(error_of("ws://a/", {.body = bytes_of("a")}), std::errc::invalid_argument);
  EXPECT_EQ(error_of("ws://a/", {.upgrade = "a"}), std::errc::invalid_argument);
  EXPECT_EQ(error_of("ws://a/", {}, {.protocols = {"a b"}}), std::errc::invalid_argument);
  EXPECT_EQ(error_of("WS://a/"), std::error_code());
  turns();
  EXPECT_THAT(party.told, IsEmpty());
}

TEST_F(WebSocketClientHandshakes, MayBeCancelled) {
  {
    Party other;
    other.socket = must(WebSocket::connect(client_, "ws://a/", other));
  }
  turns();
  Party other;
  other.socket = must(WebSocket::connect(client_, "ws://a/", other));
  turns(1);
  other.socket = {};
  other.told.clear();
  turns();
  EXPECT_THAT(other.told, IsEmpty());
}

TEST_F(WebSocketClientHandshakes, AllowDestructionInOnOpen) {
  auto other = std::make_unique<Party>();
  Party* told = other.get();
  told->on_told = [&](const std::string&) {
    other.reset();
    client_ = {};
  };
  told->socket = must(WebSocket::connect(client_, "ws://a/", *told));
  turns();
  EXPECT_EQ(other, nullptr);
  EXPECT_THAT(party.told, ElementsAre("closed 1001"));
}

}  // namespace
}  // namespace spate::testing
