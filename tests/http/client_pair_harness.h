// Shared by the tests of the client with a server: promises that do not depend on the protocol are
// tested over both.
#pragma once

#include <cctype>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/client_harness.h"
#include "http/kept.h"
#include "spate/http/http2.h"
#include "spate/http/server.h"

namespace spate::testing {

enum class HttpProtocol : std::uint8_t { http1, http2 };
inline void PrintTo(HttpProtocol protocol, std::ostream* out) {
  *out << (protocol == HttpProtocol::http1 ? "HTTP/1.1" : "HTTP/2");
}

// Returns the header section of a request as both protocols present it, in lower case: the method
// and the target, and a line for each field that does not belong to the connection.
inline std::string head_text(const http::Request& request) {
  std::string text;
  for (const http::Field& field : request.fields()) {
    if (field.id == http::FieldId::connection || field.id == http::FieldId::transfer_encoding)
      continue;
    for (const char c : field.name) text += static_cast<char>(std::tolower(c));
    text += ": " + std::string(field.value) + "\n";
  }
  return std::string(request.method_name()) + " " + std::string(request.target()) + "\n" + text;
}

// A client whose connections end at a Server, and use one protocol.
class ClientPairTest : public ClientTest {
 protected:
  explicit ClientPairTest(HttpProtocol protocol) : protocol_(protocol) { begin(); }

  // Replaces the client and the server.
  void begin(http::ClientOptions options = {}, const http::Http2Options& of_server = {},
             const http::Http2Options& of_client = {}) {
    http::ServerOptions serving;
    serving.head_timeout = serving.idle_timeout = serving.body_timeout = Nanos{0};
    serving.min_body_rate = 0;
    serving.max_head = 32 * 1024;
    if (is_http2()) serving.http2 = must(http::Http2::create(of_server));
    server_ = must(http::Server::create(
        loop_,
        [this](http::Exchange exchange) {
          heads_.push_back(head_text(exchange.request()));
          on_request(std::move(exchange));
        },
        std::move(serving)));
    make_client(std::move(options), of_client);
  }
  // Replaces the client.
  void make_client(http::ClientOptions options = {}, const http::Http2Options& http2 = {}) {
    if (is_http2()) {
      options.http2 = must(http::Http2::create(http2));
      options.http2_without_tls = true;
    }
    ClientTest::make_client(std::move(options));
  }
  void accept(Stream stream) override { server_.add(std::move(stream)); }
  // Responds to the latest request.
  void answer(http::Status status = http::Status::ok, std::string_view body = "ok",
              const http::Fields& fields = {}) {
    kept_.back()->exchange.respond(status, fields, bytes_of(body));
    turns();
  }
  // Sends a request, and responds to it.
  void ask_and_answer(Outcome& outcome, http::CallOptions options = {},
                      http::Status status = http::Status::ok, std::string_view body = "ok",
                      const http::Fields& fields = {}) {
    const http::Call call = fetch(outcome, std::move(options));
    turns();
    answer(status, body, fields);
  }
  // Sends a request. Returns it as asked() does.
  std::string sent(std::string_view url, http::CallOptions options = {}) {
    const std::size_t before = kept_.size();
    Outcome outcome;
    const http::Call call = fetch(outcome, std::move(options), url);
    turns();
    EXPECT_FALSE(outcome.is_there()) << outcome.error().message();
    return kept_.size() == before ? "" : asked();
  }
  // Returns the latest request: its header section, an empty line, and its body.
  std::string asked() const { return heads_.back() + "\n" + kept_.back()->body; }
  bool is_http2() const { return protocol_ == HttpProtocol::http2; }

  const HttpProtocol protocol_;
  http::Server server_;
  std::vector<std::string> heads_;  // The header sections of all requests.
  std::vector<std::unique_ptr<Kept>> kept_;
  // Keeps the exchange, unless a test replaces it.
  std::function<void(http::Exchange)> on_request = [this](http::Exchange exchange) {
    kept_.push_back(std::make_unique<Kept>(std::move(exchange)));
  };
};

// Its tests run over both protocols.
class ClientProtocolTest : public ClientPairTest,
                           public ::testing::WithParamInterface<HttpProtocol> {
 protected:
  ClientProtocolTest() : ClientPairTest(GetParam()) {}
};

inline const auto kProtocols = ::testing::Values(HttpProtocol::http1, HttpProtocol::http2);

inline std::string name_of_protocol(const ::testing::TestParamInfo<HttpProtocol>& suite) {
  return suite.param == HttpProtocol::http1 ? "Http1" : "Http2";
}

}  // namespace spate::testing
