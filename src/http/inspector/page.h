// The page, made of page/page.html, page.css and page.js by cmake/inspector_page.cmake.
#pragma once

#include <string_view>

namespace spate::http {

extern const std::string_view kInspectorPage;
// Its Content-Security-Policy: nothing but its own style and script, by their hashes, and requests
// to where it came from.
extern const std::string_view kInspectorPagePolicy;

}  // namespace spate::http
