// Escaping of text in HTML, for pages that a program generates, such as listings and errors. Any
// thread.
#pragma once

#include <string>
#include <string_view>

#include "spate/export.h"

namespace spate::http {

// Appends text with & < > " ' as character references, for use between tags and in quoted
// attributes. Not for names of tags, unquoted attributes, scripts, styles and complete URLs.
SPATE_EXPORT void append_html(std::string& page, std::string_view text);
SPATE_EXPORT std::string html_of(std::string_view text);

}  // namespace spate::http
