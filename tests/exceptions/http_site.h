// Site: a server, a client of it over memory, and what each of them noticed of an exception.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "spate/coro/scope.h"
#include "spate/http/client.h"
#include "spate/http/error.h"
#include "spate/http/http2.h"
#include "spate/http/router.h"
#include "spate/http/server.h"
#include "spate/http/websocket.h"
#include "spate/loop.h"
#include "spate/net/stream.h"

namespace spate::testing {

[[noreturn]] inline void fail() { throw std::runtime_error("thrown by the test"); }

enum class Protocol : std::uint8_t { http_1, http_2 };

// An exception as ServerOptions::on_exception was called with it.
struct Report {
  std::string method;
  std::string route;
  std::string text;
};

inline std::string text_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "not a std::exception";
  }
}

class Site {
 public:
  Site(Loop& loop, Protocol protocol) : loop_(loop), protocol_(protocol), scope(loop) {
    router.get("/good", [](http::Exchange exchange) { exchange.respond("good"); });
    options.http2 = must(http::Http2::create());
    options.on_exception = [this](const std::exception_ptr& exception, const http::Request& asked) {
      reports.push_back({std::string(asked.method_name()), std::string(asked.route()),
                         text_of(exception)});
      if (on_report) on_report();
    };
    options.log = [this](const http::AccessRecord& record) {
      if (record.error == http::HttpError::exception) ++logged;
      if (on_log) on_log(record);
    };
  }

  // Serves the router, or a Service that wraps it.
  void serve() { serve(router); }
  void serve(http::Service& service) {
    server = must(http::Server::create(loop_, service, std::move(options)));
    http::ClientOptions client_options;
    client_options.http2 = must(http::Http2::create());
    client_options.http2_without_tls = protocol_ == Protocol::http_2;
    client_options.open = [this](std::string_view, std::uint16_t) -> Result<Stream> {
      auto [mine, theirs] = must(Stream::memory_pair(loop_));
      server.add(std::move(theirs));
      return std::move(mine);
    };
    client = must(http::Client::create(loop_, std::move(client_options)));
  }

  Loop& loop() const { return loop_; }
  bool is_http2() const { return protocol_ == Protocol::http_2; }
  void turns(int count = 40) const {
    for (int i = 0; i < count; ++i) loop_.run(Run::no_wait);
  }
  // Returns the status of the response; "reset" for another end; "hangs" without an end.
  std::string ask(std::string_view path, http::CallOptions call_options = {}) {
    std::optional<std::string> seen;
    const http::Call call = client.fetch(
        std::string("http://a").append(path),
        [&](Result<http::Response> response) {
          seen = response ? std::to_string(static_cast<int>(response->status())) : "reset";
          if (!response && response.error() == Error::deadline) seen = "hangs";
        },
        std::move(call_options));
    while (!seen && call.is_open()) loop_.run(Run::once);
    turns();
    return seen.value_or("no callback");
  }

 private:
  Loop& loop_;
  const Protocol protocol_;

 public:
  http::ServerOptions options;
  http::Router router;
  std::vector<http::Exchange> kept;
  std::vector<std::shared_ptr<void>> owned;  // Objects of a case that the server uses.
  std::vector<Report> reports;
  int logged = 0;  // Records with HttpError::exception.
  std::function<void()> on_report;
  std::function<void(const http::AccessRecord&)> on_log;
  http::Server server;
  http::Client client;
  coro::Scope scope;  // Destroyed before the server.
};

}  // namespace spate::testing
