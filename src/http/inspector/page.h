// The page, generated from page/page.html, page.css and page.js by cmake/inspector_page.cmake.
#pragma once

#include <string_view>

namespace spate::http {

extern const std::string_view kInspectorPage;
// Its Content-Security-Policy: allows only its own style and script, by their hashes, and requests
// to its own server.
extern const std::string_view kInspectorPagePolicy;

}  // namespace spate::http
