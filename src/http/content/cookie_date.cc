#include "http/content/cookie_date.h"

#include <algorithm>
#include <array>

#include "http/codec/syntax.h"

namespace spate::http {

namespace {

bool is_digit_at(std::string_view text, std::size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

bool is_date_delimiter(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == '\t' || (byte >= 0x20 && byte <= 0x2f) || (byte >= 0x3b && byte <= 0x40) ||
         (byte >= 0x5b && byte <= 0x60) || (byte >= 0x7b && byte <= 0x7e);
}

// Returns the number at the front, of `least` to `most` digits and no more; -1 if invalid.
int leading_number(std::string_view text, std::size_t least, std::size_t most) {
  std::size_t digits = 0;
  int value = 0;
  for (; is_digit_at(text, digits); ++digits) {
    if (digits == most) return -1;
    value = value * 10 + (text[digits] - '0');
  }
  return digits >= least ? value : -1;
}

// A time "8:49:37", each part with one or two digits, followed by a non-digit.
struct DayTime {
  int hour = -1;
  int minute = 0;
  int second = 0;
};
DayTime leading_time(std::string_view text) {
  int numbers[3];
  for (int i = 0; i < 3; ++i) {
    if (i > 0 && !text.starts_with(':')) return {};
    if (i > 0) text.remove_prefix(1);
    numbers[i] = leading_number(text, 1, 2);
    if (numbers[i] < 0) return {};
    text.remove_prefix(is_digit_at(text, 1) ? 2 : 1);
  }
  return {numbers[0], numbers[1], numbers[2]};
}

// Returns 1 ... 12; 0 if invalid.
int month_at(std::string_view text) {
  constexpr std::array<std::string_view, 12> kMonthNames = {
      "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"};
  for (std::size_t i = 0; i < kMonthNames.size(); ++i) {
    if (equal_ignoring_case(text.substr(0, 3), kMonthNames[i])) return static_cast<int>(i + 1);
  }
  return 0;
}

// The first token that can be a time is the time, and so on for day, month and year.
struct DatePieces {
  DayTime time;
  int day = -1;
  int month = 0;
  int year = -1;

  void take(std::string_view piece) {
    if (time.hour < 0) {
      time = leading_time(piece);
      if (time.hour >= 0) return;
    }
    if (day < 0) {
      day = leading_number(piece, 1, 2);
      if (day >= 0) return;
    }
    if (month == 0) {
      month = month_at(piece);
      if (month != 0) return;
    }
    if (year < 0) year = leading_number(piece, 2, 4);
  }
};

int full_year(int year) {
  if (year >= 100) return year;
  return year + (year >= 70 ? 1900 : 2000);
}

}  // namespace

std::optional<std::chrono::sys_seconds> parse_cookie_date(std::string_view text) {
  DatePieces pieces;
  while (!text.empty()) {
    const auto end = std::ranges::find_if(text, is_date_delimiter);
    const auto size = static_cast<std::size_t>(end - text.begin());
    if (size > 0) pieces.take(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  const auto& [time, day, month, year] = pieces;
  if (time.hour < 0 || time.hour > 23 || time.minute > 59 || time.second > 59) return {};
  if (day < 0 || month == 0 || year < 0 || full_year(year) < 1601) return {};
  const std::chrono::year_month_day date{std::chrono::year(full_year(year)),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return {};
  return std::chrono::sys_days(date) + std::chrono::hours(time.hour) +
         std::chrono::minutes(time.minute) + std::chrono::seconds(time.second);
}

}  // namespace spate::http
