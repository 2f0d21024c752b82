// Shared by the tests of the client's upgrades, to our server and to scripted ones.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "http/client_pair_harness.h"
#include "streams/harness.h"

namespace spate::testing {

// The end of a tunnel, once it is open.
struct TunnelEnd {
  explicit TunnelEnd(Stream given) : stream(std::move(given)) {
    stream.set_half_open(true);
    stream.start(recorder);
  }
  Recorder recorder;
  Stream stream;
};

// A client that asks for an upgrade, and a server that agrees to it.
class TunnelPairTest : public ClientPairTest {
 protected:
  explicit TunnelPairTest(HttpProtocol protocol) : ClientPairTest(protocol) {
    on_request = [this](http::Exchange exchange) {
      if (exchange.request()[http::FieldId::upgrade].empty()) return say_hello(std::move(exchange));
      Result<Stream> stream = exchange.upgrade("talk");
      if (stream) there_ = std::make_unique<TunnelEnd>(std::move(*stream));
    };
    here_.on_told = [this](const std::string& what) {
      if (what.starts_with("upgraded"))
        mine_ = std::make_unique<TunnelEnd>(std::move(here_.stream));
    };
  }

  static void say_hello(http::Exchange exchange) { exchange.respond("hello\n"); }
  void ask(http::CallOptions options = {.upgrade = "talk"}) {
    call_ = client_.send("http://a.example/talk?now", here_, std::move(options));
  }
  void open() {
    ask();
    turns();
    ASSERT_NE(mine_, nullptr) << here_.error.message();
    ASSERT_NE(there_, nullptr);
  }
  // The client can make other calls, with HTTP/2 on the same connection.
  void expect_well() {
    Outcome outcome;
    const http::Call call = fetch(outcome);
    turns();
    EXPECT_EQ(outcome.text(), "hello\n");
    if (is_http2()) EXPECT_EQ(opened.size(), 1u);
  }

  Hearer here_;
  http::Call call_;
  std::unique_ptr<TunnelEnd> mine_;
  std::unique_ptr<TunnelEnd> there_;
};

}  // namespace spate::testing
