// HttpError: the errors of HTTP itself. All others are spate's (spate/error.h), those of name
// resolution (net/resolver.h), and errno values.
// Threads: any; the values are constants or plain copies.
#pragma once

#include <system_error>
#include <type_traits>

#include "spate/export.h"

namespace spate::http {

// In the category "spate.http".
enum class HttpError {
  malformed_response = 1,  // Not HTTP, ambiguous, a flood of frames, or a header section above its
                           // limit.
  response_truncated = 2,  // The connection or stream ended before the response did.
  body_too_long = 3,       // Longer than CallOptions::max_body.
  too_many_redirects = 4,  // More than CallOptions::max_redirects.
  bad_redirect = 5,        // Location cannot be followed.
  bad_encoding = 6,        // The body does not match its Content-Encoding.
  proxy_refused = 7,       // The proxy refused the tunnel, or the credentials.
  bad_proxy = 8,           // The proxy's response is malformed.
  not_upgraded = 9,        // The server did not switch to WebSocket.
  exception = 10,          // An exception left a handler of the server.
  // A Client was given no URL with a scheme and a host (also equal to std::errc::invalid_argument).
  invalid_url = 11,
  // The scheme is not http or https, or, for a WebSocket, not ws or wss (protocol_not_supported).
  unknown_scheme = 12,
  // https or wss, and ClientOptions::tls is empty (not_supported).
  https_without_tls = 13,
  unhealthy_status = 14,  // A response to a HealthCheck had none of its statuses.
  not_event_stream = 15,  // An EventSource got another status or content type.
};

SPATE_EXPORT const std::error_category& http_category();
SPATE_EXPORT std::error_code make_error_code(HttpError error);

}  // namespace spate::http

template <>
struct std::is_error_code_enum<spate::http::HttpError> : std::true_type {};
