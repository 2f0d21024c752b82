// A WebSocketClient for which the first allocation fails, or the second, the third ... until it
// reconnects without a failure.
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "base/fault.h"
#include "spate/http/client.h"
#include "spate/http/server.h"
#include "spate/http/websocket_client.h"
#include "spate/http/websocket_sessions.h"
#include "tests/support/scripted.h"

namespace spate::testing {
namespace {

// Echoes a message, or resets the connection.
struct ResettingSession : http::WebSocketSession {
  void on_message(http::MessageKind kind, Bytes bytes) override {
    if (text_of(bytes) == "reset") return socket().abort();
    socket().send(kind, bytes);
  }
};

class ReconnectingScene final : public http::WebSocketClientHandler {
 public:
  ReconnectingScene() {
    server_ = must(http::Server::create(
        *loop_, [this](http::Exchange exchange) { sessions_.accept(std::move(exchange)); }));
    http::ClientOptions options;
    options.open = [this](std::string_view, std::uint16_t) -> Result<Stream> {
      auto pair = Stream::memory_pair(*loop_);
      if (!pair) return std::unexpected(pair.error());
      server_.add(std::move(pair->second));
      return std::move(pair->first);
    };
    client_ = must(http::Client::create(*loop_, std::move(options)));
  }

  // Loses a connection, and reconnects. False if the first attempt cannot begin.
  bool reconnects() {
    auto made = http::WebSocketClient::connect(client_, "ws://a/", *this);
    if (!made) return false;
    socket_ = std::move(*made);
    turns();
    socket_.send("reset");
    for (int i = 0; i < 5; ++i) pass(Nanos{1'000'000'000});
    return true;
  }
  bool echoes() {
    for (int i = 0; i < 40 && received_.empty(); ++i) {
      if (socket_.is_open()) socket_.send("echo");
      pass(Nanos{5'000'000'000});
    }
    return received_.starts_with("echo");
  }

 private:
  void on_message(http::MessageKind, Bytes bytes) override { received_ += text_of(bytes); }
  void on_closed(std::error_code error) override { ADD_FAILURE() << error.message(); }
  void turns() {
    for (int i = 0; i < 40; ++i) loop_->run(Run::no_wait);
  }
  void pass(Nanos time) {
    turns();
    clock_.advance(time);
    turns();
  }

  ScriptedClock clock_;
  std::unique_ptr<Loop> loop_ = must(Loop::create({.clock = &clock_}));
  http::WebSocketSessions<ResettingSession> sessions_{*loop_};
  http::Server server_;
  http::Client client_;
  http::WebSocketClient socket_;
  std::string received_;
};

TEST(WebSocketClientFaults, ReconnectsAfterEachFailedAllocation) {
  bool has_failed = true;
  for (std::uint64_t nth = 1; has_failed && !HasFailure(); ++nth) {
    SCOPED_TRACE(nth);
    ReconnectingScene scene;
    FaultPlan plan;
    plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
    bool has_begun = false;
    {
      const FaultScope scope(plan);
      has_begun = scene.reconnects();
    }
    has_failed = plan.failures(SystemCall::allocate) > 0;
    if (has_begun) EXPECT_TRUE(scene.echoes());
  }
}

}  // namespace
}  // namespace spate::testing
