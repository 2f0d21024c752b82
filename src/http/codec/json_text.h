// Text in JSON (RFC 8259 §7).
#pragma once

#include <string>
#include <string_view>

namespace spate::http {

// Appends a string with its quotes. Bytes that are no UTF-8 become U+FFFD, so that the result is
// always JSON; < is escaped, so that it can stand in a page's script.
void append_json_text(std::string& json, std::string_view text);

}  // namespace spate::http
