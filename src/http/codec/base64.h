// Base64 (RFC 4648 §4), with padding: for credentials.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spate::http {

std::string base64(std::string_view text);
// Returns nullopt unless `text` is base64() of something: complete padding, and no unused bits.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace spate::http
