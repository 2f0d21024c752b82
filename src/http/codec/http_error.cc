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
        return "the server's answer is malformed";
      case HttpError::response_truncated:
        return "the connection ended before the answer did";
      case HttpError::body_too_long:
        return "the answer is too long";
      case HttpError::too_many_redirects:
        return "there were too many redirects";
      case HttpError::bad_redirect:
        return "the answer redirects to where nobody can follow";
      case HttpError::bad_encoding:
        return "the answer cannot be decompressed";
      case HttpError::proxy_refused:
        return "the proxy has refused the connection";
      case HttpError::bad_proxy:
        return "the proxy's answer is malformed";
      case HttpError::not_upgraded:
        return "the server does not go on with WebSocket";
    }
    return "unknown error";
  }
};

constinit Immortal<HttpCategory> category_of_http;

}  // namespace

const std::error_category& http_category() { return category_of_http.object; }

std::error_code make_error_code(HttpError error) {
  return {static_cast<int>(error), http_category()};
}

}  // namespace spate::http
