// HttpField: a client whose connections end at a server of the same loop, on a clock that stands
// still.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "spate/http/client.h"
#include "spate/http/server.h"
#include "spate/net/stream.h"
#include "tests/support/scripted.h"

namespace spate::testing {

inline constexpr std::string_view kUrl = "http://a.example/";

// A raw peer: sends bytes as given, and keeps the bytes that it receives.
class HttpPeer final : public StreamHandler {
 public:
  explicit HttpPeer(Stream stream) : stream_(std::move(stream)) { stream_.start(*this); }
  void say(std::string_view text) { stream_.write(text); }
  void go() { stream_.abort(); }
  const std::string& heard() const { return heard_; }
  spate::Stream& stream() { return stream_; }

  std::size_t on_data(Bytes bytes) override {
    heard_.append(text_of(bytes));
    return bytes.size();
  }
  void on_closed(std::error_code) override {}

 private:
  Stream stream_;
  std::string heard_;
};

class HttpField : public ::testing::Test {
 protected:
  HttpField() {
    http::ClientOptions options;
    options.open = [this](std::string_view, std::uint16_t) -> Result<Stream> {
      if (open_error_) return std::unexpected(open_error_);
      return connect();
    };
    client_ = must(http::Client::create(loop(), std::move(options)));
    server_ = must(http::Server::create(
        loop(), [this](http::Exchange exchange) { on_request_(std::move(exchange)); }));
  }

  Loop& loop() { return *scripted_.loop; }
  // The client's end.
  Result<Stream> connect() {
    auto pair = Stream::memory_pair(loop());
    if (!pair) return std::unexpected(pair.error());
    server_.add(std::move(pair->second));
    return std::move(pair->first);
  }
  void turns(int count = 20) {
    for (int i = 0; i < count && scripted_.loop != nullptr; ++i) {
      EXPECT_FALSE(loop().run(Run::no_wait));
    }
  }
  // Returns a peer that has sent `text` to the server.
  std::unique_ptr<HttpPeer> peer(std::string_view text) {
    auto made = std::make_unique<HttpPeer>(must(connect()));
    made->say(text);
    turns();
    return made;
  }

  ScriptedLoop scripted_;
  http::Server server_;
  http::Client client_;
  std::error_code open_error_;
  std::function<void(http::Exchange)> on_request_;
};

}  // namespace spate::testing
