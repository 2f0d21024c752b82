// An errno as what functions return.
#pragma once

#include <system_error>

namespace spate::http {

inline std::error_code system_error(int number) { return {number, std::system_category()}; }

}  // namespace spate::http
