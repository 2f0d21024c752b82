// Middleware: Services that wrap another Service. Each checks a request, or attaches something to
// its Exchange, and passes it on. They are stacked from the inside outwards:
//
//   Router router;
//   router.get("/", [](Exchange exchange) { exchange.respond("hello\n"); });
//   RateLimit limited(router, {.rate = 5, .burst = 10});
//   SecurityFields site(limited);
//   auto server = must(serve(*loop, Address::any_ipv6(8080), site));
//
// A program's own middleware is a Service of the same form (docs/guide/http-middleware.md).
//
// Ownership: the wrapped Service is the caller's, and must outlive the middleware, which must
// outlive its Servers.
// Threads: the loop's thread only. On Workers, each worker needs its own (server.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "spate/export.h"
#include "spate/http/exchange.h"
#include "spate/http/fields.h"
#include "spate/http/method.h"
#include "spate/http/server.h"
#include "spate/time.h"

namespace spate::http {

// ---- fields of responses

// Adds fields to every response, also to those of Files and of WebSocket upgrades.
class SPATE_EXPORT AddedFields final : public Service {
 public:
  // `fields` must not have one of the server's own (asserted).
  AddedFields(Service& next, Fields fields);
  void on_request(Exchange exchange) override;

 private:
  Service& next_;
  Fields fields_;
};

// Each empty text, and zero, leaves its field out.
struct SecurityFieldsOptions {
  std::string content_security_policy = "default-src 'self'; frame-ancestors 'none'";
  std::string referrer_policy = "strict-origin-when-cross-origin";
  std::string permissions_policy{};
  std::string cross_origin_opener_policy = "same-origin";
  bool nosniff = true;  // X-Content-Type-Options
  // Strict-Transport-Security (RFC 6797), over TLS only.
  Nanos hsts{std::chrono::hours(24 * 365)};
  bool hsts_subdomains = false;
};

// Adds the fields with which browsers restrict pages.
class SPATE_EXPORT SecurityFields final : public Service {
 public:
  // The texts must be valid field values (asserted).
  explicit SecurityFields(Service& next, const SecurityFieldsOptions& options = {});
  void on_request(Exchange exchange) override;

 private:
  Service& next_;
  Fields fields_;
  std::string hsts_;
};

// ---- access

// Compares two secrets in a time that depends only on their lengths.
SPATE_EXPORT bool equal_in_constant_time(std::string_view left, std::string_view right);

// Requires a user and a password (RFC 7617), otherwise responds 401. Use it over TLS only: the
// password is sent in clear.
class SPATE_EXPORT BasicAuth final : public Service {
 public:
  // Returns whether the password is right. May attach the user to the Exchange
  // (Exchange::set_attribute()), and must not respond. Compare secrets with
  // equal_in_constant_time().
  using Check =
      std::function<bool(Exchange& exchange, std::string_view user, std::string_view password)>;

  // `realm` is shown by browsers; it must not have control characters (asserted).
  BasicAuth(Service& next, Check check, std::string_view realm = "restricted");
  void on_request(Exchange exchange) override;

 private:
  Service& next_;
  Check check_;
  std::string challenge_;
};

// Requires a token (`Authorization: Bearer`, RFC 6750), otherwise responds 401.
class SPATE_EXPORT BearerAuth final : public Service {
 public:
  // Returns whether the token is valid, as BasicAuth::Check.
  using Check = std::function<bool(Exchange& exchange, std::string_view token)>;

  BearerAuth(Service& next, Check check, std::string_view realm = "restricted");
  void on_request(Exchange exchange) override;

 private:
  Service& next_;
  Check check_;
  std::string challenge_;
};

struct CorsOptions {
  // The origins whose pages may read responses: "https://example.org", without a path. "*": all.
  std::vector<std::string> origins{};
  // The methods that a page may use, beside GET, HEAD and POST in simple requests.
  std::vector<Method> methods{Method::get, Method::head, Method::post};
  // The fields that a page may send beside the safelisted ones. "*": all that it asks for.
  std::vector<std::string> request_fields{};
  std::vector<std::string> response_fields{};  // The fields that a page may read.
  // Lets pages send cookies and credentials. Not with the origin "*".
  bool credentials = false;
  Nanos max_age{std::chrono::minutes(10)};  // How long a browser may remember a permission.
};

// Responds to preflight requests and marks responses, so that pages of other origins may use them
// (the Fetch standard's CORS protocol). It protects browsers' users, not the server: requests of
// other origins are served, but the browser does not show the response to the page.
class SPATE_EXPORT Cors final : public Service {
 public:
  // Asserts that `credentials` is not combined with the origin "*".
  Cors(Service& next, CorsOptions options);
  void on_request(Exchange exchange) override;

 private:
  bool allows(std::string_view origin) const;
  void respond_to_preflight(Exchange exchange) const;
  void add_permission(Exchange& exchange, std::string_view origin) const;

  Service& next_;
  CorsOptions options_;
  std::string methods_;
  std::string request_fields_;
  std::string response_fields_;
  std::string max_age_;
  bool allows_all_ = false;
};

// ---- limits

struct RateLimitOptions {
  double rate = 10;     // Requests per second and client, on average; above zero.
  unsigned burst = 20;  // Requests at once; at least 1.
  // Clients that are remembered, in about 150 bytes each. Beyond, the one whose last request is
  // longest ago is forgotten.
  std::size_t max_clients = 65536;
  // Returns the client's name, of which the first 256 bytes are compared. By default it is the
  // address of Request::client(), for IPv6 its first 64 bits.
  std::function<std::string(const Request& request)> key{};
};

// Lets each client send a limited number of requests, and responds 429 with Retry-After to the
// others.
class SPATE_EXPORT RateLimit final : public Service {
 public:
  explicit RateLimit(Service& next, RateLimitOptions options = {});
  ~RateLimit() override;
  void on_request(Exchange exchange) override;

  // Returns how many clients are remembered, and how many requests were refused.
  std::size_t clients() const;
  std::uint64_t refused() const { return refused_; }

 private:
  class Clients;

  Service& next_;
  RateLimitOptions options_;
  std::unique_ptr<Clients> clients_;
  std::uint64_t refused_ = 0;
};

struct ConcurrencyLimitOptions {
  std::size_t max = 100;          // Exchanges in progress; at least 1.
  std::size_t max_waiting = 100;  // Further requests that wait for one to end. Others get 503.
  Nanos max_wait{std::chrono::seconds(10)};  // A request that waits longer gets 503.
};

// Bounds how many exchanges are in progress. Requests beyond that wait, in order.
class SPATE_EXPORT ConcurrencyLimit final : public Service {
 public:
  explicit ConcurrencyLimit(Service& next, const ConcurrencyLimitOptions& options = {});
  ~ConcurrencyLimit() override;
  void on_request(Exchange exchange) override;

  std::size_t active() const;
  std::size_t waiting() const;

 private:
  class State;

  std::shared_ptr<State> state_;
};

// Responds 503 if the handler has not begun a response in time. The handler's Exchange then behaves
// as after any response: further ones return false.
class SPATE_EXPORT ResponseTimeout final : public Service {
 public:
  ResponseTimeout(Service& next, Nanos timeout) : next_(next), timeout_(timeout) {}
  void on_request(Exchange exchange) override;

 private:
  Service& next_;
  Nanos timeout_;
};

// Responds 413 to a body of more than `most` bytes, as RouteOptions::max_body.
class SPATE_EXPORT BodyLimit final : public Service {
 public:
  BodyLimit(Service& next, std::uint64_t most) : next_(next), most_(most) {}
  void on_request(Exchange exchange) override;

 private:
  Service& next_;
  std::uint64_t most_;
};

// ---- tracing

struct RequestIdOptions {
  std::string field = "X-Request-Id";
  // Keeps an id that the client sent, if it has 1 to 128 letters, digits, and any of "-._". For
  // servers behind a proxy that sets the field.
  bool keep = false;
};

// Gives each request an id, 32 random hexadecimal digits, and sends it with the response.
class SPATE_EXPORT RequestId final : public Service {
 public:
  // `options.field` must be a valid field name (asserted).
  explicit RequestId(Service& next, RequestIdOptions options = {});
  void on_request(Exchange exchange) override;

  // Returns the id of a request, also in ServerOptions::log; empty if it has none.
  static std::string_view of(const Request& request);

 private:
  Service& next_;
  RequestIdOptions options_;
};

}  // namespace spate::http
