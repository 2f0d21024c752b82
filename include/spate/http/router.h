// Router: a Service that picks the handler of a request by its method and path.
//
//   Router router;
//   router.get("/users/:id", [](Exchange exchange) {
//     exchange.respond("user " + exchange.request().param("id") + "\n");
//   });
//   router.post("/users", [](Exchange exchange) { ... }, {.max_body = 64 * 1024});
//   router.get("/static/*path", [&](Exchange exchange) { ... });
//
// A pattern begins with '/'. Its segments are literal, or ":name", which matches one segment that
// is not empty, or, as the last one, "*name", which matches all that is left, '/' and nothing
// included. Of several patterns that match, the one with the earlier literal wins, then ":", then
// "*", segment by segment; the order of registering does not matter. Percent-encoded characters
// match as what they stand for; an encoded '/' does not end a segment. A path without a route is
// answered 404, one without this method 405 with Allow; HEAD is answered by GET's handler, and
// OPTIONS with 204 and Allow, unless they have one of their own.
//
// Ownership: the Router owns its handlers, and must outlive its Servers and Exchanges.
// Threads: set up before it is used; then one at a time, as a handler may have state. Each worker
// has a Router of its own (server.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "spate/export.h"
#include "spate/http/exchange.h"
#include "spate/http/server.h"
#include "spate/time.h"

namespace spate::http {

// Limits of one route, in place of the server's.
struct RouteOptions {
  std::uint64_t max_body = UINT64_MAX;  // Of a longer body 413 is answered.
  Nanos deadline{0};                    // For the whole exchange; zero is none.
};

class SPATE_EXPORT Router final : public Service {
 public:
  Router();
  Router(Router&& other) noexcept;
  Router& operator=(Router&& other) noexcept;
  ~Router();

  // Asserted: the pattern is one, and no handler has been registered for it and the method.
  void on(Method method, std::string_view pattern, OnRequest handler,
          const RouteOptions& options = {});
  void get(std::string_view pattern, OnRequest handler, const RouteOptions& options = {}) {
    on(Method::get, pattern, std::move(handler), options);
  }
  void post(std::string_view pattern, OnRequest handler, const RouteOptions& options = {}) {
    on(Method::post, pattern, std::move(handler), options);
  }
  void put(std::string_view pattern, OnRequest handler, const RouteOptions& options = {}) {
    on(Method::put, pattern, std::move(handler), options);
  }
  void patch(std::string_view pattern, OnRequest handler, const RouteOptions& options = {}) {
    on(Method::patch, pattern, std::move(handler), options);
  }
  void del(std::string_view pattern, OnRequest handler, const RouteOptions& options = {}) {
    on(Method::del, pattern, std::move(handler), options);
  }
  // Any method that has no handler of its own.
  void any(std::string_view pattern, OnRequest handler, const RouteOptions& options = {});
  // What no pattern matches; instead of 404.
  void otherwise(OnRequest handler);

  void on_request(Exchange exchange) override;

 private:
  struct Node;
  struct Match;

  Node& node_of(std::string_view pattern);
  static void call(Exchange exchange, OnRequest& handler, const RouteOptions& options);
  void refuse(Exchange exchange);

  std::unique_ptr<Node> root_;
  OnRequest otherwise_;
};

}  // namespace spate::http
