// An Error among a transport's results, which are negated errnos otherwise.
#pragma once

#include "spate/error.h"

namespace spate {

constexpr long result_of(Error error) { return -4096 - static_cast<long>(error); }

}  // namespace spate
