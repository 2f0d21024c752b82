// Functions of the user's that the library's Services call.
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "exceptions/http_cases.h"
#include "spate/http/events.h"
#include "spate/http/gateway.h"
#include "spate/http/middleware.h"

namespace spate::testing {
namespace {

using http::Exchange;

// Serves the router behind a Service of this type.
template <class Service, class... Args>
Service& serve_behind(Site& site, Args&&... args) {
  const auto service = std::make_shared<Service>(site.router, std::forward<Args>(args)...);
  site.owned.push_back(service);
  site.serve(*service);
  return *service;
}

void respond(Exchange exchange) { exchange.respond("not reached"); }

std::string with_credentials(Site& site, std::string_view credentials) {
  http::CallOptions options;
  options.fields.set(http::FieldId::authorization, credentials);
  return site.ask("/case", std::move(options));
}

std::string in_basic_auth(Site& site) {
  site.router.get("/case", respond);
  const http::BasicAuth::Check check = [](Exchange&, std::string_view, std::string_view) -> bool {
    fail();
  };
  const auto service = std::make_shared<http::BasicAuth>(site.router, check);
  site.owned.push_back(service);
  site.router.get("/basic", [service](Exchange exchange) {
    service->on_request(std::move(exchange));
  });
  site.serve();
  http::CallOptions options;
  options.fields.set(http::FieldId::authorization, "Basic YTpi");
  return site.ask("/basic", std::move(options));
}

std::string in_bearer_auth(Site& site) {
  struct Open final : http::Service {
    explicit Open(http::Router& router)
        : checked(router, [](Exchange&, std::string_view) -> bool { fail(); }), all(router) {}
    void on_request(Exchange exchange) override {
      const bool is_case = exchange.request().path() == "/case";
      (is_case ? static_cast<http::Service&>(checked) : all).on_request(std::move(exchange));
    }
    http::BearerAuth checked;
    http::Router& all;
  };
  serve_behind<Open>(site);
  return with_credentials(site, "Bearer secret");
}

std::string in_rate_limit(Site& site) {
  site.router.get("/case", respond);
  serve_behind<http::RateLimit>(
      site, http::RateLimitOptions{.key = [](const http::Request& request) -> std::string {
        if (request.path() == "/case") fail();
        return "a";
      }});
  return site.ask("/case");
}

std::string behind_three(Site& site) {
  struct Stack final : http::Service {
    explicit Stack(http::Router& router) : limit(router), ids(limit), secure(ids) {}
    void on_request(Exchange exchange) override { secure.on_request(std::move(exchange)); }
    http::ConcurrencyLimit limit;
    http::RequestId ids;
    http::SecurityFields secure;
  };
  site.router.get("/case", [](Exchange) { fail(); });
  Stack& stack = serve_behind<Stack>(site);
  const std::string seen = site.ask("/case");
  return stack.limit.active() == 0 ? seen : seen + ", and the limit counts it";
}

// The second request waits for the first one's end, and its handler throws.
std::string in_a_queue(Site& site) {
  site.router.get("/first", [&site](Exchange exchange) {
    site.kept.push_back(std::move(exchange));
  });
  site.router.get("/case", [](Exchange) { fail(); });
  auto& limit =
      serve_behind<http::ConcurrencyLimit>(site, http::ConcurrencyLimitOptions{.max = 1});
  std::string first;
  const http::Call call = site.client.fetch("http://a/first", [&](Result<http::Response> response) {
    if (response) first = response->text();
  });
  while (site.kept.empty()) site.loop().run(Run::once);
  std::string seen = "nothing";
  const http::Call second = site.client.fetch("http://a/case", [&](Result<http::Response> answer) {
    seen = answer ? std::to_string(static_cast<int>(answer->status())) : "reset";
  });
  while (limit.waiting() == 0) site.loop().run(Run::once);
  site.kept.front().respond("first");
  while (second.is_open() || call.is_open()) site.loop().run(Run::once);
  site.turns();
  if (limit.active() != 0) seen += ", and the limit counts it";
  return first == "first" ? seen : seen + ", and the first got " + first;
}

std::string in_response_timeout(Site& site) {
  site.router.get("/case", [&site](Exchange exchange) {
    exchange.before_response([](http::Status, http::Fields&) { fail(); });
    site.kept.push_back(std::move(exchange));
  });
  serve_behind<http::ResponseTimeout>(site, std::chrono::milliseconds(1));
  site.on_report = [&site] { site.loop().defer([&site] { site.kept.clear(); }); };
  return site.ask("/case");
}

std::string in_a_gateway(Site& site) {
  http::GatewayOptions options;
  options.client.open = [](std::string_view, std::uint16_t) -> Result<Stream> {
    return std::unexpected(make_error_code(std::errc::connection_refused));
  };
  const auto gateway =
      std::make_shared<http::Gateway>(must(http::Gateway::create(site.loop(), std::move(options))));
  site.owned.push_back(gateway);
  site.router.get("/case", [gateway](Exchange exchange) {
    gateway->forward(std::move(exchange), "http://b",
                     [](std::error_code) -> std::string { fail(); });
  });
  site.serve();
  return site.ask("/case");
}

std::string in_an_event_stream(Site& site) {
  const auto events = std::make_shared<http::EventStream>();
  site.owned.push_back(events);
  site.router.get("/case", [events](Exchange exchange) {
    *events = http::EventStream::open(std::move(exchange));
    events->set_on_closed([](std::error_code) { fail(); });
  });
  site.serve();
  http::Call call = site.client.fetch("http://a/case", [](Result<http::Response>) {});
  while (!events->is_open()) site.loop().run(Run::once);
  site.turns();
  call.cancel();
  while (site.reports.empty()) site.loop().run(Run::once);
  return "cancelled";
}

// The client does not read: the stream is closed by its limit, from a timer.
std::string in_a_full_event_stream(Site& site) {
  const auto events = std::make_shared<http::EventStream>();
  site.owned.push_back(events);
  site.router.get("/case", [events](Exchange exchange) {
    *events = http::EventStream::open(std::move(exchange), {.max_queued = 10});
    events->set_on_closed([](std::error_code) { fail(); });
    events->send(std::string(100, 'x'));
  });
  site.serve();
  return site.ask("/case");
}

std::string in_on_refused(Site& site) {
  site.options.on_refused = [](const http::RefusedRequest&, http::RefusalResponse&) { fail(); };
  site.serve();
  return site.ask("/case");
}

// Both the handler and the function that is called for its 500 throw.
std::string in_on_refused_of_a_failure(Site& site) {
  site.router.get("/case", [](Exchange) { fail(); });
  return in_on_refused(site);
}

constexpr Case kCases[] = {
    {.name = "BasicAuth::Check", .run = in_basic_auth, .route = "/basic"},
    {.name = "BearerAuth::Check", .run = in_bearer_auth, .route = ""},
    {.name = "RateLimitOptions::key", .run = in_rate_limit, .route = ""},
    {.name = "a handler behind middleware", .run = behind_three},
    {.name = "a handler behind a queue", .run = in_a_queue},
    {.name = "before_response() of a 503", .run = in_response_timeout},
    {.name = "on_refused of a 404", .run = in_on_refused, .seen = "404", .route = ""},
    {.name = "on_refused of a 500", .run = in_on_refused_of_a_failure, .reports = 2},
    {.name = "OnUnreached of a Gateway", .run = in_a_gateway},
    {.name = "on_closed of an EventStream",
     .run = in_an_event_stream,
     .seen = "cancelled",
     .logged = 0},
    {.name = "on_closed of a full EventStream",
     .run = in_a_full_event_stream,
     .seen = "reset"},
};

}  // namespace

std::span<const Case> service_cases() { return kCases; }

}  // namespace spate::testing
