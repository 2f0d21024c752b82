// Text in HTML: for pages that a program writes itself, as listings and errors. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "spate/export.h"

namespace spate::http {

// Appends text so that it means itself, between tags and in attributes in quotes of either kind:
// & < > " ' become references. Not for names of tags, attributes without quotes, scripts, styles
// and, as it is, URLs.
SPATE_EXPORT void append_html(std::string& page, std::string_view text);
SPATE_EXPORT std::string html_of(std::string_view text);

}  // namespace spate::http
