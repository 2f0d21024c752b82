// Where a head ends. Looks at each byte once, however they arrive, and refuses early.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "http/codec/characters.h"
#include "http/codec/head.h"

namespace spate::http {

struct HeadEnd {
  Parsed found;
  std::size_t size = 0;  // Whole: of the head.
};

inline constexpr std::string_view kCrLf = "\r\n";

// The first line is longer than allowed. Asked once: when it should have ended.
inline bool is_line_too_long(std::string_view text, std::size_t start, std::size_t looked_at,
                             const HeadLimits& limits) {
  const std::size_t room = limits.line + kCrLf.size();
  if (looked_at >= start + room || text.size() < start + room || start + room > limits.head)
    return false;
  return std::memchr(text.data() + start, '\n', room) == nullptr;
}

// The head begins at `start`.
template <class Scan>
HeadEnd find_head_end(std::string_view text, std::size_t start, std::size_t looked_at,
                      const HeadLimits& limits) {
  if (is_line_too_long(text, start, looked_at, limits))
    return {Parsed::broken({Status::uri_too_long, "the first line is too long"})};
  const char* const begin = text.data();
  const char* const end = begin + std::min(text.size(), limits.head);
  const char* at = begin + std::max(start, looked_at);
  while ((at = Scan::line_feed(begin, at, end)) != end) {
    if (at - begin < 2 || at[-1] != '\r')
      return {Parsed::broken(bad_request("a line does not end with CR LF"))};
    ++at;
    if (at[-3] == '\n') return {Parsed::whole(), static_cast<std::size_t>(at - begin)};
  }
  if (text.size() >= limits.head)
    return {Parsed::broken({Status::request_header_fields_too_large, "the head is too long"})};
  return {Parsed::unfinished(text.size())};
}

}  // namespace spate::http
