// The userinfo of a URL ("ada:secret@"), and credentials for Basic authentication.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "spate/error.h"
#include "spate/http/call.h"

namespace spate::http {

struct UrlUserinfo {
  std::string url;  // Without the userinfo.
  std::optional<Credentials> credentials{};
};
// Removes the userinfo, and decodes it. Errors: EINVAL for an invalid escape.
Result<UrlUserinfo> take_userinfo(std::string_view url);

bool is_valid(const Credentials& credentials);
std::string basic_credentials(const Credentials& credentials);

}  // namespace spate::http
