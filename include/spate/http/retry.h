// RetryOptions: when a Client sends a request again after a failure (ClientOptions::retry).
// Threads: any, one at a time for each object; the functions are called on the Client's loop.
#pragma once

#include <optional>
#include <string_view>
#include <system_error>

#include "spate/function.h"
#include "spate/http/status.h"
#include "spate/http/url.h"
#include "spate/time.h"

namespace spate::http {

// A request is sent again only if all of these hold:
// * Its method is idempotent (RFC 9110 §9.2.2), or it has an Idempotency-Key.
// * Its body can be sent from the beginning: it is no upload of which a part was sent.
// * The caller has seen nothing of the response. With fetch() this is always so; with send() it
//   ends with the first call to on_informational() or on_response().
// * It ended with the status 429, 502, 503 or 504, or with an error that may be temporary: no
//   connection was made in time, a name server failed, or the connection was lost.
// * `attempts` and `budget` allow it, and the delay ends before the call's deadline.
// Otherwise the caller gets the last response or error.
struct RetryOptions {
  unsigned attempts = 1;  // Including the first. 0 and 1: never again.
  // The delay before attempt n + 1 is random between 0 and first_delay * 2^(n - 1), and at most
  // max_delay ("full jitter").
  Nanos first_delay{100'000'000};
  Nanos max_delay{10'000'000'000};
  // Retry-After of a response is the least delay, in seconds or as a date. A response that requests
  // more than this is not retried.
  Nanos max_retry_after{60'000'000'000};
  // Limits retries to this share of the Client's calls (0 ... 1), after the first `burst`. It
  // prevents that clients multiply the load of a server that fails.
  double budget = 0.2;
  unsigned burst = 10;
};

// A retry that is about to be made.
struct Retry {
  std::string_view method;
  const Url& url;
  unsigned attempt = 1;            // The number of the attempt that has failed; the first is 1.
  std::optional<Status> status{};  // The status of its response,
  std::error_code error{};         // or its error.
  Nanos delay{0};                  // Until the next attempt.
};

// Everything is allowed inside, destroying the Client included.
using OnRetry = Function<void(const Retry& retry)>;

}  // namespace spate::http
