// Shared by the tests of a server's HTTP/2.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/harness.h"
#include "http/http2_client.h"
#include "spate/http/http2.h"

namespace spate::testing {

class Http2ServerTest : public HttpServerTest {
 protected:
  using Windows = Http2Client::Windows;

  Http2ServerTest() { serve2({}); }

  void serve2(http::ServerOptions options, const http::Http2Options& http2 = {}) {
    options.http2 = must(http::Http2::create(http2));
    serve_with(std::move(options));
  }
  std::unique_ptr<Http2Client> connect2(Windows windows = Windows::as_they_come,
                                        std::vector<nghttp2_settings_entry> settings = {}) {
    auto [mine, theirs] = must(Stream::memory_pair(loop_));
    server_.add(std::move(theirs));
    auto client = std::make_unique<Http2Client>(std::move(mine), windows, std::move(settings));
    turns();
    return client;
  }
  // Returns the response to a request with these fields, on a new connection.
  Http2Client::Answer ask(Http2Client::Fields more = {}, std::string path = "/",
                          std::string method = "GET") {
    const auto client = connect2();
    const auto id = client->get(std::move(path), std::move(more), std::move(method));
    turns();
    return client->answers[id];
  }
};

// Keeps its exchange, and records its callbacks.
class Kept final : public http::ExchangeHandler {
 public:
  explicit Kept(http::Exchange given) : exchange(std::move(given)) { exchange.start(*this); }

  void on_body(Bytes bytes) override { body += text_of(bytes); }
  void on_body_end(const http::FieldsView& fields) override {
    is_ended = true;
    if (!fields.empty())
      trailer = std::string(fields.at(0).name) + "=" + std::string(fields.at(0).value);
  }
  void on_client_end() override { has_client_ended = true; }
  void on_drained() override {
    ++drained;
    if (when_drained) when_drained();
  }
  void on_closed(std::error_code why) override {
    is_closed = true;
    error = why;
  }

  http::Exchange exchange;
  std::function<void()> when_drained;
  std::string body;
  std::string trailer;
  std::error_code error;
  int drained = 0;
  bool is_ended = false;
  bool is_closed = false;
  bool has_client_ended = false;
};

}  // namespace spate::testing
