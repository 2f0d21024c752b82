// An Error as a transport's result. Other errors are negated errnos.
#pragma once

#include "spate/error.h"

namespace spate {

constexpr long result_of(Error error) { return -4096 - static_cast<long>(error); }

}  // namespace spate
