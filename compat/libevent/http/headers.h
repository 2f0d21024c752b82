// Lists of keys and values, as the functions of the headers use them: struct evkeyvalq, which
// belongs to the program and is linked by the macros of <sys/queue.h>.
#pragma once

#include <sys/queue.h>

#include <string_view>

#include "compat/libevent/ascii.h"
#include "compat/libevent/http_api.h"

namespace spate::libevent {

// Compares without case. Most texts differ in the first letter.
[[nodiscard]] inline bool has_equal_text(const char* one, const char* other) {
  return lower(*one) == lower(*other) && evutil_ascii_strcasecmp(one, other) == 0;
}

// Returns true if a key or a value can be written on one line. evhttp_add_header() rejects any
// other.
[[nodiscard]] bool fits_line(std::string_view text);

// As evhttp_add_header(), without its checks: for queries, whose values may have any character.
[[nodiscard]] int add_header(evkeyvalq& headers, std::string_view key, std::string_view value);

}  // namespace spate::libevent
