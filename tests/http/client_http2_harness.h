// Shared by the tests of a client's HTTP/2.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/client_harness.h"
#include "http/client_pair_harness.h"
#include "http/http2_frames.h"
#include "spate/http/http2.h"

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
inline std::string go_away(std::uint32_t last, std::uint32_t code = 0) {
  return frame(kGoAway, 0, 0, number(last) + number(code));
}
inline std::string reset_of(std::uint32_t stream, std::uint32_t code) {
  return frame(kReset, 0, stream, number(code));
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
  // Makes a connection that has answered once.
  void begin2() {
    Outcome outcome;
    const http::Call call = fetch(outcome);
    turns();
    greet(peer());
    peer().answer(answer_of(1));
    turns();
    ASSERT_EQ(outcome.text(), "ok");
  }
  Heard heard(std::size_t index = 0) { return Heard(peer(index).received); }
};

// A client of HTTP/2 with prior knowledge whose connections end at a Server.
class Http2PairTest : public ClientPairTest {
 protected:
  Http2PairTest() : ClientPairTest(HttpProtocol::http2) {
    on_request = [](http::Exchange exchange) { exchange.respond("hello\n"); };
  }
};

}  // namespace spate::testing
