#include <string>

#include "base/immortal.h"
#include "spate/http/error.h"

namespace spate::http {

namespace {

class HttpCategory final : public std::error_category {
 public:
  constexpr HttpCategory() = default;
  const char* name() const noexcept override { return "spate.http"; }
  std::string message(int value) const override {
    switch (static_cast<HttpError>(value)) {
      case HttpError::malformed_response:
        return "the server's response is malformed";
      case HttpError::response_truncated:
        return "the connection ended before the response did";
      case HttpError::body_too_long:
        return "the response is too long";
      case HttpError::too_many_redirects:
        return "there were too many redirects";
      case HttpError::bad_redirect:
        return "the response redirects to an unsupported location";
      case HttpError::bad_encoding:
        return "the response cannot be decompressed";
      case HttpError::proxy_refused:
        return "the proxy has refused the connection";
      case HttpError::bad_proxy:
        return "the proxy's response is malformed";
      case HttpError::not_upgraded:
        return "the server refused the WebSocket handshake";
      case HttpError::exception:
        return "an exception left the handler";
      case HttpError::invalid_url:
        return "not a URL: give a scheme and a host, as in http://example.org/";
      case HttpError::unknown_scheme:
        return "the URL's scheme is not http or https, or, for a WebSocket, ws or wss";
      case HttpError::https_without_tls:
        return "https needs a TlsContext: set ClientOptions::tls to TlsContext::client()";
      case HttpError::unhealthy_status:
        return "the status of the response to a health check is not a healthy one";
      case HttpError::not_event_stream:
        return "the response is not an event stream";
    }
    return "unknown error";
  }
  std::error_condition default_error_condition(int value) const noexcept override {
    switch (static_cast<HttpError>(value)) {
      case HttpError::invalid_url:
        return std::errc::invalid_argument;
      case HttpError::unknown_scheme:
        return std::errc::protocol_not_supported;
      case HttpError::https_without_tls:
        return std::errc::not_supported;
      default:
        return std::error_condition(value, *this);
    }
  }
};

constinit Immortal<HttpCategory> category_of_http;

}  // namespace

const std::error_category& http_category() { return category_of_http.object; }

std::error_code make_error_code(HttpError error) {
  return {static_cast<int>(error), http_category()};
}

}  // namespace spate::http
