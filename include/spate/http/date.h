// Dates in fields (RFC 9110 §5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT".
//
// No function here reads a clock: the time is an argument. Any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "spate/export.h"

namespace spate::http {

// Bytes of a formatted date.
inline constexpr std::size_t kDateSize = 29;

// Formats a date, and returns a view of it. Times before the year 0 and after 9999 are clamped.
SPATE_EXPORT std::string_view format_date(std::chrono::sys_seconds time,
                                          std::span<char, kDateSize> target);

// Parses a date in any of the three formats: the one above, "Sunday, 06-Nov-94 08:49:37 GMT" and
// "Sun Nov 6 08:49:37 1994". A two-digit year is at most 50 years after `now`. Returns nullopt if
// it is not a date, or a day that does not exist. The day of the week must be valid but is not
// compared with the date.
SPATE_EXPORT std::optional<std::chrono::sys_seconds> parse_date(std::string_view text,
                                                                std::chrono::sys_seconds now);

// The Date field of responses, formatted again only when the second has changed. Each loop has one.
class SPATE_EXPORT DateText {
 public:
  // Returns the text; valid until the next call.
  std::string_view at(std::chrono::sys_seconds now);

 private:
  std::optional<std::chrono::sys_seconds> time_;
  char text_[kDateSize];
};

}  // namespace spate::http
