// Shared by the tests of the Inspector: a server that serves one, on a clock that stands still.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "http/harness.h"
#include "spate/http/inspector.h"
#include "spate/net/connect.h"
#include "support/json.h"

namespace spate::testing {

class InspectingTest : public HttpServerTest {
 protected:
  InspectingTest() {
    on_request = [this](http::Exchange exchange) { inspector_->serve(std::move(exchange)); };
    inspect({});
  }
  void inspect(const http::InspectorOptions& options) {
    inspector_.reset();
    inspector_.emplace(must(http::Inspector::create(loop_, options)));
  }
  static std::string ask_for(std::string_view path, std::string_view method = "GET") {
    return std::string(method).append(" ").append(path) + " HTTP/1.0\r\n\r\n";
  }
  static std::string body_of(std::string_view answer) {
    return std::string(answer.substr(std::min(answer.find("\r\n\r\n"), answer.size() - 4) + 4));
  }
  std::string get(std::string_view path) { return body_of(talk(ask_for(path))); }
  static Json parse(std::string_view text) {
    const auto json = JsonReader(text).read();
    EXPECT_TRUE(json) << text;
    return json.value_or(Json());
  }
  Json state() { return parse(get("/state.json")); }
  Json loop_named(const Json& all, const std::string& name) {
    for (const Json& loop : all["loops"].items) {
      if (loop["name"].text == name) return loop;
    }
    ADD_FAILURE() << "there is no loop " << name;
    return {};
  }
  std::unique_ptr<RawClient> watch() {
    auto client = connect();
    client->send(ask_for("/events"));
    turns();
    return client;
  }
  static std::size_t events_of(const RawClient& client) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = client.received.find("\ndata: ", at)) != std::string::npos; ++at)
      ++count;
    return count;
  }
  Result<Stream> connected(const Address& address) {
    Result<Stream> made = std::unexpected(std::error_code());
    const Connecting attempt =
        spate::connect(loop_, address, [&](Result<Stream> stream) { made = std::move(stream); });
    while (!made && !made.error()) turns();
    return made;
  }
  void run_other(int turns = 20) {
    for (int i = 0; i < turns; ++i) other_->run(Run::no_wait);
  }

  std::unique_ptr<Loop> other_ = must(Loop::create({.clock = &clock_}));
  std::optional<http::Inspector> inspector_;
};

}  // namespace spate::testing
