// Handlers of requests, ExchangeHandlers, and the functions that are attached to an exchange.
#include <string>
#include <utility>

#include "exceptions/http_cases.h"
#include "spate/http/exchange.h"

namespace spate::testing {
namespace {

using http::Exchange;
using http::Status;

const std::string kLong(300'000, 'x');

// Serves `handler` at /case, and asks for that.
template <class Handler>
std::string get(Site& site, Handler handler) {
  site.router.get("/case", handler);
  site.serve();
  return site.ask("/case");
}

template <class Handler>
std::string post(Site& site, Handler handler) {
  site.router.post("/case", handler);
  site.serve();
  return site.ask("/case", {.method = http::Method::post, .body = bytes_of(kLong)});
}

std::string at_once(Site& site) {
  return get(site, [](Exchange) { fail(); });
}

std::string after_response(Site& site) {
  return get(site, [](Exchange exchange) {
    exchange.respond("all of it");
    fail();
  });
}

std::string in_a_response(Site& site) {
  return get(site, [](Exchange exchange) {
    exchange.begin(Status::ok);
    exchange.write("a part");
    fail();
  });
}

std::string in_a_sized_response(Site& site) {
  return get(site, [](Exchange exchange) {
    exchange.begin(Status::ok, {}, 100);
    exchange.write("a part");
    fail();
  });
}

std::string after_inform(Site& site) {
  return get(site, [](Exchange exchange) {
    exchange.inform(Status::early_hints);
    fail();
  });
}

std::string after_abort(Site& site) {
  return get(site, [](Exchange exchange) {
    exchange.abort();
    fail();
  });
}

std::string with_a_kept_exchange(Site& site) {
  return get(site, [&site](Exchange exchange) {
    site.kept.push_back(std::move(exchange));
    fail();
  });
}

std::string with_a_kept_response(Site& site) {
  return get(site, [&site](Exchange exchange) {
    exchange.begin(Status::ok);
    site.kept.push_back(std::move(exchange));
    fail();
  });
}

std::string with_an_unread_body(Site& site) {
  return post(site, [](Exchange) { fail(); });
}

std::string otherwise(Site& site) {
  site.router.otherwise([](Exchange) { fail(); });
  site.serve();
  return site.ask("/case");
}

// Throws again from on_report's server: the function of a server without a Router.
std::string without_a_router(Site& site) {
  struct Bare final : http::Service {
    void on_request(Exchange exchange) override {
      if (exchange.request().path() == "/case") fail();
      exchange.respond("good");
    }
  };
  const auto bare = std::make_shared<Bare>();
  site.owned.push_back(bare);
  site.serve(*bare);
  return site.ask("/case");
}

std::string in_read_body(Site& site) {
  return post(site, [](Exchange exchange) {
    read_body(std::move(exchange), kLong.size(), [](Exchange, Bytes) { fail(); });
  });
}

std::string in_read_body_of_nothing(Site& site) {
  return get(site, [](Exchange exchange) {
    read_body(std::move(exchange), 10, [](Exchange, Bytes) { fail(); });
  });
}

// Throws in one of its functions.
class Thrower final : public http::ExchangeHandler {
 public:
  enum class In : std::uint8_t { body, body_end, drained, client_end, closed };

  Thrower(Exchange exchange, In in) : in_(in), exchange_(std::move(exchange)) {
    exchange_.start(*this);
  }
  void on_body(Bytes) override { reach(In::body); }
  void on_body_end(const http::FieldsView&) override { reach(In::body_end); }
  void on_drained() override { reach(In::drained); }
  void on_client_end() override { reach(In::client_end); }
  void on_closed(std::error_code why) override {
    is_closed = true;
    error = why;
    reach(In::closed);
  }
  Exchange& exchange() { return exchange_; }

  bool is_closed = false;
  std::error_code error;

 private:
  void reach(In in) const {
    if (in == in_) fail();
  }

  const In in_;
  Exchange exchange_;
};

// Asks a handler that gives the exchange to a Thrower. Appends the error of its last call.
template <class Begin>
std::string ask_thrower(Site& site, Thrower::In in, http::Method method, Begin begin) {
  std::shared_ptr<Thrower> thrower;
  site.router.on(method, "/case", [&thrower, in, begin](Exchange exchange) {
    thrower = std::make_shared<Thrower>(std::move(exchange), in);
    begin(*thrower);
  });
  site.serve();
  http::CallOptions options{.method = method};
  if (method == http::Method::post) options.body = bytes_of(kLong);
  std::string seen = site.ask("/case", std::move(options));
  if (!thrower->is_closed) return seen + ", and on_closed() was not called";
  if (in != Thrower::In::closed && thrower->error != http::HttpError::exception)
    return seen + ", and on_closed() got " + thrower->error.message();
  return seen;
}

constexpr auto kNothing = [](Thrower&) {};

std::string in_on_body(Site& site) {
  return ask_thrower(site, Thrower::In::body, http::Method::post, kNothing);
}

std::string in_on_body_of_a_response(Site& site) {
  return ask_thrower(site, Thrower::In::body, http::Method::post,
                     [](Thrower& thrower) { thrower.exchange().begin(Status::ok); });
}

std::string in_on_body_after_a_response(Site& site) {
  return ask_thrower(site, Thrower::In::body, http::Method::post,
                     [](Thrower& thrower) { thrower.exchange().respond("early"); });
}

std::string in_on_body_end(Site& site) {
  return ask_thrower(site, Thrower::In::body_end, http::Method::post, kNothing);
}

std::string in_on_drained(Site& site) {
  return ask_thrower(site, Thrower::In::drained, http::Method::get, [](Thrower& thrower) {
    thrower.exchange().begin(Status::ok);
    while (!thrower.exchange().is_full()) thrower.exchange().write(kLong);
  });
}

std::string in_on_closed(Site& site) {
  return ask_thrower(site, Thrower::In::closed, http::Method::get,
                     [](Thrower& thrower) { thrower.exchange().respond("all of it"); });
}

std::string in_on_closed_of_a_lost_client(Site& site) {
  std::shared_ptr<Thrower> thrower;
  site.router.get("/case", [&thrower](Exchange exchange) {
    thrower = std::make_shared<Thrower>(std::move(exchange), Thrower::In::closed);
  });
  site.serve();
  http::Call call = site.client.fetch("http://a/case", [](Result<http::Response>) {});
  while (thrower == nullptr) site.loop().run(Run::once);
  call.cancel();
  while (!thrower->is_closed) site.loop().run(Run::once);
  return "cancelled";
}

// Sends one request, and ends the client's side.
class HalfClosed final : public StreamHandler {
 public:
  explicit HalfClosed(Site& site) {
    auto [mine, theirs] = must(Stream::memory_pair(site.loop()));
    site.server.add(std::move(theirs));
    stream_ = std::move(mine);
    stream_.set_half_open(true);
    stream_.start(*this);
    stream_.write("GET /case HTTP/1.1\r\nHost: a\r\n\r\n");
    stream_.end();
  }
  std::size_t on_data(Bytes bytes) override {
    received += spate::text_of(bytes);
    return bytes.size();
  }
  void on_closed(std::error_code) override { is_closed = true; }

  std::string received;
  bool is_closed = false;

 private:
  Stream stream_;
};

std::string in_on_client_end(Site& site) {
  std::shared_ptr<Thrower> thrower;
  site.router.get("/case", [&thrower](Exchange exchange) {
    thrower = std::make_shared<Thrower>(std::move(exchange), Thrower::In::client_end);
  });
  site.serve();
  const HalfClosed client(site);
  while (!client.is_closed && client.received.empty()) site.loop().run(Run::once);
  return client.received.substr(9, 3);
}

std::string in_before_response(Site& site) {
  return get(site, [](Exchange exchange) {
    exchange.before_response([](Status, http::Fields&) { fail(); });
    exchange.respond("never sent");
  });
}

std::string in_before_response_of_a_failure(Site& site) {
  return get(site, [](Exchange exchange) {
    exchange.before_response([](Status, http::Fields&) { fail(); });
  });
}

std::string in_on_end(Site& site) {
  return get(site, [](Exchange exchange) {
    exchange.on_end([](const http::AccessRecord&) { fail(); });
    exchange.respond("all of it");
  });
}

std::string in_the_log(Site& site) {
  site.on_log = [](const http::AccessRecord& record) {
    if (record.request.path() == "/case") fail();
  };
  return get(site, [](Exchange exchange) { exchange.respond("all of it"); });
}

std::string of_another_type(Site& site) {
  return get(site, [&site](Exchange) {
    site.on_report = [&site] {
      if (site.reports.back().text == "not a std::exception")
        site.reports.back().text = "thrown by the test";
    };
    throw 42;
  });
}

// The server is replaced in the report of the exception.
std::string with_a_server_destroyed_in_the_report(Site& site) {
  site.on_report = [&site] { site.server = http::Server(); };
  const std::string seen = get(site, [&site](Exchange exchange) {
    site.kept.push_back(std::move(exchange));
    fail();
  });
  site.options = {};
  site.options.http2 = must(http::Http2::create());
  site.serve();
  return seen;
}

constexpr Case kCases[] = {
    {.name = "a handler", .run = at_once},
    {.name = "a handler, another type", .run = of_another_type},
    {.name = "a handler, after its response", .run = after_response, .seen = "200"},
    {.name = "a handler, in its response", .run = in_a_response, .seen = "reset"},
    {.name = "a handler, in a sized response", .run = in_a_sized_response, .seen = "reset"},
    {.name = "a handler, after 103", .run = after_inform},
    {.name = "a handler, after abort()", .run = after_abort, .seen = "reset"},
    {.name = "a handler, its Exchange kept", .run = with_a_kept_exchange},
    {.name = "a handler, its response kept", .run = with_a_kept_response, .seen = "reset"},
    {.name = "a handler, the body unread", .run = with_an_unread_body},
    {.name = "Router::otherwise()", .run = otherwise, .route = ""},
    {.name = "Service", .run = without_a_router, .route = ""},
    {.name = "read_body()", .run = in_read_body},
    {.name = "read_body() without a body", .run = in_read_body_of_nothing},
    {.name = "on_body()", .run = in_on_body},
    {.name = "on_body(), in the response", .run = in_on_body_of_a_response, .seen = "reset"},
    {.name = "on_body(), after the response", .run = in_on_body_after_a_response, .seen = "200"},
    {.name = "on_body_end()", .run = in_on_body_end},
    {.name = "on_drained()", .run = in_on_drained, .seen = "reset"},
    {.name = "on_client_end()", .run = in_on_client_end, .only_http_1 = true},
    // These are called after the record was made.
    {.name = "on_closed()", .run = in_on_closed, .seen = "200", .logged = 0},
    {.name = "on_closed(), the client is lost",
     .run = in_on_closed_of_a_lost_client,
     .seen = "cancelled",
     .logged = 0},
    {.name = "on_end()", .run = in_on_end, .seen = "200", .logged = 0},
    {.name = "the log", .run = in_the_log, .seen = "200", .logged = 0},
    {.name = "before_response()", .run = in_before_response},
    {.name = "before_response() of a 500", .run = in_before_response_of_a_failure},
    {.name = "a handler, the report destroys the server",
     .run = with_a_server_destroyed_in_the_report,
     .seen = "reset",
     .logged = 0},
};

}  // namespace

std::span<const Case> request_cases() { return kCases; }

}  // namespace spate::testing
