// Base64 (RFC 4648 §4), with padding: for credentials.
#pragma once

#include <string>
#include <string_view>

namespace spate::http {

std::string base64(std::string_view text);

}  // namespace spate::http
