#include "spate/http/date.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/random.h"

namespace spate::http {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr sys_seconds kDateExample{seconds(784111777)};
const sys_seconds kToday = std::chrono::sys_days(std::chrono::year(2026) / 6 / 1);

std::string date_text(sys_seconds time) {
  char text[kDateSize];
  return std::string(format_date(time, text));
}

TEST(Date, FormatsAsRfcSpecifies) {
  EXPECT_EQ(date_text(kDateExample), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date_text(sys_seconds()), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(date_text(sys_seconds(seconds(-1))), "Wed, 31 Dec 1969 23:59:59 GMT");
  EXPECT_EQ(date_text(sys_seconds(seconds(951782400))), "Tue, 29 Feb 2000 00:00:00 GMT");
}

TEST(Date, FormatsYearWithFourDigitsForAnyTime) {
  EXPECT_EQ(date_text(sys_seconds::max()), "Fri, 31 Dec 9999 23:59:59 GMT");
  EXPECT_EQ(date_text(sys_seconds::min()), "Sat, 01 Jan 0000 00:00:00 GMT");
}

TEST(Date, ParsesAllThreeForms) {
  EXPECT_EQ(parse_date("Sun, 06 Nov 1994 08:49:37 GMT", kToday), kDateExample);
  EXPECT_EQ(parse_date("Sunday, 06-Nov-94 08:49:37 GMT", kToday), kDateExample);
  EXPECT_EQ(parse_date("Sun Nov  6 08:49:37 1994", kToday), kDateExample);
  EXPECT_EQ(parse_date("Wed Nov 16 08:49:37 1994", kToday), kDateExample + std::chrono::days(10));
}

TEST(Date, PlacesTwoDigitYearAtMostFiftyYearsAhead) {
  const auto year_of = [](std::string_view text) {
    const auto time = parse_date(text, kToday);
    return static_cast<int>(
        std::chrono::year_month_day(std::chrono::floor<std::chrono::days>(*time)).year());
  };
  EXPECT_EQ(year_of("Monday, 01-Jan-76 00:00:00 GMT"), 2076);
  EXPECT_EQ(year_of("Monday, 01-Jan-77 00:00:00 GMT"), 1977);
  EXPECT_EQ(year_of("Monday, 01-Jan-00 00:00:00 GMT"), 2000);
  EXPECT_EQ(year_of("Monday, 01-Jan-99 00:00:00 GMT"), 1999);
}

TEST(Date, AcceptsLeapSecond) {
  EXPECT_EQ(date_text(*parse_date("Sat, 31 Dec 2016 23:59:60 GMT", kToday)),
            "Sun, 01 Jan 2017 00:00:00 GMT");
}

TEST(Date, IsInvalidInAnyOtherForm) {
  for (const char* text : {"",
                           "Sun",
                           "Sun,",
                           "Sun, ",
                           "0",
                           "784111777",
                           "Sun, 6 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 94 08:49:37 GMT",
                           "Sun, 06 nov 1994 08:49:37 GMT",
                           "sun, 06 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 08:49:37 UTC",
                           "Sun, 06 Nov 1994 08:49:37",
                           "Sun, 06 Nov 1994 08:49 GMT",
                           "Sun, 06 Nov 1994 08:49:37 GMT ",
                           " Sun, 06 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994  8:49:37 GMT",
                           "Sun, 06 Nov 1994 24:00:00 GMT",
                           "Sun, 06 Nov 1994 08:60:37 GMT",
                           "Sun, 06 Nov 1994 08:49:61 GMT",
                           "Sun, 31 Nov 1994 08:49:37 GMT",
                           "Sun, 29 Feb 1900 08:49:37 GMT",
                           "Sun, 00 Nov 1994 08:49:37 GMT",
                           "Sun, 06 anF 1994 08:49:37 GMT",
                           "Sun, 06 Nov -994 08:49:37 GMT",
                           "Son, 06 Nov 1994 08:49:37 GMT",
                           "Sunday, 06 Nov 1994 08:49:37 GMT",
                           "Sun, 06-Nov-94 08:49:37 GMT",
                           "Sunday, 06-Nov-1994 08:49:37 GMT",
                           "Sunday Nov  6 08:49:37 1994",
                           "Sun Nov 6 08:49:37 1994",
                           "Sun Nov  6 08:49:37 1994 GMT",
                           "Sun Nov  6 08:49:37 94",
                           "Sun, 06 Nov 1994 +8:49:37 GMT",
                           "Su, 06 Nov 1994 08:49:37 GMT"})
    EXPECT_EQ(parse_date(text, kToday), std::nullopt) << text;
  EXPECT_EQ(parse_date(std::string_view("Sun, 06 Nov 1994 08:49:37 GMT\0", 30), kToday),
            std::nullopt);
}

TEST(Date, RoundTripsAnyTime) {
  testing::Random random(4);
  for (int i = 0; i < 20000; ++i) {
    const sys_seconds time{seconds(random.span(253402300800))};
    ASSERT_EQ(parse_date(date_text(time), kToday), time) << date_text(time);
  }
}

TEST(DateTextTest, TextIsUpdatedWhenSecondChanges) {
  DateText date;
  const std::string_view first = date.at(kDateExample);
  EXPECT_EQ(first, "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date.at(kDateExample).data(), first.data());
  EXPECT_EQ(date.at(kDateExample), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date.at(kDateExample + seconds(1)), "Sun, 06 Nov 1994 08:49:38 GMT");
  EXPECT_EQ(date.at(kDateExample - seconds(1)), "Sun, 06 Nov 1994 08:49:36 GMT");
}

}  // namespace
}  // namespace spate::http
