#include "spate/http/date.h"

#include <algorithm>
#include <array>

namespace spate::http {

namespace {

using std::chrono::sys_days;
using std::chrono::sys_seconds;

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";

constexpr sys_seconds kFirstDate = sys_days(std::chrono::year(0) / 1 / 1);
constexpr sys_seconds kLastDate =
    sys_days(std::chrono::year(10000) / 1 / 1) - std::chrono::seconds(1);

char* put_date(char* at, std::string_view text) { return std::ranges::copy(text, at).out; }
// Writes the last `digits` digits of a number.
char* put_date(char* at, int number, int digits) {
  for (int i = digits - 1; i >= 0; --i, number /= 10) at[i] = static_cast<char>('0' + number % 10);
  return at + digits;
}

// Parses a date from left to right. After a mismatch it stays invalid.
class DateReader {
 public:
  explicit DateReader(std::string_view text) : rest_(text) {}

  bool is_done() const { return !is_bad_ && rest_.empty(); }
  void expect(std::string_view text) {
    is_bad_ = is_bad_ || !rest_.starts_with(text);
    rest_.remove_prefix(std::min(text.size(), rest_.size()));
  }
  int number(std::size_t digits) {
    int value = 0;
    for (const char c : take(digits)) {
      is_bad_ = is_bad_ || c < '0' || c > '9';
      value = value * 10 + (c - '0');
    }
    return value;
  }
  // Parses the day of asctime(), which is padded with a blank.
  int padded_number() {
    if (rest_.starts_with(' ')) return expect(" "), number(1);
    return number(2);
  }
  unsigned month() {
    const std::size_t at = kMonths.find(take(3));
    is_bad_ = is_bad_ || at == std::string_view::npos || at % 3 != 0;
    return static_cast<unsigned>(at / 3 + 1);
  }

 private:
  std::string_view take(std::size_t count) {
    is_bad_ = is_bad_ || rest_.size() < count;
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view rest_;
  bool is_bad_ = false;
};

struct DateParts {
  int year = 0;
  unsigned month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;  // Up to 60, for leap seconds.
};

void read_time(DateReader& reader, DateParts& parts) {
  parts.hour = reader.number(2);
  reader.expect(":");
  parts.minute = reader.number(2);
  reader.expect(":");
  parts.second = reader.number(2);
}

DateParts read_fixed(DateReader& reader) {  // ", 06 Nov 1994 08:49:37 GMT"
  DateParts parts;
  reader.expect(", ");
  parts.day = reader.number(2);
  reader.expect(" ");
  parts.month = reader.month();
  reader.expect(" ");
  parts.year = reader.number(4);
  reader.expect(" ");
  read_time(reader, parts);
  reader.expect(" GMT");
  return parts;
}

DateParts read_rfc850(DateReader& reader) {  // ", 06-Nov-94 08:49:37 GMT"
  DateParts parts;
  reader.expect(", ");
  parts.day = reader.number(2);
  reader.expect("-");
  parts.month = reader.month();
  reader.expect("-");
  parts.year = reader.number(2);
  reader.expect(" ");
  read_time(reader, parts);
  reader.expect(" GMT");
  return parts;
}

DateParts read_asctime(DateReader& reader) {  // " Nov  6 08:49:37 1994"
  DateParts parts;
  reader.expect(" ");
  parts.month = reader.month();
  reader.expect(" ");
  parts.day = reader.padded_number();
  reader.expect(" ");
  read_time(reader, parts);
  reader.expect(" ");
  parts.year = reader.number(4);
  return parts;
}

std::optional<sys_seconds> time_of(const DateParts& parts) {
  const std::chrono::year_month_day date{std::chrono::year(parts.year),
                                         std::chrono::month(parts.month),
                                         std::chrono::day(static_cast<unsigned>(parts.day))};
  if (!date.ok() || parts.hour > 23 || parts.minute > 59 || parts.second > 60) return {};
  return sys_days(date) + std::chrono::hours(parts.hour) + std::chrono::minutes(parts.minute) +
         std::chrono::seconds(parts.second);
}

int year_of(sys_seconds time) {
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(time)};
  return static_cast<int>(date.year());
}

// Completes a two-digit year to the latest year that is at most 50 years from now.
int whole_year(int digits, int now) {
  const int last = now + 50;
  const int year = last - last % 100 + digits;
  return year > last ? year - 100 : year;
}

bool is_day(std::string_view name, std::size_t size) {
  return std::ranges::any_of(kDays,
                             [&](std::string_view day) { return day.substr(0, size) == name; });
}

}  // namespace

std::string_view format_date(sys_seconds time, std::span<char, kDateSize> target) {
  time = std::clamp(time, kFirstDate, kLastDate);
  const sys_days midnight = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{midnight};
  const std::chrono::weekday day{midnight};
  const int second = static_cast<int>((time - midnight).count());
  const unsigned month = static_cast<unsigned>(date.month());
  char* at = put_date(target.data(), kDays[day.c_encoding()].substr(0, 3));
  at = put_date(put_date(at, ", "), static_cast<int>(static_cast<unsigned>(date.day())), 2);
  at = put_date(put_date(put_date(at, " "), kMonths.substr(month * 3 - 3, 3)), " ");
  at = put_date(put_date(at, static_cast<int>(date.year()), 4), " ");
  at = put_date(put_date(at, second / 3600, 2), ":");
  at = put_date(put_date(at, second / 60 % 60, 2), ":");
  put_date(put_date(at, second % 60, 2), " GMT");
  return {target.data(), target.size()};
}

std::optional<sys_seconds> parse_date(std::string_view text, sys_seconds now) {
  const std::string_view day = text.substr(0, text.find_first_of(", "));
  DateReader reader(text.substr(day.size()));
  const bool is_asctime = text.substr(day.size()).starts_with(' ');
  const bool is_short = day.size() == 3;
  if (!is_day(day, is_short ? 3 : std::string_view::npos)) return {};
  if (!is_short && is_asctime) return {};
  DateParts parts = !is_short    ? read_rfc850(reader)
                    : is_asctime ? read_asctime(reader)
                                 : read_fixed(reader);
  if (!reader.is_done()) return {};
  if (!is_short) parts.year = whole_year(parts.year, year_of(now));
  return time_of(parts);
}

std::string_view DateText::at(sys_seconds now) {
  if (now == time_) return {text_, kDateSize};
  time_ = now;
  return format_date(now, text_);
}

}  // namespace spate::http
