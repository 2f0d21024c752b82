// Functions for both reading and writing of multipart bodies.
#pragma once

#include <string_view>

namespace spate::http {

// Checks RFC 2046 §5.1.1: 1 to 70 characters of a set, the last not a blank.
bool is_boundary(std::string_view text);

}  // namespace spate::http
