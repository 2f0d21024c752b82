// The dates of cookies, which user agents accept in almost any format (RFC 6265 §5.1.1).
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace spate::http {

std::optional<std::chrono::sys_seconds> parse_cookie_date(std::string_view text);

}  // namespace spate::http
