// Shared by the tests of a server's HTTP/2.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/harness.h"
#include "http/http2_client.h"
#include "http/kept.h"
#include "spate/http/http2.h"

namespace spate::testing {

// The alphabet, again and again.
inline std::string repeated(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i % 26);
  return text;
}

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

}  // namespace spate::testing
