// Shared by the tests of a client's HTTP/2.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/client_harness.h"
#include "http/http2_frames.h"
#include "spate/http/http2.h"
#include "spate/http/server.h"

namespace spate::testing {

// The header section of a response: ":status: 200".
inline constexpr std::string_view kHead200 = "\x88";

inline std::string field(std::string_view name, std::string_view value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + std::string(name) +
         static_cast<char>(value.size()) + std::string(value);
}
inline std::string head_of(std::uint32_t stream, std::string_view head = kHead200) {
  return frame(kHeaders, kEndHeaders, stream, head);
}
inline std::string answer_of(std::uint32_t stream, std::string_view body = "ok") {
  return head_of(stream) + frame(kData, kEndStream, stream, body);
}
inline std::string setting(char id, std::uint32_t value) {
  return frame(kSettings, 0, 0, std::string{0, id} + number(value));
}

// A client of HTTP/2 with prior knowledge whose connections end at Peers.
class Http2PeerTest : public HttpClientTest {
 protected:
  Http2PeerTest() { make_client2(); }

  void make_client2(http::ClientOptions options = {}, const http::Http2Options& http2 = {}) {
    options.http2 = must(http::Http2::create(http2));
    options.http2_without_tls = true;
    make_client(std::move(options));
    on_request = {};
  }
  // Sends the server's part of the connection preface.
  void greet(Peer& peer, std::string_view settings = frame(kSettings, 0, 0)) {
    peer.answer(settings);
    peer.answer(frame(kSettings, 1, 0));
    turns();
  }
  Heard heard(std::size_t index = 0) { return Heard(peer(index).received); }
};

// As above, but they end at a Server.
class Http2PairTest : public ::testing::Test {
 protected:
  Http2PairTest() { begin({}, {}); }

  void begin(http::ClientOptions options, const http::Http2Options& of_server,
             const http::Http2Options& of_client = {}) {
    http::ServerOptions serving;
    serving.http2 = must(http::Http2::create(of_server));
    server_ = must(http::Server::create(
        loop_, [this](http::Exchange exchange) { on_request(std::move(exchange)); },
        std::move(serving)));
    options.http2 = must(http::Http2::create(of_client));
    options.http2_without_tls = true;
    options.open = [this](std::string_view, std::uint16_t) -> Result<Stream> {
      ++opened;
      auto [mine, theirs] = must(Stream::memory_pair(loop_));
      server_.add(std::move(theirs));
      return std::move(mine);
    };
    client_ = must(http::Client::create(loop_, std::move(options)));
  }
  void turns(int count = 60) {
    for (int i = 0; i < count; ++i) loop_.run(Run::no_wait);
  }
  http::Call fetch(Outcome& outcome, http::CallOptions options = {},
                   std::string_view url = "http://a.example/") {
    return client_.fetch(url, outcome.note(), std::move(options));
  }

  ScriptedClock clock_;
  std::unique_ptr<Loop> owned_ = must(Loop::create({.clock = &clock_}));
  Loop& loop_ = *owned_;
  http::Server server_;
  std::function<void(http::Exchange)> on_request = [](http::Exchange exchange) {
    exchange.respond("hello\n");
  };
  int opened = 0;
  http::Client client_;
};

}  // namespace spate::testing
