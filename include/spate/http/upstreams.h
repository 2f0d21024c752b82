// UpstreamOptions: the servers among which a Gateway distributes its requests
// (GatewayOptions::upstreams).
//
// Choice: an upstream that failed `max_fails` times within `fail_window` rests: it gets no requests
// for `first_rest`. Then it gets one. If that fails, the upstream rests twice as long, at most
// `max_rest`; otherwise it is available again. With `health_check`, an upstream that fails its
// checks is unhealthy, and gets no requests. If no upstream is available, those that rest are
// chosen from instead; if all are unhealthy, all of them. So neither requests that make servers
// fail nor a mistake in the check can stop the service.
// Failures: no connection, a connection that was lost, a malformed or truncated response, and
// GatewayOptions::timeout. A response of any status is no failure.
// Retries: a request that fails goes to another upstream, each at most once, if nothing of it was
// sent, or under the conditions of RetryOptions that do not concern the status: the method is
// idempotent, no body was sent, no part of a response was forwarded, and the failure may be
// temporary.
//
// Health checks: the Gateway sends each upstream a request at an interval, all at the same time, on
// new connections that are closed afterwards. An upstream is healthy until its first check ends,
// and that check alone decides. Later ones decide after `fall` failures or `rise` successes in a
// row. A check fails without a complete response of a healthy status within `timeout`. A failure of
// this machine, such as EMFILE, counts as neither. An upstream that becomes healthy does not rest.
// The checks end with the Gateway or the loop. They do not keep the loop alive, except a check that
// is in progress, for at most `timeout`.
//
// Threads: plain values; `on_change` is called on the thread of the Gateway's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "spate/function.h"
#include "spate/http/method.h"
#include "spate/http/status.h"
#include "spate/time.h"

namespace spate::http {

struct Upstream {
  std::string url;      // "http://host:port" or "https://host:port".
  unsigned weight = 1;  // Its share of the requests: 1 ... 1000.
};

enum class UpstreamBalance : std::uint8_t {
  // Chooses the upstream with the fewest requests in progress for its weight, tunnels included;
  // among equal ones, in turn.
  least_connections,
  // Chooses by a key of the request: as long as the upstream is available, equal keys get the same
  // one. If one of n upstreams becomes unavailable, 1/n of the keys move, and return later. The
  // choice depends on the URLs, weights and key only, so several Gateways agree.
  consistent_hash,
};

// The statuses from `first` to `last`.
struct StatusRange {
  int first = 200;
  int last = 399;
};

// The health checks of upstreams. They use these of GatewayOptions::client: `connect`, `fields`,
// `http2`, `http2_without_tls`, `max_head`, `open`, `proxies`, `tls` and `user_agent`. With
// GatewayOptions::proxy_protocol they send its header without addresses (UNKNOWN, LOCAL).
struct HealthCheck {
  Method method = Method::get;  // GET, HEAD or OPTIONS.
  std::string path = "/";       // With a query, if any.
  // Sent as Host, such as "app.example". Empty: the host of the upstream's URL. TLS verifies the
  // host of the URL in any case.
  std::string host{};
  // The time between two checks of an upstream. Each is lengthened by a random part of up to a
  // tenth, so that several Gateways do not check together.
  Nanos interval{5'000'000'000};
  Nanos timeout{2'000'000'000};  // For the whole check; at most `interval`.
  unsigned fall = 3;             // Failures in a row until the upstream is unhealthy.
  unsigned rise = 2;             // Successes in a row until it is healthy.
  // Redirects are not followed. If a body is longer than 64 KiB, the rest is not read.
  std::vector<StatusRange> healthy{{200, 399}};
};

// A change of an upstream.
struct UpstreamChange {
  std::string_view url{};
  bool is_available = false;  // It neither rests nor is unhealthy.
  bool is_healthy = true;     // False only with UpstreamOptions::health_check.
  // The last failure, unless it is available. HttpError::unhealthy_status comes with a `status`.
  std::error_code error{};
  std::optional<Status> status{};
  Nanos rest{0};  // The time until its next request, if it rests.
};

// Called on the loop when an upstream becomes unavailable or available: for a log. Must neither
// throw nor destroy the Gateway.
using OnUpstreamChange = Function<void(const UpstreamChange& change)>;

struct UpstreamOptions {
  // At least one. No URL may occur twice, and all have the same scheme.
  std::vector<Upstream> servers{};
  UpstreamBalance balance = UpstreamBalance::least_connections;
  // The key for consistent_hash: the value of this field, or of this cookie. Without either, or if
  // the request does not have it, the key is the client's IP address.
  std::string key_field{};
  std::string key_cookie{};

  unsigned max_fails = 3;  // 0: an upstream never rests.
  Nanos fail_window{10'000'000'000};
  // A rest is shortened by a random part of up to a half.
  Nanos first_rest{1'000'000'000};
  Nanos max_rest{30'000'000'000};
  // The most upstreams to which a request may be sent, in whole or in part. Upstreams that cannot
  // be reached do not count.
  unsigned attempts = 3;
  std::optional<HealthCheck> health_check{};
  OnUpstreamChange on_change{};
};

// A reading of one upstream.
struct UpstreamMetrics {
  std::string url;
  bool is_available = true;         // It neither rests nor is unhealthy.
  bool is_healthy = true;           // False only with UpstreamOptions::health_check.
  std::size_t forwarding = 0;       // Requests in progress, tunnels included.
  std::uint64_t forwarded = 0;      // Total, attempts that failed included.
  std::uint64_t failed = 0;         // Failures among them.
  std::uint64_t outages = 0;        // How often it became unavailable.
  std::uint64_t checks = 0;         // Health checks that ended with a result.
  std::uint64_t failed_checks = 0;  // Failures among them.
};

}  // namespace spate::http
