#include "spate/version.h"

namespace spate {

std::string_view version() { return SPATE_VERSION_STRING; }

int version_number() { return SPATE_VERSION; }

}  // namespace spate
