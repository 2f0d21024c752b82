// UpstreamOptions: the servers among which a Gateway distributes its requests
// (GatewayOptions::upstreams).
//
// Choice: an upstream that failed `max_fails` times within `fail_window` rests: it gets no requests
// for `first_rest`. Then it gets one. If that fails, the upstream rests twice as long, at most
// `max_rest`; otherwise it is available again. If no upstream is available, those that rest are
// chosen from instead.
// Failures: no connection, a connection that was lost, a malformed or truncated response, and
// GatewayOptions::timeout. A response of any status is no failure.
// Retries: a request that fails goes to another upstream, each at most once, if nothing of it was
// sent, or under the conditions of RetryOptions that do not concern the status: the method is
// idempotent, no body was sent, no part of a response was forwarded, and the failure may be
// temporary.
//
// Threads: plain values; `on_change` is called on the thread of the Gateway's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

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

// A change of an upstream.
struct UpstreamChange {
  std::string_view url;
  bool is_available = false;
  std::error_code error{};  // The last failure, unless it is available.
  Nanos rest{0};            // The time until its next request, unless it is available.
};

// Called on the loop when an upstream begins to rest or becomes available: for a log. Must neither
// throw nor destroy the Gateway.
using OnUpstreamChange = std::move_only_function<void(const UpstreamChange& change)>;

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
  OnUpstreamChange on_change{};
};

// A reading of one upstream.
struct UpstreamMetrics {
  std::string url;
  bool is_available = true;
  std::size_t forwarding = 0;   // Requests in progress, tunnels included.
  std::uint64_t forwarded = 0;  // Total, attempts that failed included.
  std::uint64_t failed = 0;     // Failures among them.
};

}  // namespace spate::http
