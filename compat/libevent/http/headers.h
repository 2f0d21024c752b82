// Lists of keys and values, as the functions of the header files see them: struct evkeyvalq, which
// belongs to the program and is linked by the macros of <sys/queue.h>.
#pragma once

#include <sys/queue.h>

#include <string_view>

#include "compat/libevent/ascii.h"
#include "compat/libevent/http_api.h"

namespace spate::libevent {

// Whatever the case of the letters. Most texts differ in the first one.
inline bool has_equal_text(const char* one, const char* other) {
  return lower(*one) == lower(*other) && evutil_ascii_strcasecmp(one, other) == 0;
}

// Whether a key or a value can be written as one line. evhttp_add_header() refuses any other.
bool fits_line(std::string_view text);

// evhttp_add_header() of what was not asked that: of queries, whose values may have any character.
int add_header(evkeyvalq& headers, std::string_view key, std::string_view value);

}  // namespace spate::libevent
