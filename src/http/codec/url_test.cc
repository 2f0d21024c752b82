#include "spate/http/url.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/support/random.h"

namespace spate::http {
namespace {

std::string parsed_url(std::string_view text) {
  const auto url = Url::parse(text);
  return url ? url->to_string() : url.error().message();
}
std::string url_refused(std::errc error) {
  return std::error_code(static_cast<int>(error), std::system_category()).message();
}
const std::string kInvalidUrl = url_refused(std::errc::invalid_argument);

TEST(UrlTest, UrlIsSplitIntoItsParts) {
  const Url url = *Url::parse("http://example.test:8080/a/b?x=1&y#top");
  EXPECT_EQ(url.scheme(), "http");
  EXPECT_EQ(url.host(), "example.test");
  EXPECT_EQ(url.host_name(), "example.test");
  EXPECT_EQ(url.port(), 8080);
  EXPECT_EQ(url.authority(), "example.test:8080");
  EXPECT_EQ(url.path(), "/a/b");
  EXPECT_EQ(url.query(), "x=1&y");
  EXPECT_EQ(url.fragment(), "top");
  EXPECT_EQ(url.target(), "/a/b?x=1&y");
  EXPECT_FALSE(url.is_secure());
}

TEST(UrlTest, DefaultPortFollowsScheme) {
  for (const auto& [text, port] : std::vector<std::pair<const char*, int>>{{"http://h", 80},
                                                                           {"https://h", 443},
                                                                           {"ws://h", 80},
                                                                           {"wss://h", 443},
                                                                           {"x://h", 0},
                                                                           {"http://h:", 80},
                                                                           {"http://h:0", 0},
                                                                           {"https://h:80", 80}})
    EXPECT_EQ(Url::parse(text)->port(), port) << text;
  EXPECT_EQ(Url::parse("HTTPS://h:443/")->authority(), "h");
  EXPECT_EQ(Url::parse("https://h:0443/")->to_string(), "https://h/");
  EXPECT_TRUE(Url::parse("wss://h")->is_secure());
}

TEST(UrlTest, Ipv6HostIsReportedWithAndWithoutBrackets) {
  const Url url = *Url::parse("http://[2001:DB8::1]:81/");
  EXPECT_EQ(url.host(), "[2001:db8::1]");
  EXPECT_EQ(url.host_name(), "2001:db8::1");
  EXPECT_EQ(url.authority(), "[2001:db8::1]:81");
}

TEST(UrlTest, UrlIsNormalized) {
  EXPECT_EQ(parsed_url("HTTP://EXAMPLE.test"), "http://example.test/");
  EXPECT_EQ(parsed_url("http://h?q"), "http://h/?q");
  EXPECT_EQ(parsed_url("http://h#f"), "http://h/#f");
  EXPECT_EQ(parsed_url("http://h/a/./b/../c"), "http://h/a/c");
  EXPECT_EQ(parsed_url("http://h/../../a/.."), "http://h/");
  EXPECT_EQ(parsed_url("http://h//a//"), "http://h//a//");
  EXPECT_EQ(parsed_url("http://h/a b?c d#e f"), "http://h/a%20b?c%20d#e%20f");
  EXPECT_EQ(parsed_url("http://h/\xc3\xa4\"<>\\^`{|}[]"),
            "http://h/%C3%A4%22%3C%3E%5C%5E%60%7B%7C%7D%5B%5D");
  EXPECT_EQ(parsed_url("http://h/100%?50%-%4"), "http://h/100%25?50%25-%254");
  EXPECT_EQ(parsed_url("http://h/%2f%2F"), "http://h/%2f%2F");
  EXPECT_EQ(parsed_url("http://h/a?b?c/d#e?f#g"), "http://h/a?b?c/d#e?f%23g");
}

TEST(UrlTest, EmptyQueryOrFragmentDiffersFromNone) {
  const Url url = *Url::parse("http://h/?#");
  EXPECT_TRUE(url.has_query());
  EXPECT_TRUE(url.has_fragment());
  EXPECT_EQ(url.query(), "");
  EXPECT_EQ(url.to_string(), "http://h/?#");
  EXPECT_FALSE(Url::parse("http://h/")->has_query());
  EXPECT_FALSE(Url::parse("http://h/?a")->has_fragment());
  EXPECT_NE(*Url::parse("http://h/"), *Url::parse("http://h/?"));
}

TEST(UrlTest, RefusesMalformedUrls) {
  for (const char* text : {"",
                           "h",
                           "/a",
                           "//h/a",
                           "http:",
                           "http:a",
                           "http:/a",
                           "http://",
                           "http:///a",
                           "http://:80/",
                           "http://?q",
                           "mailto:a@b",
                           "1http://h/",
                           "://h",
                           "ht tp://h/",
                           "http://h:x/",
                           "http://h:-1/",
                           "http://h:65536/",
                           "http://h h/",
                           "http://[::1/",
                           "http://[::1]x/",
                           "http://[fe80::1%25lo]/",
                           "http://u@h/",
                           "http://u:p@h/",
                           "http://good.test\\@evil.test/",
                           "http://h\\evil/",
                           " http://h",
                           "http://h%/",
                           "http://\xc3\xa4.test/"})
    EXPECT_EQ(parsed_url(text), kInvalidUrl) << text;
}

TEST(UrlTest, RefusesControlsEverywhere) {
  for (const char control : {'\0', '\t', '\n', '\r', '\x1b', '\x7f'}) {
    for (const char* before : {"ht", "http://h", "http://h/a", "http://h/?a", "http://h/#a"})
      EXPECT_EQ(parsed_url(std::string(before) + control + "b"), kInvalidUrl)
          << before << int{control};
  }
  const Url url = *Url::parse("http://h/");
  EXPECT_FALSE(url.resolve("/a\r\nHost: b"));
  EXPECT_FALSE(url.resolve("a\tb"));
}

TEST(UrlTest, HasLimits) {
  const std::string start = "http://h/";
  EXPECT_TRUE(Url::parse(start + std::string(kMostUrl - start.size(), 'a')));
  EXPECT_EQ(parsed_url(start + std::string(kMostUrl - start.size() + 1, 'a')),
            url_refused(std::errc::filename_too_long));
  EXPECT_FALSE(Url::parse(start + std::string(kMostUrl / 3, ' ')));
  EXPECT_EQ(parsed_url("http://" + std::string(256, 'h')),
            url_refused(std::errc::filename_too_long));
  EXPECT_TRUE(Url::parse("http://" + std::string(255, 'h')));
  EXPECT_FALSE(Url::parse(start)->resolve(std::string(kMostUrl + 1, 'a')));
}

struct ReferenceCase {
  const char* text;
  const char* target;
};

TEST(UrlTest, ResolvesReferencesPerRfc3986) {
  const Url base = *Url::parse("http://a/b/c/d;p?q");
  constexpr ReferenceCase kReferences[] = {{"g", "http://a/b/c/g"},
                                           {"./g", "http://a/b/c/g"},
                                           {"g/", "http://a/b/c/g/"},
                                           {"/g", "http://a/g"},
                                           {"//g", "http://g/"},
                                           {"?y", "http://a/b/c/d;p?y"},
                                           {"g?y", "http://a/b/c/g?y"},
                                           {"#s", "http://a/b/c/d;p?q#s"},
                                           {"g#s", "http://a/b/c/g#s"},
                                           {"g?y#s", "http://a/b/c/g?y#s"},
                                           {";x", "http://a/b/c/;x"},
                                           {"g;x", "http://a/b/c/g;x"},
                                           {"g;x?y#s", "http://a/b/c/g;x?y#s"},
                                           {"", "http://a/b/c/d;p?q"},
                                           {".", "http://a/b/c/"},
                                           {"./", "http://a/b/c/"},
                                           {"..", "http://a/b/"},
                                           {"../", "http://a/b/"},
                                           {"../g", "http://a/b/g"},
                                           {"../..", "http://a/"},
                                           {"../../", "http://a/"},
                                           {"../../g", "http://a/g"},
                                           {"../../../g", "http://a/g"},
                                           {"../../../../g", "http://a/g"},
                                           {"/./g", "http://a/g"},
                                           {"/../g", "http://a/g"},
                                           {"g.", "http://a/b/c/g."},
                                           {".g", "http://a/b/c/.g"},
                                           {"g..", "http://a/b/c/g.."},
                                           {"..g", "http://a/b/c/..g"},
                                           {"./../g", "http://a/b/g"},
                                           {"./g/.", "http://a/b/c/g/"},
                                           {"g/./h", "http://a/b/c/g/h"},
                                           {"g/../h", "http://a/b/c/h"},
                                           {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
                                           {"g;x=1/../y", "http://a/b/c/y"},
                                           {"g?y/./x", "http://a/b/c/g?y/./x"},
                                           {"g?y/../x", "http://a/b/c/g?y/../x"},
                                           {"g#s/../x", "http://a/b/c/g#s/../x"},
                                           {"https://x/../y", "https://x/y"},
                                           {"//g:81?z", "http://g:81/?z"},
                                           {"?", "http://a/b/c/d;p?"}};
  for (const auto& [text, target] : kReferences) EXPECT_EQ(base.resolve(text)->to_string(), target);
}

TEST(UrlTest, ReferenceThatDoesNotParseIsNotResolved) {
  const Url base = *Url::parse("http://a/b");
  for (const char* text :
       {"http:g", "mailto:a@b", "javascript:alert(1)", "//", "//u@h/", "///x", "//h:x"})
    EXPECT_FALSE(base.resolve(text)) << text;
}

TEST(UrlTest, OriginIsReported) {
  const Url url = *Url::parse("http://h/a");
  EXPECT_TRUE(url.has_origin_of(*Url::parse("HTTP://H:80/b?c")));
  for (const char* other : {"https://h/a", "http://h:81/a", "http://g.h/a", "https://h:80/a"})
    EXPECT_FALSE(url.has_origin_of(*Url::parse(other))) << other;
}

TEST(UrlTest, UrlRoundTripsAndResolvesToItself) {
  testing::Random random(1);
  constexpr std::string_view kLetters = "aZ09/.?#%&=+ :@[]{}\\\"\xc3~;..//%2e%2F";
  const Url base = *Url::parse("https://other.test/x/y?z#f");
  int good = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = "http://h";
    for (std::size_t size = random.below(24); size > 0; --size)
      text += kLetters[random.below(kLetters.size())];
    const auto url = Url::parse(text);
    if (!url) continue;
    ++good;
    ASSERT_EQ(*Url::parse(url->to_string()), *url) << text;
    ASSERT_EQ(*base.resolve(url->to_string()), *url) << text;
    ASSERT_EQ(url->resolve(std::string(url->has_fragment() ? "#" : "").append(url->fragment()))
                  ->to_string(),
              url->to_string())
        << text;
  }
  EXPECT_GT(good, 5000);
}

TEST(PercentEncoding, RoundTripsAllBytes) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  for (const char c : percent_encode(all)) EXPECT_TRUE(c == '%' || c > ' ') << int{c};
  EXPECT_EQ(percent_decode(percent_encode(all)), all);
  EXPECT_EQ(percent_decode(percent_encode_path(all)), all);
  EXPECT_EQ(percent_encode("a b/~\xff"), "a%20b%2F~%FF");
  EXPECT_EQ(percent_encode_path("/a b/"), "/a%20b/");
}

TEST(PercentEncoding, RefusesMalformedEscapes) {
  for (const char* text : {"%", "%a", "a%", "%g0", "%0g", "%%", "%2 "})
    EXPECT_EQ(percent_decode(text), std::nullopt) << text;
  EXPECT_EQ(percent_decode("%2b+"), "++");
  EXPECT_EQ(percent_decode("%4a%4A"), "JJ");
}

using QueryPairs = std::vector<std::pair<std::string, std::string>>;

QueryPairs pairs_of(std::string_view text) {
  QueryPairs pairs;
  for (Query query(text); query.next();) pairs.emplace_back(query.name(), query.value());
  return pairs;
}

TEST(QueryTest, PairsKeepTheirOrder) {
  EXPECT_EQ(pairs_of("a=1&b=2&a=3"), (QueryPairs{{"a", "1"}, {"b", "2"}, {"a", "3"}}));
  EXPECT_EQ(pairs_of("a=1=2&b&=c&="), (QueryPairs{{"a", "1=2"}, {"b", ""}, {"", "c"}, {"", ""}}));
  EXPECT_EQ(pairs_of("&&a&&"), (QueryPairs{{"a", ""}}));
  EXPECT_EQ(pairs_of(""), QueryPairs());
  EXPECT_EQ(pairs_of("&"), QueryPairs());
}

TEST(QueryTest, NamesAndValuesAreDecoded) {
  EXPECT_EQ(pairs_of("a+b=%41%2b+&c%26%3d=%C3%A4"),
            (QueryPairs{{"a b", "A+ "}, {"c&=", "\xc3\xa4"}}));
  EXPECT_EQ(pairs_of("100%=%2&x=%zz%"), (QueryPairs{{"100%", "%2"}, {"x", "%zz%"}}));
  EXPECT_EQ(pairs_of("a=%00"), (QueryPairs{{"a", std::string(1, '\0')}}));
}

TEST(QueryTest, PairsWithoutEscapesAreNotCopied) {
  const std::string text = "name=value";
  Query query(text);
  ASSERT_TRUE(query.next());
  EXPECT_EQ(query.name().data(), text.data());
  EXPECT_EQ(query.value().data(), text.data() + 5);
}

TEST(QueryTest, FirstPairOfNameIsFound) {
  EXPECT_EQ(query_value("a=1&b=2&b=3", "b"), "2");
  EXPECT_EQ(query_value("a=1", "A"), std::nullopt);
  EXPECT_EQ(query_value("a", "a"), "");
}

TEST(NormalPath, IsDecodedWithoutDotSegments) {
  for (const auto& [path, normal] : std::vector<std::pair<const char*, const char*>>{
           {"/", "/"},         {"/a", "/a"},       {"/a/", "/a/"},     {"//a//b", "/a/b"},
           {"/a/./b", "/a/b"}, {"/a/../b", "/b"},  {"/a/..", "/"},     {"/a/b/..", "/a/"},
           {"/a/.", "/a/"},    {"/a%20b", "/a b"}, {"/%61", "/a"},     {"/a/%2e%2E/b", "/b"},
           {"/a/%2e", "/a/"},  {"/...", "/..."},   {"/..a", "/..a"},   {"/a..", "/a.."},
           {"/%5c", "/\\"},    {"/a?b", "/a?b"},   {"/%2520", "/%20"}, {"/a/b/../../c", "/c"}})
    EXPECT_EQ(normal_path(path), normal) << path;
}

TEST(NormalPath, RefusesPathsThatLeaveRootOrHideSegments) {
  for (const char* path : {"",
                           "a",
                           "*",
                           "..",
                           "/..",
                           "/../",
                           "/../a",
                           "/a/../..",
                           "/a/../../b",
                           "/%2e%2e",
                           "/%2e./a",
                           "/.%2E/a",
                           "/a/%2e%2e/%2e%2e",
                           "//..",
                           "/./..",
                           "/a%2fb",
                           "/%2F",
                           "/..%2f..%2fetc",
                           "/a%00",
                           "/%00",
                           "/a%00.txt",
                           "/%",
                           "/%2",
                           "/%zz",
                           "/a/../%2e%2e/etc"})
    EXPECT_EQ(normal_path(path), std::nullopt) << path;
}

TEST(NormalPath, NeverLeavesRootForRandomPaths) {
  testing::Random random(2);
  constexpr std::string_view kPieces[] = {"/",   "..",  ".",  "a", "%2e", "%2E",
                                          "%2f", "%00", "//", "%", "b/"};
  int good = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string path = "/";
    for (std::size_t count = random.below(10); count > 0; --count)
      path += kPieces[random.below(std::size(kPieces))];
    const auto normal = normal_path(path);
    if (!normal) continue;
    ++good;
    const std::string framed = *normal + "/";
    ASSERT_TRUE(normal->starts_with('/'));
    ASSERT_EQ(framed.find("/../"), std::string::npos) << path;
    ASSERT_EQ(framed.find("/./"), std::string::npos) << path;
    ASSERT_EQ(normal->find("//"), std::string::npos) << path;
    ASSERT_EQ(normal_path(percent_encode_path(*normal)), *normal) << path;
  }
  EXPECT_GT(good, 3000);
}

}  // namespace
}  // namespace spate::http
