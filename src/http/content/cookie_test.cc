#include "spate/http/cookie.h"

#include <gtest/gtest.h>

#include <utility>

#include "http/content/cookie_date.h"
#include "tests/support/random.h"

namespace spate::http {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;
using CookiePairs = std::vector<std::pair<std::string, std::string>>;

constexpr sys_seconds kCookieTime{seconds(784111777)};

CookiePairs cookies_of(std::string_view field) {
  CookiePairs pairs;
  for (Cookies cookies(field); cookies.next();) pairs.emplace_back(cookies.name(), cookies.value());
  return pairs;
}

TEST(CookiesTest, CookieFieldIsSplitIntoPairs) {
  EXPECT_EQ(cookies_of("a=1; b=2"), (CookiePairs{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(cookies_of("a=1;b=2=3;a="), (CookiePairs{{"a", "1"}, {"b", "2=3"}, {"a", ""}}));
  EXPECT_EQ(cookies_of(" a = \"x y\" ;\tb=2 ;"), (CookiePairs{{"a", "\"x y\""}, {"b", "2"}}));
  EXPECT_EQ(cookies_of("a;=b; ;;c=d"), (CookiePairs{{"c", "d"}}));
  EXPECT_EQ(cookies_of(""), CookiePairs());
  EXPECT_EQ(cookie_value("a=1; A=2; a=3", "a"), "1");
  EXPECT_EQ(cookie_value("a=1; A=2", "A"), "2");
  EXPECT_EQ(cookie_value("ab=1", "a"), std::nullopt);
}

std::string set_cookie_text(const SetCookie& cookie) {
  const auto text = format_set_cookie(cookie);
  return text ? *text : text.error().message();
}

TEST(SetCookieTest, AttributesAreWritten) {
  EXPECT_EQ(set_cookie_text({.name = "a"}), "a=");
  EXPECT_EQ(
      set_cookie_text({.name = "a",
                       .value = "b=c",
                       .domain = ".h.test",
                       .path = "/x",
                       .expires = kCookieTime,
                       .max_age = seconds(-1),
                       .is_secure = true,
                       .is_http_only = true,
                       .same_site = SameSite::none}),
      "a=b=c; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Max-Age=-1; Domain=h.test; Path=/x; Secure; "
      "HttpOnly; SameSite=None");
  EXPECT_EQ(set_cookie_text({.name = "a", .value = "\"b\"", .same_site = SameSite::lax}),
            "a=\"b\"; SameSite=Lax");
  EXPECT_EQ(
      set_cookie_text(
          {.name = "__Host-a", .path = "/", .is_secure = true, .same_site = SameSite::strict}),
      "__Host-a=; Path=/; Secure; SameSite=Strict");
}

TEST(SetCookieTest, DelimitersInNamesAndValuesAreRefused) {
  const std::string invalid = std::make_error_code(std::errc::invalid_argument).message();
  for (const char* bad : {"a\r\nSet-Cookie: b=c", "a;b", "a b", "a,b", "a\"b", "a\\b", "a\nb",
                          "a\x7f", "\xc3\xa4", "a\tb", "\"", "\"a"}) {
    EXPECT_EQ(set_cookie_text({.name = "n", .value = bad}), invalid) << bad;
    EXPECT_EQ(set_cookie_text({.name = bad}), invalid) << bad;
  }
  for (const char* bad : {"a", "/a;b", "/a\r\nb", "/a\x7f"})
    EXPECT_EQ(set_cookie_text({.name = "n", .path = bad}), invalid) << bad;
  for (const char* bad : {"a b", "a;b", "a\r\nb", ".", "..h.test", "h..test", "h:80", "h/", "u@h"})
    EXPECT_EQ(set_cookie_text({.name = "n", .domain = bad}), invalid) << bad;
  EXPECT_EQ(set_cookie_text({.name = ""}), invalid);
  EXPECT_EQ(set_cookie_text({.name = "a=b"}), invalid);
}

TEST(SetCookieTest, CookieThatBrowsersRejectIsNotWritten) {
  const auto is_made = [](const SetCookie& cookie) {
    return format_set_cookie(cookie).has_value();
  };
  EXPECT_FALSE(is_made({.name = "a", .same_site = SameSite::none}));
  EXPECT_FALSE(is_made({.name = "__Secure-a"}));
  EXPECT_TRUE(is_made({.name = "__Secure-a", .is_secure = true}));
  EXPECT_FALSE(is_made({.name = "__Host-a", .path = "/"}));
  EXPECT_FALSE(is_made({.name = "__Host-a", .is_secure = true}));
  EXPECT_FALSE(is_made({.name = "__Host-a", .domain = "h.test", .path = "/", .is_secure = true}));
}

TEST(SetCookieTest, HasLimits) {
  const auto error_of = [](const SetCookie& cookie) {
    const auto text = format_set_cookie(cookie);
    return text ? std::error_code() : text.error();
  };
  const std::string value(kMostCookie - 1, 'v');
  EXPECT_FALSE(error_of({.name = "n", .value = value}));
  EXPECT_EQ(error_of({.name = "nn", .value = value}), std::errc::message_size);
  const std::string path = "/" + std::string(kMostCookieAttribute, 'p');
  EXPECT_EQ(error_of({.name = "n", .path = path}), std::errc::message_size);
  EXPECT_FALSE(error_of(
      {.name = "n", .path = path.substr(1).insert(0, "/").substr(0, kMostCookieAttribute)}));
  EXPECT_FALSE(parse_set_cookie("nn=" + value));
  EXPECT_TRUE(parse_set_cookie("n=" + value));
  EXPECT_EQ(parse_set_cookie("n=v; path=" + path)->path, "");
}

TEST(SetCookieTest, ParsingFollowsUserAgentRules) {
  const auto cookie = parse_set_cookie(
      " a = b c ; eXpires=Sun, 06-Nov-1994 08:49:37 GMT; max-age=60;domain=.H.test; Path=/x; "
      "SECURE; httponly=1; samesite=STRICT; Priority=High; ;=");
  ASSERT_TRUE(cookie);
  EXPECT_EQ(cookie->name, "a");
  EXPECT_EQ(cookie->value, "b c");
  EXPECT_EQ(cookie->expires, kCookieTime);
  EXPECT_EQ(cookie->max_age, seconds(60));
  EXPECT_EQ(cookie->domain, "H.test");
  EXPECT_EQ(cookie->path, "/x");
  EXPECT_TRUE(cookie->is_secure && cookie->is_http_only);
  EXPECT_EQ(cookie->same_site, SameSite::strict);
}

TEST(SetCookieTest, IgnoresInvalidAttributes) {
  const auto cookie =
      parse_set_cookie("a=b; Max-Age=60; Max-Age=1x; Expires=soon; Path=x; SameSite=x");
  EXPECT_EQ(cookie->max_age, seconds(60));
  EXPECT_EQ(cookie->expires, std::nullopt);
  EXPECT_EQ(cookie->path, "");
  EXPECT_EQ(cookie->same_site, SameSite::unset);
  EXPECT_EQ(parse_set_cookie("a=b; Path=/x; Path=/y")->path, "/y");
  EXPECT_EQ(parse_set_cookie("a=b; Max-Age=99999999999999999999")->max_age, seconds::max());
  EXPECT_EQ(parse_set_cookie("a=b; Max-Age=-5")->max_age, seconds(0));
}

TEST(SetCookieTest, CookieWithoutNameOrWithControlsIsRefused) {
  for (const char* field :
       {"", "a", "=b", "; a=b", " = b", "a=b\r\n", "a=b; path=/\x01", "a\x7f=b"})
    EXPECT_FALSE(parse_set_cookie(field)) << field;
}

TEST(SetCookieTest, CookieRoundTrips) {
  testing::Random random(6);
  for (int i = 0; i < 5000; ++i) {
    SetCookie cookie{.name = "name",
                     .value = std::string_view("value=!#").substr(random.below(8)),
                     .domain = random.one_in(2) ? "h.test" : "",
                     .path = random.one_in(2) ? "/a b" : "",
                     .is_secure = random.one_in(2),
                     .is_http_only = random.one_in(2),
                     .same_site = static_cast<SameSite>(random.below(4))};
    if (random.one_in(2)) cookie.expires = sys_seconds(seconds(random.span(253402300800)));
    if (random.one_in(2)) cookie.max_age = seconds(random.span(1000));
    const auto text = format_set_cookie(cookie);
    ASSERT_EQ(text.has_value(), cookie.same_site != SameSite::none || cookie.is_secure);
    if (!text) continue;
    const auto again = parse_set_cookie(*text);
    ASSERT_TRUE(again);
    ASSERT_EQ(format_set_cookie(*again), *text);
  }
}

TEST(CookieDate, ParsesManyForms) {
  for (const char* text : {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                           "Sun Nov  6 08:49:37 1994", "06-Nov-1994 8:49:37",
                           "1994 november 6 8:49:37x", "8:49:37 6 NOV 94 UTC +0000"})
    EXPECT_EQ(parse_cookie_date(text), kCookieTime) << text;
  EXPECT_EQ(parse_cookie_date("1 Jan 69 0:0:0"), sys_seconds(seconds(3124224000)));
  EXPECT_EQ(parse_cookie_date("1 Jan 70 0:0:0"), sys_seconds());
}

TEST(CookieDate, IsInvalidIfPartIsMissingOrOutOfRange) {
  for (const char* text :
       {"", "Sun", "06 Nov 1994", "Nov 1994 08:49:37", "06 1994 08:49:37", "06 Nov 08:49:37",
        "06 Nov 1994 08:49", "06 Nov 1994 24:00:00", "06 Nov 1994 08:60:00", "06 Nov 1994 08:00:60",
        "31 Nov 1994 08:49:37", "00 Nov 1994 08:49:37", "06 Nov 1600 08:49:37",
        "06 Nov 19945 08:49:37", "006 Nov 1994 08:49:37", "06 Nov 1994 008:49:37",
        "06 Nov 1994 08:49:370"})
    EXPECT_EQ(parse_cookie_date(text), std::nullopt) << text;
}

}  // namespace
}  // namespace spate::http
