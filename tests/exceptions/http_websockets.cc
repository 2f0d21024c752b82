// WebSocketHandlers, WebSocketSessions, and handlers that have upgraded.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "exceptions/http_cases.h"
#include "spate/http/websocket.h"
#include "spate/http/websocket_sessions.h"

namespace spate::testing {

namespace {

using http::CloseCode;
using http::Exchange;
using http::MessageKind;
using http::WebSocket;
using http::WebSocketSession;
using http::WebSocketSessions;

// The client.
class Visitor final : public http::WebSocketHandler {
 public:
  explicit Visitor(std::string text) : text_(std::move(text)) {}
  void on_open() override { socket.send(text_); }
  void on_message(MessageKind, Bytes bytes) override {
    if (spate::text_of(bytes) == "leave") socket.close();
  }
  void on_closed(CloseCode code, std::string_view, std::error_code error) override {
    seen = "closed " + std::to_string(static_cast<int>(code));
    if (error == http::HttpError::not_upgraded) seen = "refused";
  }

  WebSocket socket;
  std::string seen;

 private:
  const std::string text_;
};

// Throws in one of its functions.
enum class In : std::uint8_t {
  made,
  open,
  message,
  destroyed,
  part,
  pong,
  drained,
  closed,
};

class Thrower : public WebSocketSession {
 public:
  explicit Thrower(In in) : in_(in) { reach(In::made); }
  void on_open() override {
    if (in_ == In::pong) socket().ping();
    if (in_ == In::closed) socket().send("leave");
    while (in_ == In::drained && !socket().is_full()) socket().send(std::string(100'000, 'x'));
    reach(In::open);
  }
  void on_message(MessageKind, Bytes) override {
    if (in_ == In::destroyed) {
      abort();
      fail();
    }
    reach(In::message);
  }
  void on_part(MessageKind, Bytes, bool) override { reach(In::part); }
  void on_pong(Bytes) override { reach(In::pong); }
  void on_drained() override { reach(In::drained); }
  void on_closed(CloseCode, std::string_view, std::error_code error) override {
    const bool is_right = in_ == In::closed || error == http::HttpError::exception;
    if (!is_right) std::printf("on_closed() got %s\n", error.message().c_str());
    reach(In::closed);
  }

 private:
  void reach(In in) const {
    if (in == in_) fail();
  }
  const In in_;
};

std::string visit(Site& site, In in, http::WebSocketOptions options = {}) {
  const auto sessions =
      std::make_shared<WebSocketSessions<Thrower>>(site.loop(), std::move(options));
  site.router.get("/case", [sessions, in](Exchange exchange) {
    sessions->accept(std::move(exchange), in);
  });
  site.serve();
  std::string seen = talk(site, {});
  site.turns();
  return sessions->empty() ? seen : seen + ", and the session is left";
}

std::string in_constructor(Site& site) { return visit(site, In::made); }
std::string in_on_open(Site& site) { return visit(site, In::open); }
std::string in_on_message(Site& site) { return visit(site, In::message); }
std::string after_abort(Site& site) { return visit(site, In::destroyed); }
std::string in_on_pong(Site& site) { return visit(site, In::pong); }
std::string in_on_drained(Site& site) { return visit(site, In::drained); }
std::string in_on_closed(Site& site) { return visit(site, In::closed); }
std::string in_on_part(Site& site) {
  return visit(site, In::part, {.view = http::MessageView::parts});
}

// Destroys its WebSocket, and throws.
class Destroyer final : public http::WebSocketHandler {
 public:
  void on_message(MessageKind, Bytes) override {
    socket = WebSocket();
    fail();
  }
  void on_closed(CloseCode, std::string_view, std::error_code) override {}
  WebSocket socket;
};

std::string after_destruction(Site& site) {
  const auto handler = std::make_shared<Destroyer>();
  site.owned.push_back(handler);
  site.router.get("/case", [handler](Exchange exchange) {
    auto socket = WebSocket::accept(std::move(exchange), *handler);
    if (socket) handler->socket = std::move(*socket);
  });
  site.serve();
  return talk(site, {});
}

// The handler of the request throws when the WebSocket, which it owns, was accepted.
std::string after_accept(Site& site) {
  const auto handler = std::make_shared<Destroyer>();
  site.owned.push_back(handler);
  site.router.get("/case", [handler](Exchange exchange) {
    const auto socket = WebSocket::accept(std::move(exchange), *handler);
    fail();
  });
  site.serve();
  return talk(site, {});
}

// The client of an upgrade to a protocol of the program's.
class Upgrader final : public http::CallHandler, StreamHandler {
 public:
  void on_upgraded(const http::Response&, Stream stream) override {
    stream_ = std::move(stream);
    stream_.start(*this);
  }
  std::size_t on_data(Bytes bytes) override { return bytes.size(); }
  void on_closed(std::error_code) override { is_closed = true; }

  bool is_closed = false;
  http::Call call;

 private:
  Stream stream_;
};

std::string after_upgrade(Site& site) {
  site.router.get("/case", [](Exchange exchange) {
    const Result<Stream> stream = exchange.upgrade("test");
    if (stream) fail();
  });
  site.serve();
  Upgrader upgrader;
  upgrader.call = site.client.send("http://a/case", upgrader, {.upgrade = "test"});
  while (!upgrader.is_closed) site.loop().run(Run::once);
  return "closed";
}

constexpr Case kCases[] = {
    {.name = "a session's constructor", .run = in_constructor, .seen = "refused"},
    {.name = "WebSocketSession::on_open()", .run = in_on_open, .seen = "closed 1011", .logged = 0},
    {.name = "on_message()", .run = in_on_message, .seen = "closed 1011", .logged = 0},
    {.name = "on_message(), after abort()", .run = after_abort, .seen = "closed 1006", .logged = 0},
    {.name = "on_message(), the WebSocket destroyed",
     .run = after_destruction,
     .seen = "closed 1001",
     .logged = 0},
    {.name = "on_part()", .run = in_on_part, .seen = "closed 1011", .logged = 0},
    {.name = "on_pong()", .run = in_on_pong, .seen = "closed 1011", .logged = 0},
    {.name = "on_drained() of a WebSocket",
     .run = in_on_drained,
     .seen = "closed 1011",
     .logged = 0},
    {.name = "on_closed() of a WebSocket", .run = in_on_closed, .seen = "closed 1000", .logged = 0},
    {.name = "a handler, after WebSocket::accept()",
     .run = after_accept,
     .seen = "closed 1001",
     .logged = 1},
    {.name = "a handler, after upgrade()", .run = after_upgrade, .seen = "closed", .logged = 1},
};

}  // namespace

std::string talk(Site& site, std::string_view text) {
  Visitor visitor(std::string(text.empty() ? "hello" : text));
  visitor.socket = must(WebSocket::connect(site.client, "ws://a/case", visitor));
  while (visitor.seen.empty()) site.loop().run(Run::once);
  site.turns();
  return visitor.seen;
}

std::span<const Case> websocket_cases() { return kCases; }

}  // namespace spate::testing
