#include <gtest/gtest.h>

#include "spate/http/cookie.h"

namespace spate::http {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr sys_seconds kJarStart{seconds(1000000)};

bool store_cookie(CookieJar& jar, std::string_view url, std::string_view field,
                  sys_seconds now = kJarStart) {
  return jar.store(*Url::parse(url), field, now);
}
std::string cookies_for(CookieJar& jar, std::string_view url, sys_seconds now = kJarStart) {
  return jar.header(*Url::parse(url), now);
}

TEST(CookieJarTest, SendsBackToHostThatSetIt) {
  CookieJar jar;
  EXPECT_TRUE(store_cookie(jar, "http://h.test/a", "n=v"));
  EXPECT_EQ(cookies_for(jar, "http://h.test/b"), "n=v");
  EXPECT_EQ(cookies_for(jar, "https://h.test:81/"), "n=v");
  for (const char* url :
       {"http://www.h.test/", "http://test/", "http://xh.test/", "http://h.test.evil/"})
    EXPECT_EQ(cookies_for(jar, url), "") << url;
}

TEST(CookieJarTest, SendsCookiesToSubdomainsOfTheirDomain) {
  CookieJar jar;
  EXPECT_TRUE(store_cookie(jar, "http://a.h.test/", "n=v; Domain=.H.test"));
  for (const char* url : {"http://h.test/", "http://a.h.test/", "http://b.c.h.test/"})
    EXPECT_EQ(cookies_for(jar, url), "n=v") << url;
  for (const char* url :
       {"http://xh.test/", "http://test/", "http://h.test.evil/", "http://h.test./"})
    EXPECT_EQ(cookies_for(jar, url), "") << url;
}

TEST(CookieJarTest, RefusesDomainThatDoesNotMatchHost) {
  CookieJar jar;
  for (const char* domain : {"b.h.test", "other.test", "test", "com", "evil.a.h.test", "h.tes",
                             ".test.", "st", "ah.test", "h.test.", "..test"})
    EXPECT_FALSE(store_cookie(jar, "http://a.h.test/", std::string("n=v; Domain=") + domain))
        << domain;
  EXPECT_EQ(jar.size(), 0u);
}

TEST(CookieJarTest, SingleLabelDomainMatchesOnlyHostItself) {
  CookieJar jar;
  EXPECT_TRUE(store_cookie(jar, "http://localhost/", "n=v; Domain=localhost"));
  EXPECT_EQ(cookies_for(jar, "http://localhost/"), "n=v");
  EXPECT_EQ(cookies_for(jar, "http://a.localhost/"), "");
  EXPECT_FALSE(store_cookie(jar, "http://a.localhost/", "n=v; Domain=localhost"));
}

TEST(CookieJarTest, IpAddressMatchesOnlyAsWhole) {
  CookieJar jar;
  EXPECT_FALSE(store_cookie(jar, "http://192.0.2.1/", "n=v; Domain=2.1"));
  EXPECT_FALSE(store_cookie(jar, "http://192.0.2.1/", "n=v; Domain=0.2.1"));
  EXPECT_TRUE(store_cookie(jar, "http://192.0.2.1/", "n=v; Domain=192.0.2.1"));
  EXPECT_TRUE(store_cookie(jar, "http://[::1]/", "n=6"));
  EXPECT_EQ(cookies_for(jar, "http://192.0.2.1/"), "n=v");
  EXPECT_EQ(cookies_for(jar, "http://[::1]/"), "n=6");
}

TEST(CookieJarTest, SendsCookiesToPathsBelowTheirPath) {
  CookieJar jar;
  EXPECT_TRUE(store_cookie(jar, "http://h/", "n=v; Path=/a"));
  for (const char* url : {"http://h/a", "http://h/a/", "http://h/a/b", "http://h/a?b"})
    EXPECT_EQ(cookies_for(jar, url), "n=v") << url;
  for (const char* url : {"http://h/", "http://h/ab", "http://h/b/a", "http://h/A"})
    EXPECT_EQ(cookies_for(jar, url), "") << url;
}

TEST(CookieJarTest, DefaultPathIsDirectoryOfRequest) {
  CookieJar jar;
  EXPECT_TRUE(store_cookie(jar, "http://h/a/b?c/d", "n=v"));
  EXPECT_EQ(cookies_for(jar, "http://h/a/x"), "n=v");
  EXPECT_EQ(cookies_for(jar, "http://h/a"), "n=v");
  EXPECT_EQ(cookies_for(jar, "http://h/"), "");
  EXPECT_TRUE(store_cookie(jar, "http://g/a", "n=v; Path=b"));
  EXPECT_EQ(cookies_for(jar, "http://g/z"), "n=v");
}

TEST(CookieJarTest, SendsLongerPathsAndOlderCookiesFirst) {
  CookieJar jar;
  store_cookie(jar, "http://h/", "b=1");
  store_cookie(jar, "http://h/", "a=2");
  store_cookie(jar, "http://h/", "c=3; Path=/x");
  store_cookie(jar, "http://h/", "b=4");
  EXPECT_EQ(cookies_for(jar, "http://h/x"), "c=3; b=4; a=2");
}

TEST(CookieJarTest, SendsSecureCookiesOverTlsOnly) {
  CookieJar jar;
  EXPECT_FALSE(store_cookie(jar, "http://h.test/", "n=v; Secure"));
  EXPECT_TRUE(store_cookie(jar, "https://h.test/", "n=v; Secure; Domain=h.test"));
  EXPECT_EQ(cookies_for(jar, "https://h.test/"), "n=v");
  EXPECT_EQ(cookies_for(jar, "http://h.test/"), "");
  EXPECT_FALSE(store_cookie(jar, "http://h.test/", "n=evil"));
  EXPECT_FALSE(store_cookie(jar, "http://a.h.test/", "n=evil; Domain=h.test; Path=/x"));
  EXPECT_TRUE(store_cookie(jar, "http://h.test/", "m=w"));
  EXPECT_EQ(cookies_for(jar, "https://h.test/"), "n=v; m=w");
}

TEST(CookieJarTest, NamePrefixRulesAreEnforced) {
  CookieJar jar;
  for (const char* field :
       {"__Secure-n=v", "__Host-n=v; Secure", "__Host-n=v; Path=/", "__Host-n=v; Secure; Path=/x",
        "__Host-n=v; Secure; Path=/; Domain=h.test", "__host-n=v; Path=/"})
    EXPECT_FALSE(store_cookie(jar, "https://h.test/", field)) << field;
  EXPECT_FALSE(store_cookie(jar, "http://h.test/", "__Secure-n=v; Secure"));
  EXPECT_TRUE(store_cookie(jar, "https://h.test/", "__Secure-n=v; Secure"));
  EXPECT_TRUE(store_cookie(jar, "https://h.test/", "__Host-n=v; Secure; Path=/"));
}

TEST(CookieJarTest, RemovesExpiredCookies) {
  CookieJar jar;
  store_cookie(jar, "http://h/", "a=1; Max-Age=10");
  store_cookie(jar, "http://h/", "b=2; Expires=Mon, 12 Jan 1970 13:46:50 GMT");  // 10 seconds later
  store_cookie(jar, "http://h/", "c=3; Max-Age=20; Expires=Mon, 12 Jan 1970 13:46:41 GMT");
  store_cookie(jar, "http://h/", "d=4");
  EXPECT_EQ(cookies_for(jar, "http://h/", kJarStart + seconds(9)), "a=1; b=2; c=3; d=4");
  EXPECT_EQ(cookies_for(jar, "http://h/", kJarStart + seconds(10)), "c=3; d=4");
  EXPECT_EQ(cookies_for(jar, "http://h/", kJarStart + seconds(20)), "d=4");
  EXPECT_EQ(jar.size(), 4u);
  jar.remove_expired(kJarStart + seconds(10));
  EXPECT_EQ(jar.size(), 2u);
  EXPECT_TRUE(store_cookie(jar, "http://h/", "e=5; Max-Age=99999999999999999999"));
  EXPECT_EQ(cookies_for(jar, "http://h/", sys_seconds::max() - seconds(1)), "d=4; e=5");
}

TEST(CookieJarTest, ExpiryInPastRemovesCookie) {
  CookieJar jar;
  store_cookie(jar, "http://h/", "a=1");
  EXPECT_TRUE(store_cookie(jar, "http://h/", "a=; Max-Age=0"));
  EXPECT_EQ(jar.size(), 0u);
  store_cookie(jar, "http://h/", "a=1");
  EXPECT_TRUE(store_cookie(jar, "http://h/", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"));
  EXPECT_EQ(jar.size(), 0u);
}

TEST(CookieJarTest, SameNameDomainAndPathReplacesCookie) {
  CookieJar jar;
  store_cookie(jar, "http://h.test/", "a=1");
  store_cookie(jar, "http://h.test/", "a=2");
  store_cookie(jar, "http://h.test/", "a=3; Path=/x");
  store_cookie(jar, "http://h.test/", "a=4; Domain=h.test");
  EXPECT_EQ(jar.size(), 3u);
  EXPECT_EQ(cookies_for(jar, "http://h.test/"), "a=2; a=4");
}

TEST(CookieJarTest, DropsLeastRecentlyUsedCookieAboveLimit) {
  CookieJar jar({.per_domain = 2, .total = 3});
  store_cookie(jar, "http://a/", "x=1; Path=/1");
  store_cookie(jar, "http://a/", "y=2");
  EXPECT_EQ(cookies_for(jar, "http://a/1"), "x=1; y=2");
  EXPECT_EQ(cookies_for(jar, "http://a/"), "y=2");
  store_cookie(jar, "http://a/", "z=3");
  EXPECT_EQ(cookies_for(jar, "http://a/1"), "y=2; z=3");
  store_cookie(jar, "http://b/", "p=4");
  store_cookie(jar, "http://c/", "q=5");
  EXPECT_EQ(jar.size(), 3u);
  EXPECT_EQ(cookies_for(jar, "http://c/"), "q=5");
  EXPECT_EQ(cookies_for(jar, "http://b/"), "p=4");
}

TEST(CookieJarTest, KeepsSecureCookiesWhenPlainHttpExceedsLimit) {
  CookieJar jar({.per_domain = 4, .total = 6});
  EXPECT_TRUE(store_cookie(jar, "https://bank.test/", "__Host-sid=secret; Secure; Path=/"));
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(store_cookie(jar, "http://bank.test/", "x" + std::to_string(i) + "=1"));
  EXPECT_EQ(jar.size(), 4u);
  EXPECT_EQ(cookies_for(jar, "https://bank.test/"), "__Host-sid=secret; x7=1; x8=1; x9=1");
  for (int i = 0; i < 10; ++i)
    store_cookie(jar, "http://h" + std::to_string(i) + ".test/", "y=1");
  EXPECT_EQ(jar.size(), 6u);
  EXPECT_EQ(cookies_for(jar, "https://bank.test/"), "__Host-sid=secret");
}

TEST(CookieJarTest, OldestCookieIsRemovedIfAllAreSecure) {
  CookieJar jar({.per_domain = 2});
  for (const char* field : {"a=1; Secure", "b=2; Secure", "c=3; Secure"})
    EXPECT_TRUE(store_cookie(jar, "https://h.test/", field));
  EXPECT_EQ(cookies_for(jar, "https://h.test/"), "b=2; c=3");
}

TEST(CookieJarTest, CookiesBeyondHeaderLimitAreOmitted) {
  CookieJar jar({.header = 12});
  store_cookie(jar, "http://h.test/", "a=1");
  store_cookie(jar, "http://h.test/", "b=22222222");
  store_cookie(jar, "http://h.test/", "c=33333");
  EXPECT_EQ(cookies_for(jar, "http://h.test/"), "a=1; c=33333");
  EXPECT_TRUE(store_cookie(jar, "https://h.test/", "s=444; Secure"));
  EXPECT_EQ(cookies_for(jar, "https://h.test/"), "a=1; s=444");
  EXPECT_TRUE(store_cookie(jar, "https://h.test/", "t=5555555; Secure"));
  EXPECT_EQ(cookies_for(jar, "https://h.test/"), "a=1; s=444");
  EXPECT_TRUE(store_cookie(jar, "https://h.test/", "s=4444444444; Secure"));
  EXPECT_EQ(cookies_for(jar, "https://h.test/"), "s=4444444444");
}

TEST(CookieJarTest, HeaderLengthIsLimited) {
  CookieJar jar;
  for (int i = 0; i < 50; ++i)
    store_cookie(jar, "http://h.test/", "b" + std::to_string(i) + "=" + std::string(4000, 'v'));
  EXPECT_LE(cookies_for(jar, "http://h.test/").size(), 8192u);
}

TEST(CookieJarTest, RefusesMalformedCookies) {
  CookieJar jar;
  for (const char* field : {"", "a", "=a", "a=b\r\n"})
    EXPECT_FALSE(store_cookie(jar, "http://h/", field));
  store_cookie(jar, "http://h/", "a=b");
  jar.clear();
  EXPECT_EQ(cookies_for(jar, "http://h/"), "");
}

}  // namespace
}  // namespace spate::http
