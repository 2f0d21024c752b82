// Strings in JSON (RFC 8259 §7).
#pragma once

#include <string>
#include <string_view>

namespace spate::http {

// Appends a string with its quotes. Invalid UTF-8 becomes U+FFFD, so that the result is always
// valid JSON. '<' is escaped, so that the result can be embedded in a page's script.
void append_json_text(std::string& json, std::string_view text);

}  // namespace spate::http
