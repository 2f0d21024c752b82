// Conversion of an errno to an error_code.
#pragma once

#include <cerrno>
#include <system_error>

namespace spate::http {

inline std::error_code system_error(int number) { return {number, std::system_category()}; }
// Returns the error of a connection that was lost before its end.
inline std::error_code lost() { return system_error(ECONNRESET); }

}  // namespace spate::http
