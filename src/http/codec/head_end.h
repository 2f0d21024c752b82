// The search for the end of a header section. Scans each byte once, however the bytes arrive, and
// refuses early.
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
  std::size_t size = 0;  // With `whole`: bytes of the header section.
};

inline constexpr std::string_view kCrLf = "\r\n";

// Returns whether the first line exceeds the limit. True is returned once: when the line should
// have ended.
inline bool is_line_too_long(std::string_view text, std::size_t start, std::size_t looked_at,
                             const HeadLimits& limits) {
  const std::size_t room = limits.line + kCrLf.size();
  if (looked_at >= start + room || text.size() < start + room || start + room > limits.head)
    return false;
  return std::memchr(text.data() + start, '\n', room) == nullptr;
}

// Searches the end of a header section that begins at `start`.
template <class Scan>
HeadEnd find_head_end(std::string_view text, std::size_t start, std::size_t looked_at,
                      const HeadLimits& limits) {
  if (is_line_too_long(text, start, looked_at, limits))
    return {Parsed::broken({Status::uri_too_long, "the first line is too long"})};
  const char* const begin = text.data();
  const std::size_t size = std::min(text.size(), limits.head);
  const char* const end = begin + size;
  const char* at = begin + std::min(std::max(start, looked_at), size);
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
