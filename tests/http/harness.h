// Shared by the tests of the server: a server on a clock that stands still, and clients that send
// given bytes and keep the bytes that they receive.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "spate/http/server.h"
#include "spate/loop.h"
#include "spate/net/stream.h"
#include "support/scripted.h"

namespace spate::testing {

// That of the clock.
inline constexpr std::string_view kDateLine = "Date: Tue, 14 Nov 2023 22:13:20 GMT\r\n";

inline constexpr Nanos kSecond{1'000'000'000};

inline constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

// The other end of a connection to the server.
class RawClient final : public StreamHandler {
 public:
  explicit RawClient(Stream stream) : stream_(std::move(stream)) {
    stream_.set_half_open(true);
    stream_.start(*this);
  }

  bool send(std::string_view text) { return stream_.write(text); }
  Stream& stream() { return stream_; }

  std::size_t on_data(Bytes bytes) override {
    received.append(text_of(bytes));
    return bytes.size();
  }
  void on_end() override { is_ended = true; }
  void on_closed(std::error_code why) override {
    is_closed = true;
    error = why;
  }

  std::string received;
  std::error_code error;
  bool is_ended = false;   // By the server.
  bool is_closed = false;  // Both sides, or reset.

 private:
  Stream stream_;
};

class HttpServerTest : public ::testing::Test {
 protected:
  HttpServerTest() {
    serve([this](http::Exchange exchange) { on_request(std::move(exchange)); });
  }

  // Replaces the server.
  void serve(http::OnRequest answer, http::ServerOptions options = {}) {
    server_ = must(http::Server::create(loop_, std::move(answer), std::move(options)));
  }
  void serve_with(http::ServerOptions options = {}) {
    serve([this](http::Exchange exchange) { on_request(std::move(exchange)); }, std::move(options));
  }

  std::unique_ptr<RawClient> connect() {
    auto [mine, theirs] = must(Stream::memory_pair(loop_));
    server_.add(std::move(theirs));
    return std::make_unique<RawClient>(std::move(mine));
  }
  void turns(int count = 20) {
    for (int i = 0; i < count; ++i) loop_.run(Run::no_wait);
  }
  void pass(Nanos time) {
    clock_.advance(time);
    turns();
  }
  // Returns the server's response to `text` on a new connection.
  std::string talk(std::string_view text) {
    const auto client = connect();
    client->send(text);
    turns();
    return client->received;
  }

  ScriptedClock clock_;
  std::unique_ptr<Loop> owned_ = must(Loop::create({.clock = &clock_}));
  Loop& loop_ = *owned_;
  http::Server server_;
  std::function<void(http::Exchange)> on_request = [](http::Exchange exchange) {
    exchange.respond("hello\n");
  };
};

}  // namespace spate::testing
