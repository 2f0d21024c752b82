// What a call that cannot begin, or is cut off, ends with.
#pragma once

#include <system_error>

namespace spate::http {

inline std::error_code system_error(int number) { return {number, std::system_category()}; }

}  // namespace spate::http
