// Shared by the tests of the client: a client on a clock that stands still, whose connections end
// at servers that a test controls; and one on real sockets.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spate/http/client.h"
#include "spate/loop.h"
#include "spate/net/stream.h"
#include "support/scripted.h"

namespace spate::testing {

inline constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// The server's end of a connection.
class Peer final : public StreamHandler {
 public:
  explicit Peer(Stream stream) : stream_(std::move(stream)) {
    stream_.set_half_open(true);
    stream_.start(*this);
  }

  bool answer(std::string_view text) { return stream_.write(text); }
  Stream& stream() { return stream_; }
  // Returns the bytes received since the last call.
  std::string heard() { return std::exchange(received, {}); }

  std::size_t on_data(Bytes bytes) override {
    received.append(text_of(bytes));
    if (on_request) on_request(*this);
    return bytes.size();
  }
  void on_end() override { is_ended = true; }
  void on_closed(std::error_code why) override {
    is_closed = true;
    error = why;
  }

  std::string received;
  std::function<void(Peer&)> on_request;
  std::error_code error;
  bool is_ended = false;   // By the client.
  bool is_closed = false;  // Both sides, or reset.

 private:
  Stream stream_;
};

// Records its callbacks: "200", "body ab", "end", "drained", "closed", "closed deadline".
class Hearer final : public http::CallHandler {
 public:
  void on_response(const http::Response& response) override {
    tell(std::to_string(http::code_of(response.status())));
  }
  void on_body(Bytes bytes) override {
    body.append(text_of(bytes));
    tell("body");
  }
  void on_body_end(const http::FieldsView& fields) override {
    trailers = fields["X-Sum"];
    tell("end");
  }
  void on_drained() override { tell("drained"); }
  void on_upload() override { tell("upload"); }
  void on_informational(http::Status status, const http::FieldsView& fields) override {
    link = fields["Link"];
    tell(std::to_string(http::code_of(status)));
  }
  void on_upgraded(const http::Response& response, Stream given) override {
    stream = std::move(given);
    tell("upgraded " + std::string(response["Upgrade"]));
  }
  void on_closed(std::error_code why) override {
    error = why;
    tell("closed");
  }

  std::vector<std::string> told;
  std::string body;
  std::string trailers;
  std::string link;
  Stream stream;
  std::error_code error;
  std::function<void(const std::string&)> on_told;  // May destroy this.

 private:
  void tell(const std::string& what) {
    told.push_back(what);
    const std::string copy = what;
    if (on_told) on_told(copy);
  }
};

// The result of a fetch().
struct Outcome {
  std::optional<Result<http::Response>> result;
  int times = 0;

  http::OnResponse note() {
    return [this](Result<http::Response> response) {
      ++times;
      result.emplace(std::move(response));
    };
  }
  bool is_there() const { return result.has_value(); }
  bool is_good() const { return is_there() && result->has_value(); }
  int status() const { return is_good() ? http::code_of((*result)->status()) : 0; }
  std::string text() const { return is_good() ? std::string((*result)->text()) : std::string(); }
  std::error_code error() const {
    return is_there() && !*result ? result->error() : std::error_code();
  }
};

inline http::Fields fields_of(
    std::initializer_list<std::pair<std::string_view, std::string_view>> pairs) {
  http::Fields fields;
  for (const auto& [name, value] : pairs) EXPECT_TRUE(fields.add(name, value));
  return fields;
}

class ClientTest : public ::testing::Test {
 protected:
  static constexpr std::string_view kUrl = "http://a.example/";

  // Replaces the client.
  void make_client(http::ClientOptions options = {}) {
    options.open = [this](std::string_view host, std::uint16_t port) -> Result<Stream> {
      opened.push_back(std::string(host) + ":" + std::to_string(port));
      if (open_error) return std::unexpected(open_error);
      auto [mine, theirs] = must(Stream::memory_pair(loop_));
      accept(std::move(theirs));
      return std::move(mine);
    };
    client_ = must(http::Client::create(loop_, std::move(options)));
  }
  // Receives the other end of each connection of the client.
  virtual void accept(Stream stream) = 0;

  void turns(int count = 60) {
    for (int i = 0; i < count; ++i) loop_.run(Run::no_wait);
  }
  void pass(Nanos time) {
    clock_.advance(time);
    turns();
  }
  http::Call fetch(Outcome& outcome, http::CallOptions options = {}, std::string_view url = kUrl) {
    return client_.fetch(url, outcome.note(), std::move(options));
  }
  // Returns the error with which it fails, from the loop.
  std::error_code refused(std::string_view url, http::CallOptions options = {}) {
    Outcome outcome;
    const http::Call call = fetch(outcome, std::move(options), url);
    EXPECT_FALSE(outcome.is_there());
    turns();
    EXPECT_EQ(outcome.times, 1);
    return outcome.error();
  }

  ScriptedClock clock_;
  std::unique_ptr<Loop> owned_ = must(Loop::create({.clock = &clock_}));
  Loop& loop_ = *owned_;
  http::CookieJar jar_;
  std::vector<std::string> opened;
  std::error_code open_error;
  http::Client client_;
};

// A client whose connections end at Peers.
class HttpClientTest : public ClientTest {
 protected:
  HttpClientTest() { make_client(); }

  void accept(Stream stream) override {
    peers.push_back(std::make_unique<Peer>(std::move(stream)));
    peers.back()->on_request = on_request;
  }
  // Returns the header section and body that are sent for it.
  std::string sent(std::string_view url, http::CallOptions options = {}) {
    Outcome outcome;
    const http::Call call = client_.fetch(url, outcome.note(), std::move(options));
    turns();
    EXPECT_FALSE(outcome.is_there()) << outcome.error().message();
    return peers.empty() ? "" : peers.back()->heard();
  }
  Peer& peer(std::size_t index = 0) { return *peers.at(index); }
  // Sends a GET, and `answer` as its response.
  void ask_and_answer(Outcome& outcome, std::string_view answer, http::CallOptions options = {}) {
    const std::size_t index = peers.size();
    const http::Call call = fetch(outcome, std::move(options));
    turns();
    peers.at(index)->answer(answer);
    turns();
  }
  // Makes a call that leaves a connection in the pool.
  void warm_up() {
    Outcome outcome;
    ask_and_answer(outcome, kOk);
    ASSERT_EQ(outcome.status(), 200);
    ASSERT_EQ(client_.metrics().idle, 1u);
    peers.back()->heard();
  }

  std::vector<std::unique_ptr<Peer>> peers;
  std::function<void(Peer&)> on_request;  // Called for the peer of each new connection.
};

}  // namespace spate::testing
