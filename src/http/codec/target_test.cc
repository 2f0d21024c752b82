#include "http/codec/target.h"

#include <gtest/gtest.h>

#include <string>

namespace spate::http {
namespace {

using Form = RequestTarget::Form;

RequestTarget target_of(std::string_view text, Method method = Method::get) {
  const auto target = parse_target(text, method);
  EXPECT_TRUE(target.has_value()) << text;
  return target.value_or(RequestTarget());
}

bool is_target(std::string_view text, Method method = Method::get) {
  return parse_target(text, method).has_value();
}

TEST(RequestTarget, SplitsIntoPathAndQuery) {
  const RequestTarget target = target_of("/a/b%20c;d=1?x=1&y=?/2");
  EXPECT_EQ(target.form, Form::origin);
  EXPECT_EQ(target.path, "/a/b%20c;d=1");
  EXPECT_TRUE(target.has_query);
  EXPECT_EQ(target.query, "x=1&y=?/2");
  EXPECT_EQ(target.authority, "");
}

TEST(RequestTarget, DistinguishesEmptyQueryFromNone) {
  EXPECT_FALSE(target_of("/a").has_query);
  EXPECT_TRUE(target_of("/a?").has_query);
  EXPECT_EQ(target_of("/a?").query, "");
}

TEST(RequestTarget, TreatsTwoLeadingSlashesAsPath) {
  const RequestTarget target = target_of("//evil.test/a");
  EXPECT_EQ(target.form, Form::origin);
  EXPECT_EQ(target.path, "//evil.test/a");
  EXPECT_EQ(target.host.host, "");
}

TEST(RequestTarget, HasSchemeAndHostInAbsoluteForm) {
  const RequestTarget target = target_of("HTTP://Example.test:8080/a?b");
  EXPECT_EQ(target.form, Form::absolute);
  EXPECT_EQ(target.scheme, "HTTP");
  EXPECT_EQ(target.authority, "Example.test:8080");
  EXPECT_EQ(target.host.host, "Example.test");
  EXPECT_EQ(target.host.port, 8080);
  EXPECT_EQ(target.path, "/a");
  EXPECT_EQ(target.query, "b");
}

TEST(RequestTarget, HasPathSlashInAbsoluteFormWithoutPath) {
  EXPECT_EQ(target_of("http://h").path, "/");
  const RequestTarget target = target_of("http://[::1]?q");
  EXPECT_EQ(target.path, "/");
  EXPECT_EQ(target.query, "q");
  EXPECT_EQ(target.host.host, "[::1]");
}

TEST(RequestTarget, RequiresAuthorityWithPortForConnect) {
  const RequestTarget target = target_of("[2001:db8::1]:443", Method::connect);
  EXPECT_EQ(target.form, Form::authority);
  EXPECT_EQ(target.authority, "[2001:db8::1]:443");
  EXPECT_EQ(target.host.port, 443);
  EXPECT_EQ(target.path, "");
  for (const char* text : {"h", "h:", "h:0", ":443", "h:65536", "h:4x3", "u@h:443", "h:443/", "/",
                           "*", "http://h:443", "h:443?q", "::1:443", "h:+443", "h: 443"})
    EXPECT_FALSE(is_target(text, Method::connect)) << text;
}

TEST(RequestTarget, AllowsAuthorityForConnectOnly) {
  for (const Method method : {Method::get, Method::options, Method::other, Method::post})
    EXPECT_FALSE(is_target("h:443", method)) << name_of(method);
}

TEST(RequestTarget, AllowsAsteriskForOptionsOnly) {
  const RequestTarget target = target_of("*", Method::options);
  EXPECT_EQ(target.form, Form::asterisk);
  EXPECT_EQ(target.path, "*");
  EXPECT_FALSE(is_target("*"));
  EXPECT_FALSE(is_target("**", Method::options));
  EXPECT_FALSE(is_target("*?a", Method::options));
}

TEST(RequestTarget, RefusesMalformedTargets) {
  for (const char* text : {"",
                           "a",
                           "a/b",
                           "?q",
                           "#",
                           "/a#b",
                           "http:",
                           "http:/a",
                           "http:///a",
                           "http://",
                           "http://?q",
                           "http://:80/",
                           "1http://h/",
                           "://h/",
                           "http://u@h/",
                           "http://u:p@h/",
                           "http://h:x/",
                           "http://h:99999/",
                           "http://h h/",
                           "http://[::1/",
                           "http://[v1.a]/",
                           "http://[fe80::1%251]/",
                           "http://h#f",
                           "http://h/#f",
                           "ht tp://h/",
                           "http://h\\a/"})
    EXPECT_FALSE(is_target(text)) << text;
}

TEST(RequestTarget, RefusesIncompleteEscapesInPath) {
  for (const char* text : {"/%", "/%1", "/%g0", "/%0g", "/a%2", "/%%20", "http://h/%zz"})
    EXPECT_FALSE(is_target(text)) << text;
  EXPECT_EQ(target_of("/a?100%").query, "100%");
}

TEST(RequestTarget, AllowsOnlyPermittedCharacters) {
  for (int c = 0; c < 256; ++c) {
    const char byte = static_cast<char>(c);
    const bool is_refused_everywhere =
        c <= ' ' || c >= 127 || byte == '"' || byte == '<' || byte == '>' || byte == '#';
    const bool is_refused_in_path = std::string_view("\\`{}").find(byte) != std::string_view::npos;
    const std::string path = std::string("/a") + byte + "20";
    const std::string query = std::string("/a?b") + byte + "c";
    EXPECT_EQ(is_target(path), !is_refused_everywhere && !is_refused_in_path) << c;
    EXPECT_EQ(is_target(query), !is_refused_everywhere) << c;
    EXPECT_EQ(is_target("http://h" + path), is_target(path)) << c;
  }
}

TEST(Host, ParserAcceptsNameAddressAndBracketedAddress) {
  for (const char* value : {"",
                            "h",
                            "example.test",
                            "example.test.",
                            "a_b",
                            "xn--bcher-kva.test",
                            "127.0.0.1",
                            "h:",
                            "h:80",
                            "h:0080",
                            "h:65535",
                            "h:0",
                            "[::]",
                            "[::1]:80",
                            "[2001:db8::192.0.2.1]",
                            "a%20b",
                            "999.1.1.1",
                            "a,b",
                            "[1:2:3:4:5:6:7:8]:",
                            "~",
                            "a!$&'()*+;="})
    EXPECT_TRUE(is_valid_host(value)) << value;
  EXPECT_EQ(parse_host("h")->port, std::nullopt);
  EXPECT_EQ(parse_host("h:")->port, std::nullopt);
  EXPECT_EQ(parse_host("[::1]:80")->host, "[::1]");
  EXPECT_EQ(parse_host("[::1]:80")->port, 80);
}

TEST(Host, RefusesOtherForms) {
  for (const char* value : {":",           ":80",      " h",
                            "h ",          "h:80 ",    "u@h",
                            "u:p@h",       "h/",       "h?",
                            "h#",          "h\\",      "h:-1",
                            "h:+1",        "h:65536",  "h:99999999999999999999",
                            "h:8a",        "h:80:80",  "::1",
                            "[::1",        "::1]",     "[]",
                            "[::1]a",      "[::1]]",   "[[::1]]",
                            "[::1%25lo]",  "[::1%lo]", "[v1.a]",
                            "[127.0.0.1]", "a%2",      "a%zz",
                            "<h>",         "\"h\"",    "h\t",
                            "h\r\n",       "a^b",      "a|b",
                            "a`b",         "a{b}",     "\xc3\xa4.test",
                            "h\x7f"})
    EXPECT_FALSE(is_valid_host(value)) << value;
  EXPECT_FALSE(is_valid_host(std::string_view("h\0", 2)));
}

TEST(Host, HasLimit) {
  EXPECT_TRUE(is_valid_host(std::string(kMostHost, 'h') + ":80"));
  EXPECT_FALSE(is_valid_host(std::string(kMostHost + 1, 'h')));
}

TEST(Host, AcceptsIpv4AddressOnlyInItsFullForm) {
  for (const char* text : {"0.0.0.0", "255.255.255.255", "1.2.3.4"})
    EXPECT_TRUE(is_ipv4(text)) << text;
  for (const char* text :
       {"", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.", ".1.2.3", "1..2.3",
        "0x1.2.3.4", "1.2.3.4 ", "1.2.3.1000", "a.b.c.d", "-1.2.3.4"})
    EXPECT_FALSE(is_ipv4(text)) << text;
}

TEST(Host, AcceptsIpv6AddressesPerRfc4291) {
  for (const char* text :
       {"::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::8",
        "ABCD:ef01::", "::ffff:192.0.2.1", "1:2:3:4:5:6:1.2.3.4", "1::1.2.3.4", "::1.2.3.4"})
    EXPECT_TRUE(is_ipv6(text)) << text;
  for (const char* text : {"",
                           ":",
                           ":::",
                           "1",
                           "1:2",
                           "1:2:3:4:5:6:7",
                           "1:2:3:4:5:6:7:8:9",
                           "1:2:3:4:5:6:7:8::",
                           "1::2::3",
                           "::1:2:3:4:5:6:7:8",
                           "12345::",
                           "g::",
                           "1.2.3.4",
                           "1.2.3.4::",
                           "::1.2.3.4:1",
                           "1:2:3:4:5:6:7:1.2.3.4",
                           "::1.2.3",
                           "::1.2.3.4.5",
                           ":1::",
                           "::1:",
                           "1:::2",
                           " ::1",
                           "::1 ",
                           "::%1"})
    EXPECT_FALSE(is_ipv6(text)) << text;
}

}  // namespace
}  // namespace spate::http
