#include "spate/assert.h"

#include <cstdio>
#include <cstring>

#include "sys/descriptor.h"

namespace spate {

void rule_broken(std::source_location where, const char* rule, const char* advice) noexcept {
  const char* slash = std::strrchr(where.file_name(), '/');
  char text[800];
  const int length = std::snprintf(
      text, sizeof(text), "spate: %s: %s%s(%s, %s:%u)\n", where.function_name(),
      advice != nullptr ? advice : "", advice != nullptr ? " " : "broken rule ", rule,
      slash != nullptr ? slash + 1 : where.file_name(), static_cast<unsigned>(where.line()));
  const auto size = static_cast<std::size_t>(length);
  sys::write(STDERR_FILENO, text, size < sizeof(text) ? size : sizeof(text) - 1);
  __builtin_trap();
}

}  // namespace spate
