// A WebSocketClient that loses its connection while the first allocation fails, or the second, the
// third ... until none is left to fail: it reconnects.
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "spate/http/client.h"
#include "spate/http/server.h"
#include "spate/http/websocket_client.h"
#include "spate/http/websocket_sessions.h"
#include "spate/timer.h"
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

  // The retry is one of several timers, so for some number of them the loop needs more memory.
  void start_timers(int count) {
    for (int i = 0; i < count; ++i) {
      timers_.push_back(std::make_unique<Timer>(*loop_, [] {}));
      timers_.back()->start(Nanos{3'600'000'000'000});
    }
  }
  void connect() {
    socket_ = must(http::WebSocketClient::connect(client_, "ws://a/", *this));
    turns();
  }
  void lose_connection() {
    socket_.send("reset");
    for (int i = 0; i < 5; ++i) pass(Nanos{1'000'000'000});
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
  std::vector<std::unique_ptr<Timer>> timers_;
  std::string received_;
};

// Returns whether a call failed.
bool survives_failure(int timers, std::uint64_t nth) {
  ReconnectingScene scene;
  scene.connect();
  scene.start_timers(timers);
  FaultPlan plan;
  plan.fail_nth(SystemCall::allocate, nth, ENOMEM);
  {
    const FaultScope scope(plan);
    scene.lose_connection();
  }
  EXPECT_TRUE(scene.echoes()) << timers << " timers, call " << nth;
  return plan.failures(SystemCall::allocate) > 0;
}

TEST(WebSocketClientFaults, ReconnectsAfterFailedAllocation) {
  for (int timers = 0; timers < 8 && !HasFailure(); ++timers) {
    for (std::uint64_t nth = 1; survives_failure(timers, nth) && !HasFailure();) ++nth;
  }
}

}  // namespace
}  // namespace spate::testing
