// WebSocketClient: reconnects, subscribes again, and sends the messages that have waited.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/codec/websocket_frame.h"
#include "spate/http/error.h"
#include "spate/http/server.h"
#include "spate/http/websocket_client.h"
#include "spate/http/websocket_sessions.h"
#include "streams/harness.h"
#include "support/own_loopback.h"

namespace spate::testing {
namespace {

using namespace std::chrono_literals;
using http::CloseCode;
using http::HttpError;
using http::MessageKind;
using http::WebSocketClient;
using http::WebSocketClientOptions;

struct FeedLog final : http::WebSocketClientHandler {
  void on_open() override {
    if (!greeting.empty()) EXPECT_TRUE(socket->send(greeting));
    note("open");
  }
  void on_message(MessageKind, Bytes bytes) override { note(std::string(text_of(bytes))); }
  void on_drained() override {
    EXPECT_FALSE(socket->socket().is_full());
    EXPECT_EQ(socket->waiting(), 0u);
    ++drained;
  }
  void on_lost(CloseCode, std::string_view, std::error_code) override { note("lost"); }
  void on_closed(std::error_code error) override {
    closed = error;
    note("closed");
  }
  void note(std::string line) {
    lines.push_back(std::move(line));
    if (when_noted) when_noted(lines.back());
  }

  std::optional<WebSocketClient> socket;
  std::string greeting;
  std::vector<std::string> lines;
  int drained = 0;
  std::error_code closed;
  std::function<void(const std::string& line)> when_noted;
};

// Echoes; "leave" closes, "reset" resets.
struct FeedServer : http::WebSocketSession {
  void on_message(MessageKind kind, Bytes bytes) override {
    if (text_of(bytes) == "leave") return socket().close(CloseCode::going_away);
    if (text_of(bytes) == "reset") return socket().abort();
    socket().send(kind, bytes);
  }
};

class ReconnectingWebSockets : public ::testing::Test {
 protected:
  ReconnectingWebSockets() { listen(own_address(0)); }
  void listen(const Address& at) {
    server_ = must(http::serve(
        *loop_, at, [this](http::Exchange exchange) { sessions_.accept(std::move(exchange)); }));
    address_ = server_->address();
  }
  void connect(WebSocketClientOptions options = {}) {
    options.first_delay = 1ms;
    options.max_delay = 10ms;
    log_.socket = must(WebSocketClient::connect(client_, "ws://" + address_.to_string() + "/", log_,
                                                std::move(options)));
  }
  void run_until_noted(std::string_view line, std::ptrdiff_t times = 1) {
    run_until(*loop_, [&] { return std::ranges::count(log_.lines, line) >= times; });
  }
  using Lines = std::vector<std::string>;

  std::unique_ptr<Loop> loop_ = must(Loop::create());
  http::WebSocketSessions<FeedServer> sessions_{*loop_};
  std::optional<http::Server> server_;
  Address address_;
  http::Client client_ = must(http::Client::create(*loop_));
  FeedLog log_;
};

TEST_F(ReconnectingWebSockets, SubscribesAgainAfterEachEnd) {
  log_.greeting = "subscribe";
  connect();
  run_until_noted("subscribe");
  EXPECT_TRUE(log_.socket->send("leave"));
  run_until_noted("subscribe", 2);
  EXPECT_TRUE(log_.socket->is_open());
  EXPECT_EQ(log_.lines, (Lines{"open", "subscribe", "lost", "open", "subscribe"}));
}

TEST_F(ReconnectingWebSockets, WaitingMessagesFollowThoseOfOnOpen) {
  log_.greeting = "first";
  connect();
  EXPECT_TRUE(log_.socket->send("second"));
  EXPECT_TRUE(log_.socket->send("third"));
  EXPECT_EQ(log_.socket->waiting(), 11u + 2 * http::kMostFrameHead);
  run_until_noted("third");
  EXPECT_EQ(log_.lines, (Lines{"open", "first", "second", "third"}));
  EXPECT_EQ(log_.socket->waiting(), 0u);
}

TEST_F(ReconnectingWebSockets, QueueOfWaitingMessagesIsLimited) {
  connect({.max_waiting = 5 + http::kMostFrameHead});
  EXPECT_FALSE(log_.socket->send("123456"));
  EXPECT_TRUE(log_.socket->send("12345"));
  EXPECT_FALSE(log_.socket->send("1"));
  run_until_noted("12345");
  EXPECT_TRUE(log_.socket->send("much longer"));
  run_until_noted("much longer");
  connect({.max_waiting = 0});
  EXPECT_FALSE(log_.socket->send(""));
}

TEST_F(ReconnectingWebSockets, QueueOfEmptyMessagesIsLimited) {
  connect({.max_waiting = 3 * http::kMostFrameHead});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(log_.socket->send(""));
  EXPECT_FALSE(log_.socket->send(""));
  run_until_noted("", 3);
  EXPECT_EQ(log_.lines, (Lines{"open", "", "", ""}));
}

// They exceed the queue of the connection, and the buffers of the kernel.
TEST_F(ReconnectingWebSockets, WaitingMessagesDoNotOverfillQueueOfConnection) {
  constexpr int kMessages = 24;
  const std::string message(1'000'000, 'x');
  for (const WhenFull when_full : {WhenFull::close, WhenFull::drop}) {
    log_ = FeedLog();
    connect({.socket = {.limits = {.max = 3'000'000, .when_full = when_full}},
             .max_waiting = kMessages * (message.size() + http::kMostFrameHead)});
    for (int i = 0; i < kMessages; ++i) EXPECT_TRUE(log_.socket->send(message));
    EXPECT_EQ(log_.socket->waiting(), kMessages * (message.size() + http::kMostFrameHead));
    run_until_noted(message, kMessages);
    EXPECT_EQ(log_.lines.front(), "open");
    EXPECT_EQ(log_.lines.size(), 1u + kMessages);
    EXPECT_GT(log_.drained, 0);
  }
}

// The queue has room for each of the two messages, but not for both, and is not full.
TEST_F(ReconnectingWebSockets, LongWaitingMessageFollowsWhenQueueIsEmpty) {
  log_.greeting = std::string(1'500, 'g');
  const std::string message(9'900, 'x');
  for (const WhenFull when_full : {WhenFull::close, WhenFull::drop}) {
    log_.lines.clear();
    connect({.socket = {
                 .limits = {.low = 1'000, .high = 2'000, .max = 10'000, .when_full = when_full}}});
    EXPECT_TRUE(log_.socket->send(message));
    run_until_noted(message);
    EXPECT_EQ(log_.lines, (Lines{"open", log_.greeting, message}));
  }
}

TEST_F(ReconnectingWebSockets, MessageThatFitsIntoNoQueueDoesNotWait) {
  connect({.socket = {.limits = {.low = 1'000, .high = 2'000, .max = 10'000}}});
  EXPECT_FALSE(log_.socket->send(std::string(10'001, 'x')));
  EXPECT_EQ(log_.socket->waiting(), 0u);
}

TEST_F(ReconnectingWebSockets, ReconnectsUntilServerIsBack) {
  connect();
  run_until_noted("open");
  server_.reset();
  EXPECT_TRUE(log_.socket->send("reset"));
  run_until_noted("lost", 3);
  EXPECT_GT(log_.socket->failures(), 1u);
  EXPECT_TRUE(log_.socket->send("waits"));
  listen(address_);
  run_until_noted("waits");
}

TEST_F(ReconnectingWebSockets, StopsAfterGivenNumberOfFailures) {
  server_.reset();
  connect({.max_failures = 3});
  run_until_noted("closed");
  EXPECT_EQ(log_.lines, (Lines{"lost", "lost", "closed"}));
  EXPECT_EQ(log_.closed, std::errc::connection_refused);
  EXPECT_FALSE(log_.socket->send("a"));
}

TEST_F(ReconnectingWebSockets, RefusedUpgradeIsRetried) {
  int requests = 0;
  server_ = must(http::serve(*loop_, Address::loopback_ipv4(0), [&](http::Exchange exchange) {
    if (++requests < 3) return void(exchange.respond(http::Status::service_unavailable));
    sessions_.accept(std::move(exchange));
  }));
  address_ = server_->address();
  connect();
  run_until_noted("open");
  EXPECT_EQ(log_.lines, (Lines{"lost", "lost", "open"}));
}

TEST_F(ReconnectingWebSockets, InvalidUrlIsReturned) {
  EXPECT_EQ(WebSocketClient::connect(client_, "nowhere", log_).error(), HttpError::invalid_url);
}

TEST_F(ReconnectingWebSockets, CloseEndsForGood) {
  connect();
  run_until_noted("open");
  log_.socket->close();
  EXPECT_FALSE(log_.socket->send("a"));
  run_until_noted("closed");
  EXPECT_EQ(log_.closed, std::error_code());
  EXPECT_EQ(log_.lines, (Lines{"open", "closed"}));
}

TEST_F(ReconnectingWebSockets, CloseBetweenAttemptsEndsForGood) {
  server_.reset();
  connect();
  run_until_noted("lost");
  log_.socket->close();
  const std::size_t count = log_.lines.size();
  EXPECT_NE(log_.lines.back(), "closed");
  run_until_noted("closed");
  EXPECT_EQ(log_.lines.size(), count + 1);
}

TEST_F(ReconnectingWebSockets, ReconnectsWhenAsked) {
  connect();
  run_until_noted("open");
  log_.socket->reconnect();
  run_until_noted("open", 2);
  EXPECT_EQ(log_.lines, (Lines{"open", "open"}));
}

TEST_F(ReconnectingWebSockets, FailuresAreResetWhenSteadyConnectionReconnects) {
  const Address address = address_;
  server_.reset();
  connect({.steady_after = 0ns});
  run_until_noted("lost", 2);
  listen(address);
  run_until_noted("open");
  EXPECT_GE(log_.socket->failures(), 2u);
  log_.socket->reconnect();
  EXPECT_EQ(log_.socket->failures(), 0u);
}

TEST_F(ReconnectingWebSockets, MemoryIsFlatOverManyConnections) {
  connect({.steady_after = 0ns});
  run_until_noted("open");
  const auto reconnect = [this](int times) {
    for (; times > 0; --times) {
      log_.lines.clear();
      EXPECT_TRUE(log_.socket->send("reset"));
      EXPECT_TRUE(log_.socket->send(std::string(1'000, 'x')));
      run_until_noted("open");
    }
    return ::mallinfo2().uordblks;
  };
  const std::size_t before = reconnect(30);
  EXPECT_LT(reconnect(200), before + 100'000);  // As many connections take 200 times a kilobyte.
}

TEST_F(ReconnectingWebSockets, MayBeDestroyedInEachCallback) {
  for (const std::string where : {"open", "hello", "lost", "closed"}) {
    log_.lines.clear();
    log_.when_noted = [&](const std::string& line) {
      if (line == where) return log_.socket.reset();
      if (line == "open") EXPECT_TRUE(log_.socket->send("hello"));
      if (line == "hello") EXPECT_TRUE(log_.socket->send("leave"));
      if (line == "lost") log_.socket->close();
    };
    connect();
    run_until_noted(where);
    run_turns(*loop_, 5);
    EXPECT_EQ(log_.lines.back(), where);
  }
}

}  // namespace
}  // namespace spate::testing
