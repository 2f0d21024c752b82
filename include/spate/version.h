// The version of the library at run time, and the macros of spate_version.h.
//
// Thread: any.
#pragma once

#include <string_view>

#include "spate/export.h"
#include "spate_version.h"

namespace spate {

// Returns the version of the library that the program runs with, such as "0.1.0".
// SPATE_VERSION_STRING is the version of the headers that it was compiled with.
SPATE_EXPORT std::string_view version();

// Returns the version as a number, to compare with SPATE_VERSION: 100 for 0.1.0.
SPATE_EXPORT int version_number();

}  // namespace spate
