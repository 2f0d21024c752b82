// Dates as fields carry them (RFC 9110 §5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT".
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

// Bytes of a date that is written.
inline constexpr std::size_t kDateSize = 29;

// Writes a date, and returns a view of it. Times before the year 0 and after 9999 are written as
// the first and the last of them.
SPATE_EXPORT std::string_view format_date(std::chrono::sys_seconds time,
                                          std::span<char, kDateSize> target);

// All three forms: that above, "Sunday, 06-Nov-94 08:49:37 GMT" and "Sun Nov  6 08:49:37 1994". A
// year of two digits is the one that is at most 50 years after `now`. None if it is no date, or a
// day that does not exist; the day of the week only has to be one.
SPATE_EXPORT std::optional<std::chrono::sys_seconds> parse_date(std::string_view text,
                                                                std::chrono::sys_seconds now);

// The Date of answers, formatted again only when the second has changed. One a loop.
class SPATE_EXPORT DateText {
 public:
  // Valid until the next call.
  std::string_view at(std::chrono::sys_seconds now);

 private:
  std::optional<std::chrono::sys_seconds> time_;
  char text_[kDateSize];
};

}  // namespace spate::http
