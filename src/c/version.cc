// The version.
#include "spate/version.h"
#include "spate.h"

const char* spate_version(void) { return spate::version().data(); }

int spate_version_number(void) { return spate::version_number(); }
