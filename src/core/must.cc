// The one place that prints and ends the program, because it was asked to.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "spate/error.h"

namespace spate {

void give_up(std::error_code error, std::source_location where) {
  const char* slash = std::strrchr(where.file_name(), '/');
  std::fprintf(stderr, "%s:%u: %s\n", slash != nullptr ? slash + 1 : where.file_name(),
               static_cast<unsigned>(where.line()), error.message().c_str());
  std::exit(1);
}

}  // namespace spate
