// An errno as what functions return.
#pragma once

#include <cerrno>
#include <system_error>

namespace spate::http {

inline std::error_code system_error(int number) { return {number, std::system_category()}; }
// Of who had still something to say, or to hear.
inline std::error_code lost() { return system_error(ECONNRESET); }

}  // namespace spate::http
