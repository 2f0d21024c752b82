// Router: a Service that selects the handler of a request by its method and path.
//
//   Router router;
//   router.get("/users/:id", [](Exchange exchange) {
//     exchange.respond("user " + exchange.request().param("id") + "\n");
//   });
//   router.post("/users", [](Exchange exchange) { ... }, {.max_body = 64 * 1024});
//   router.get("/static/*path", [&](Exchange exchange) { ... });
//
// Patterns: a pattern begins with '/'. A segment is literal, or ":name", which matches one
// non-empty segment. The last one may be "*name", which matches the rest of the path, including '/'
// and the empty rest. If several patterns match, they are compared segment by segment: a literal
// wins over ":", and ":" over "*". The order of registration does not matter. Percent-encoded
// characters match their decoded form; an encoded '/' does not end a segment.
//
// Defaults: a path without a route gets 404, and one without this method 405 with Allow. Unless
// they have handlers, HEAD is served by GET's handler, and OPTIONS gets 204 with Allow.
//
// Ownership: the Router owns its handlers, and must outlive its Servers and Exchanges. Outside of
// its handlers it may be assigned another Router, as after a change of the configuration. Exchanges
// that are open then keep their route and parameters.
// Threads: set up before it is used; then one at a time, as a handler may have state. Each worker
// needs its own Router (server.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "spate/export.h"
#include "spate/http/exchange.h"
#include "spate/http/server.h"
#include "spate/time.h"

namespace spate::http {

// Limits of one route, which replace the server's.
struct RouteOptions {
  std::uint64_t max_body = UINT64_MAX;  // A longer body gets 413.
  Nanos deadline{0};                    // For the whole exchange; zero is none.
};

class SPATE_EXPORT Router final : public Service {
 public:
  Router();
  Router(Router&& other) noexcept;
  Router& operator=(Router&& other) noexcept;
  ~Router();

  // Registers a handler. The pattern must be valid, and have no handler for this method yet
  // (asserted).
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
  // Registers the handler for all methods that have none.
  void any(std::string_view pattern, OnRequest handler, const RouteOptions& options = {});
  // Sets the handler for paths that no pattern matches, in place of 404.
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
