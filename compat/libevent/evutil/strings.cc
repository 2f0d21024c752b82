// Strings and numbers, independent of the locale.
//
// Semantics: event2/util.h; probed: the results, and a size of 0.
#include <event2/util.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "compat/libevent/ascii.h"

using spate::libevent::lower;

namespace {

// Bytes above 127 sort before ASCII: they are compared as signed, as in libevent.
int compare(signed char a, signed char b) { return a < b ? -1 : static_cast<int>(a > b); }

}  // namespace

int evutil_snprintf(char* text, size_t size, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const int length = evutil_vsnprintf(text, size, format, arguments);
  va_end(arguments);
  return length;
}

// Unlike C's, returns 0 for a size of 0, and always terminates the text.
int evutil_vsnprintf(char* text, size_t size, const char* format, std::va_list arguments) {
  if (size == 0) {
    return 0;
  }
  const int length = std::vsnprintf(text, size, format, arguments);
  text[size - 1] = '\0';
  return length;
}

ev_int64_t evutil_strtoll(const char* text, char** end, int base) {
  return std::strtoll(text, end, base);
}

int evutil_ascii_strcasecmp(const char* a, const char* b) {
  return evutil_ascii_strncasecmp(a, b, SIZE_MAX);
}

int evutil_ascii_strncasecmp(const char* a, const char* b, size_t size) {
  for (; size > 0; --size, ++a, ++b) {
    const int order =
        compare(static_cast<signed char>(lower(*a)), static_cast<signed char>(lower(*b)));
    if (order != 0 || *a == '\0') {
      return order;
    }
  }
  return 0;
}
