// Converts an errno to a std::error_code.
#pragma once

#include <system_error>

namespace spate::testing {

inline std::error_code system_error(int number) { return {number, std::system_category()}; }

}  // namespace spate::testing
