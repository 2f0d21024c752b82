// HttpError: what goes wrong in HTTP itself. All other errors are spate's (spate/error.h), those of
// names (net/resolver.h), and errno values.
#pragma once

#include <system_error>
#include <type_traits>

#include "spate/export.h"

namespace spate::http {

// The category "spate.http".
enum class HttpError {
  malformed_response = 1,  // Not of HTTP, ambiguous, a flood, or its head is too long.
  response_truncated = 2,  // The connection or stream ended before the response did.
  body_too_long = 3,       // Longer than CallOptions::max_body.
  too_many_redirects = 4,  // More than CallOptions::max_redirects.
  bad_redirect = 5,        // Location is none that can be followed.
  bad_encoding = 6,        // The body is not of its Content-Encoding.
  proxy_refused = 7,       // The proxy does not connect to the server, or not for us.
  bad_proxy = 8,           // The proxy's answer is malformed.
  not_upgraded = 9,        // The server does not go on with WebSocket.
};

SPATE_EXPORT const std::error_category& http_category();
SPATE_EXPORT std::error_code make_error_code(HttpError error);

}  // namespace spate::http

template <>
struct std::is_error_code_enum<spate::http::HttpError> : std::true_type {};
