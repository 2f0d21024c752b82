// What both sides of multipart bodies need.
#pragma once

#include <string_view>

namespace spate::http {

// RFC 2046 §5.1.1: 1 to 70 characters of a set, the last not a blank.
bool is_boundary(std::string_view text);

}  // namespace spate::http
