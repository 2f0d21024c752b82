// An error as the result of a function that otherwise returns a number: a negated errno, or an
// Error below all of these.
#pragma once

#include <system_error>

#include "spate/error.h"
#include "sys/descriptor.h"

namespace spate {

constexpr long result_of(Error error) { return -4096 - static_cast<long>(error); }

inline long result_of(const std::error_code& error) {
  return error.category() == error_category() ? -4096L - error.value() : -long{error.value()};
}

// Returns the error of such a result.
inline std::error_code error_of(long result) {
  return result <= result_of(Error{}) ? make_error_code(static_cast<Error>(-4096 - result))
                                      : sys::error_code(result);
}

}  // namespace spate
