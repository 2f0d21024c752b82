// The only code that prints and ends the program, at the caller's request.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "spate/error.h"

namespace spate {

void give_up(std::error_code error, std::source_location where) {
  give_up(std::string_view(error.message()), where);
}

void give_up(std::string_view error, std::source_location where) {
  const char* slash = std::strrchr(where.file_name(), '/');
  std::fprintf(stderr, "%s:%u: %.*s\n", slash != nullptr ? slash + 1 : where.file_name(),
               static_cast<unsigned>(where.line()), static_cast<int>(error.size()), error.data());
  std::exit(1);
}

}  // namespace spate
